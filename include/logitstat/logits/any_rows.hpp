#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "logitstat/logits/logits_view.hpp"

namespace logitstat {

/// One row of V logits of whatever type.
using AnyRow = std::variant<std::span<const float>, std::span<const double>, std::span<const Eigen::half>,
                            std::span<const Eigen::bfloat16>>;

/// Rows of logits whose type is known when the program runs: from any `logits_rows`, and, like it, copied for each
/// thread. What takes these is compiled once and not once for each kind of rows.
class AnyRows {
  public:
    /// `name` stands for the rows in errors and reports: a path.
    template <logits_rows R>
    AnyRows(R rows, std::string name = {}) // NOLINT: an implicit conversion is the purpose
        : size_(rows.size()), vocabulary_(rows.vocabulary()), name_(std::move(name)) {
        if constexpr (requires { R::holds_log_probabilities; }) { log_probabilities_ = R::holds_log_probabilities; }
        row_ = [rows = std::move(rows)](std::size_t i) mutable -> AnyRow { return rows.row(i); };
    }

    /// The same rows without the tokens from `tokens` on: those that pad a vocabulary. Throws std::invalid_argument
    /// when there are not so many.
    AnyRows first_tokens(std::size_t tokens) const {
        if (tokens == 0 || tokens > vocabulary_) {
            throw std::invalid_argument("the first " + std::to_string(tokens) + " tokens of a vocabulary of " +
                                        std::to_string(vocabulary_));
        }
        AnyRows fewer = *this;
        fewer.vocabulary_ = tokens;
        fewer.row_ = [row = row_, tokens](std::size_t i) -> AnyRow {
            return std::visit([&](auto whole) -> AnyRow { return whole.first(tokens); }, row(i));
        };
        return fewer;
    }

    std::size_t size() const noexcept { return size_; }             ///< rows
    std::size_t vocabulary() const noexcept { return vocabulary_; } ///< V
    const std::string& name() const noexcept { return name_; }      ///< as errors and reports give it; may be empty
    /// The rows are log-probabilities, whose log-sum-exp is 0 but for rounding: a .kld file's.
    bool holds_log_probabilities() const noexcept { return log_probabilities_; }
    /// Unchecked; valid until the next call.
    AnyRow row(std::size_t i) { return row_(i); }

  private:
    std::function<AnyRow(std::size_t)> row_;
    std::size_t size_, vocabulary_;
    std::string name_;
    bool log_probabilities_ = false;
};

} // namespace logitstat

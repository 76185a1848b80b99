#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "logitstat/capture/score_row.hpp"

namespace logitstat {

/// What becomes of a row that a trace cannot hold: a NaN or +infinity in it, -infinity as the target's logit or among
/// the top k, an NLL or a logit beyond the type in which it is kept.
enum class non_finite_rows {
    refuse, ///< std::invalid_argument that names chunk, pos and token; nothing is recorded
    mark,   ///< recorded with NaN as its NLL and logits and the ids 0, 1, ..., k-1: no figure that could be believed.
            ///< Readers refuse the trace unless ReadOptions::keep_non_finite is set.
};

namespace detail {

/// The rows of one trace, checked and scored one by one.
class RowScorer {
  public:
    RowScorer(std::size_t top_k, non_finite_rows policy) : top_k_(top_k), policy_(policy) {
        if (top_k < 2) { throw std::invalid_argument("top_k is " + std::to_string(top_k) + ", at least 2 are needed"); }
    }

    /// The score of the next row, which is to be kept `as_float` or as doubles. Throws std::invalid_argument, naming
    /// chunk and pos, unless (chunk, pos) lies above the last accepted one, V is the same as before, and the row can be
    /// scored.
    template <class Arch, simd::logit_type T>
    RowScore score(std::int64_t chunk, std::int64_t pos, std::int64_t target, std::span<const T> logits,
                   bool as_float) const {
        const auto fail = [&](const std::string& reason) {
            throw std::invalid_argument(place(chunk, pos) + ": " + reason);
        };
        constexpr std::int64_t most = (std::numeric_limits<std::int32_t>::max)();
        if (chunk < 0 || pos < 0 || chunk > most || pos > most) { fail("chunk and pos must lie in [0, 2^31)"); }
        if (std::pair(chunk, pos) <= last_) {
            fail("chunk and pos do not increase, the row before is " + place(last_.first, last_.second));
        }
        if (vocabulary_ != 0 && logits.size() != vocabulary_) {
            fail(std::to_string(logits.size()) + " logits, the rows before have " + std::to_string(vocabulary_));
        }
        RowScore score;
        try {
            check_row_arguments(target, top_k_, logits.size());
        } catch (const std::invalid_argument& error) { fail(error.what()); }
        std::string defect = try_score_row<Arch>(logits, static_cast<std::size_t>(target), top_k_, score);
        const auto overflows = [&](double x) {
            return as_float ? !simd::is_finite(static_cast<float>(x)) : !simd::is_finite(x);
        };
        if (defect.empty() && (overflows(score.nll) || std::ranges::any_of(score.logits, overflows))) {
            defect = std::string("its NLL or a logit is beyond the range of ") + (as_float ? "float" : "double");
        }
        if (!defect.empty()) {
            if (policy_ == non_finite_rows::refuse) { fail(defect); }
            score.nll = std::numeric_limits<double>::quiet_NaN();
            score.logits.assign(top_k_, score.nll);
            score.ids.resize(top_k_);
            for (std::size_t j = 0; j < top_k_; ++j) { score.ids[j] = static_cast<token_id>(j); }
        }
        return score;
    }

    /// The row has been kept: the next one must lie above.
    void accept(std::int64_t chunk, std::int64_t pos, std::size_t vocabulary) {
        last_ = {chunk, pos};
        vocabulary_ = vocabulary;
    }

    static std::string place(std::int64_t chunk, std::int64_t pos) {
        return "chunk " + std::to_string(chunk) + ", pos " + std::to_string(pos);
    }

  private:
    std::size_t top_k_;
    non_finite_rows policy_;
    std::pair<std::int64_t, std::int64_t> last_{-1, -1};
    std::size_t vocabulary_ = 0; ///< 0 before the first row
};

} // namespace detail
} // namespace logitstat

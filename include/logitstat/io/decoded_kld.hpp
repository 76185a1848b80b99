#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "logitstat/io/kld.hpp"

namespace logitstat {

/// The rows of a .kld file as log-probabilities in float, each decoded into a buffer of this object when it is asked
/// for: the span holds until the next `row`, and each thread takes a copy. Satisfies `logits_rows`: log-probabilities
/// are logits whose log-sum-exp is 0 (but for the rounding of q). The file must outlive it and stay in its place.
class DecodedKld {
  public:
    using value_type = float;                             ///< of log-probabilities, nats
    static constexpr bool holds_log_probabilities = true; ///< see AnyRows

    /// A view of `file` with a buffer for one row.
    explicit DecodedKld(const KldFile& file) : file_(&file), buffer_(file.vocabulary()) {}

    std::size_t size() const noexcept { return file_->size(); }             ///< rows: evaluated positions
    std::size_t vocabulary() const noexcept { return file_->vocabulary(); } ///< V
    const KldFile& file() const noexcept { return *file_; }                 ///< the file that it decodes
    /// O(V). Throws as `KldFile::row`.
    std::span<const float> row(std::size_t i) {
        const KldRow row = file_->row(i);
        for (std::size_t token = 0; token < buffer_.size(); ++token) { buffer_[token] = row.log_prob<float>(token); }
        return buffer_;
    }

  private:
    const KldFile* file_;
    std::vector<float> buffer_;
};

} // namespace logitstat

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "logitstat/capture/row_scorer.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// A trace in memory, row by row: what TraceRecorder does, without a file. Real is the type in which NLLs and logits
/// are kept. Rows go to the trace that they belong to, one builder a thread.
template <std::floating_point Real = double> class TraceBuilder {
  public:
    /// Throws std::invalid_argument for top_k < 2.
    explicit TraceBuilder(std::size_t top_k, non_finite_rows policy = non_finite_rows::refuse)
        : top_k_(top_k), scorer_(top_k, policy) {}

    /// Scores one row (see score_row) and appends it. Throws std::invalid_argument, naming chunk and pos, as
    /// TraceRecorder::record; the builder is then as before.
    template <class Arch = simd::preferred_arch, logits_row L>
    void record(std::int64_t chunk, std::int64_t pos, std::int64_t target, const L& logits) {
        detail::with_span(logits, [&](auto row) {
            const RowScore score = scorer_.score<Arch>(chunk, pos, target, row, std::same_as<Real, float>);
            scorer_.accept(chunk, pos, row.size());
            columns_.chunk.push_back(static_cast<std::int32_t>(chunk));
            columns_.pos.push_back(static_cast<std::int32_t>(pos));
            columns_.target.push_back(static_cast<token_id>(target));
            columns_.nll.push_back(static_cast<Real>(score.nll));
            columns_.top_ids.insert(columns_.top_ids.end(), score.ids.begin(), score.ids.end());
            for (const double logit : score.logits) { columns_.top_logits.push_back(static_cast<Real>(logit)); }
        });
    }

    std::size_t size() const noexcept { return columns_.size(); } ///< rows recorded so far

    /// The rows so far, with this metadata. O(n k).
    Trace<Real> trace(Metadata metadata = {}) const {
        Trace<Real> planes = columns_; // whose candidates still lie row by row
        planes.k = top_k_;
        planes.source.metadata = std::move(metadata);
        const std::size_t n = size();
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < top_k_; ++j) {
                planes.top_ids[j * n + i] = columns_.top_ids[i * top_k_ + j];
                planes.top_logits[j * n + i] = columns_.top_logits[i * top_k_ + j];
            }
        }
        return planes;
    }

  private:
    std::size_t top_k_;
    detail::RowScorer scorer_;
    Trace<Real> columns_;
};

} // namespace logitstat

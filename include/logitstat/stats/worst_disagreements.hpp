#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "logitstat/stats/gap.hpp"
#include "logitstat/stats/rank.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// One position where the arms choose different tokens, with everything needed to go and look.
struct Disagreement {
    std::size_t index = 0;           ///< position in the trace, from 0
    std::int32_t chunk = 0,          ///< index of its chunk
        pos = 0;                     ///< position in the chunk
    token_id target = 0;             ///< the corpus token
    token_id reference_token = 0;    ///< the reference's best
    token_id candidate_token = 0;    ///< the candidate's best
    double gap = 0;                  ///< the reference's two best logits apart
    std::optional<std::size_t> rank; ///< of the reference's token in the candidate; nothing: beyond top-k
    std::optional<double> ulps;      ///< the gap in steps of the storage type, when that is known
};

/// The `limit` disagreements with the largest reference gap, largest first, equal gaps in trace order. The first one's
/// gap G is the statement that needs no threshold: no mismatch at any threshold above G. Empty when the arms agree
/// everywhere. `positions` is `disagreement_positions` or a subset of it. O(positions log limit).
/// Throws std::invalid_argument when shapes do not fit, a position is beyond the traces, or a gap is negative or not
/// finite.
template <trace_like R, trace_like C>
std::vector<Disagreement> worst_disagreements(const R& reference, const C& candidate,
                                              std::span<const std::size_t> positions, std::size_t limit) {
    detail::check_pair(reference, candidate);
    check_positions(reference, positions);
    const auto ref = reference.view();
    const auto gap_at = [&](std::size_t i) {
        const double gap = static_cast<double>(ref.logits(0)[i]) - static_cast<double>(ref.logits(1)[i]);
        if (!simd::is_finite(gap) || gap < 0) { detail::throw_bad_gap(reference, i); }
        return gap;
    };
    std::vector<std::size_t> order(positions.begin(), positions.end());
    const auto last = order.begin() + static_cast<std::ptrdiff_t>((std::min)(limit, order.size()));
    std::partial_sort(order.begin(), last, order.end(), [&](std::size_t a, std::size_t b) {
        const double gap_a = gap_at(a), gap_b = gap_at(b);
        return gap_a != gap_b ? gap_a > gap_b : a < b;
    });
    std::vector<Disagreement> worst;
    for (auto at = order.begin(); at != last; ++at) {
        const std::size_t i = *at;
        const token_id token = ref.ids(0)[i];
        worst.push_back({i, ref.chunk[i], ref.pos[i], ref.target[i], token, candidate.view().ids(0)[i], gap_at(i),
                         rank_of(candidate, i, token), std::nullopt});
    }
    return worst;
}

} // namespace logitstat

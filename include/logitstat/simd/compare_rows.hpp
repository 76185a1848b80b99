#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "logitstat/simd/divergence.hpp"
#include "logitstat/simd/rank_of.hpp"
#include "logitstat/simd/summarize_row.hpp"

namespace logitstat::simd {

/// What two rows of logits over the same V tokens say of each other.
struct RowComparison {
    RowSummary reference,        ///< log-sum-exp and best tokens of the reference's row
        candidate;               ///< of the candidate's
    RowDivergence divergence;    ///< of the two distributions
    std::int64_t rank = 0;       ///< 1-based rank of the reference's best token among all V of the candidate
    std::int64_t top_shared = 0; ///< tokens that are among the k best of both
    bool comparable() const { return rank > 0; } ///< both rows are usable; else only the summaries are set
    bool agree() const { return rank == 1; }     ///< the best tokens are the same
};

/// Log-sum-exp, best tokens and divergences of a pair of rows: one pass over each, one over both (which a row of
/// common size passes in the cache), and one over the candidate in the rare case that the reference's best token is not
/// among its k best. O(V + k log k). Ties go to the lower id, in the ranks too.
///
/// Rows cannot be compared that hold NaN or +infinity, whose first index is then in sum.refused, or no finite logit
/// (best is empty or begins with -infinity): comparable() is false, and nothing beyond the two summaries is set.
/// Preconditions: equal lengths, k >= 1.
template <class Arch = preferred_arch, logit_type R, logit_type C>
RowComparison compare_rows(std::span<const R> reference, std::span<const C> candidate, std::size_t k) {
    RowComparison result{summarize_row<Arch>(reference, k), summarize_row<Arch>(candidate, k), {}, 0, 0};
    if (!result.reference.usable() || !result.candidate.usable()) { return result; }
    result.divergence = divergence<Arch>(reference, candidate, result.reference.sum, result.candidate.sum);
    const auto& ours = result.reference.best;
    const auto& theirs = result.candidate.best;
    const auto find = [&](std::int32_t id) { return std::ranges::find(theirs, id, &RankedLogit::id); };
    if (k <= 64) {
        for (const RankedLogit& token : ours) { result.top_shared += find(token.id) != theirs.end(); }
    } else { // quadratic no more
        std::vector<std::int32_t> ids;
        for (const RankedLogit& token : theirs) { ids.push_back(token.id); }
        std::ranges::sort(ids);
        for (const RankedLogit& token : ours) { result.top_shared += std::ranges::binary_search(ids, token.id); }
    }
    const auto place = find(ours[0].id);
    result.rank = place != theirs.end() ? place - theirs.begin() + 1
                                        : rank_of<Arch>(candidate, static_cast<std::size_t>(ours[0].id));
    return result;
}

/// -log softmax(row)[target] in nats; +infinity when that logit is -infinity. Preconditions: target < V, a row with a
/// finite logit that is not refused. The probability itself is exp(-nll).
template <logit_type T> double target_nll(std::span<const T> row, const RowSum& sum, std::size_t target) {
    const auto logit = widen(row[target]);
    return is_finite(logit) ? sum.nll(static_cast<double>(logit)) : std::numeric_limits<double>::infinity();
}

} // namespace logitstat::simd

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "logitstat/simd/log_sum_exp.hpp"
#include "logitstat/simd/top_k.hpp"

namespace logitstat::simd {

/// One of the best logits of a row.
struct RankedLogit {
    std::int32_t id; ///< token: the index in the row
    double logit;    ///< exact
};

/// What one pass over a row of V logits gives.
struct RowSummary {
    RowSum sum;                    ///< maximum and sum of exponentials; where the row is refused
    std::vector<RankedLogit> best; ///< [min(k, V)] best first, equal logits by ascending id; empty for a refused row

    /// Neither refused nor without a finite logit.
    bool usable() const { return !best.empty() && is_finite(best[0].logit); }
    /// Difference of the two best logits; 0 when there is one only, +infinity when the second is -infinity.
    double gap() const { return best.size() > 1 ? best[0].logit - best[1].logit : 0; }
};

/// Log-sum-exp and the k best logits of a row, in one streaming pass; the few blocks that may hold the best are looked
/// at again afterwards. O(V + k log k log(V / k)) for logits in no particular order. Precondition: k >= 1.
template <class Arch = preferred_arch, logit_type T> RowSummary summarize_row(std::span<const T> row, std::size_t k) {
    using Real = wide_t<T>;
    std::vector<Real> maxima;
    maxima.reserve(row.size() / row_block + 1);
    const RowSum sum = sweep_row<Arch>(row, [&](std::span<const T>, std::size_t, Real max) { maxima.push_back(max); });
    if (sum.refused < row.size()) { return {sum, {}}; }
    // The k-th highest of the blocks' maxima: k logits reach it, so that no lower one is among the best.
    Real floor = std::numeric_limits<Real>::lowest();
    if (maxima.size() >= k) {
        auto descending = maxima;
        const auto kth = descending.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(descending.begin(), kth, descending.end(), std::greater<>());
        floor = *kth;
    }
    const bool known = floor > std::numeric_limits<Real>::lowest();
    TopK<Real> top = known ? TopK<Real>(k, floor) : TopK<Real>(k);
    for (std::size_t b = 0; b < maxima.size(); ++b) {
        if (!top.may_enter(maxima[b])) { continue; }
        const std::size_t first = b * row_block;
        top.template scan<Arch>(row.subspan(first, (std::min)(row_block, row.size() - first)), first);
    }
    std::vector<RankedLogit> best;
    for (const auto& [logit, id] : std::move(top).sorted()) { best.push_back({id, static_cast<double>(logit)}); }
    return {sum, std::move(best)};
}

} // namespace logitstat::simd

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/trace/trace.hpp"

/// The paired difference d = nll_candidate - nll_reference at each position, in nats: above 0, the candidate is worse.
/// Pairing removes what both arms share, the difficulty of the text, so that a shift shows which the two perplexities
/// with their errors would hide.
namespace logitstat {

/// Summary of the paired differences.
struct NllDifference {
    std::int64_t n = 0;
    std::optional<double> mean;               ///< nats; nothing for n == 0
    std::optional<double> se;                 ///< iid: s / sqrt(n), s with n - 1; nothing for n < 2
    std::optional<double> t;                  ///< mean / se, "standard errors from zero"; 0 when every d is 0, nothing
                                              ///< when se is missing, or 0 under a mean that is not
    std::int64_t higher = 0, lower = 0;       ///< positions where the candidate's NLL is higher, lower
    std::int64_t equal = 0;                   ///< positions where both NLLs are the same number
    std::optional<double> max_abs;            ///< largest |d|; nothing for n == 0
    std::optional<std::size_t> max_abs_index; ///< where, the first of equals
    std::optional<double> perplexity_ratio;   ///< exp(mean d) = perplexity_candidate / perplexity_reference
    std::optional<double> perplexity_percent; ///< 100 (ratio - 1)
};

/// [n] the differences, in double. O(n). Throws std::invalid_argument when the shapes do not fit.
template <trace_like R, trace_like C> std::vector<double> nll_differences(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto a = reference.view().nll;
    const auto b = candidate.view().nll;
    std::vector<double> d(a.size());
    for (std::size_t i = 0; i < d.size(); ++i) { d[i] = static_cast<double>(b[i]) - static_cast<double>(a[i]); }
    return d;
}

/// Summarises differences. Identical arms give mean 0, SE 0, t 0 and ratio 1, exactly. O(n). Precondition: finite.
inline NllDifference nll_difference(std::span<const double> differences) {
    NllDifference result;
    const Moments moments = moments_of(differences);
    result.n = moments.n;
    result.se = moments.standard_error();
    if (moments.n == 0) { return result; }
    result.mean = moments.mean;
    result.perplexity_ratio = std::exp(moments.mean);
    result.perplexity_percent = 100 * std::expm1(moments.mean);
    if (result.se && (*result.se > 0 || moments.mean == 0)) {
        result.t = moments.mean == 0 ? 0.0 : moments.mean / *result.se;
    }
    double largest = -1;
    for (std::size_t i = 0; i < differences.size(); ++i) {
        const double d = differences[i];
        result.higher += d > 0 ? 1 : 0;
        result.lower += d < 0 ? 1 : 0;
        result.equal += d == 0 ? 1 : 0;
        if (std::abs(d) > largest) {
            largest = std::abs(d);
            result.max_abs_index = i;
        }
    }
    result.max_abs = largest;
    return result;
}

template <trace_like R, trace_like C> NllDifference nll_difference(const R& reference, const C& candidate) {
    return nll_difference(std::span<const double>(nll_differences(reference, candidate)));
}

} // namespace logitstat

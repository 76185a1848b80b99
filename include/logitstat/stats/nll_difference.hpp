#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/correlation.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/sign_test.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "logitstat/trace/trace.hpp"

/// The paired difference d = nll_candidate - nll_reference at each position, in nats: above 0, the candidate is worse.
/// Pairing removes what both arms share, the difficulty of the text, so that a shift shows which the two perplexities
/// with their errors would hide.
namespace logitstat {

/// Summary of the paired differences. What needs a standard error does not exist for one position.
struct NllDifference {
    double mean = 0;   ///< nats
    StandardErrors se; ///< of the mean
    /// mean / preferred se, "standard errors from zero"; 0 when every d is 0, nothing when se is missing, or 0 under a
    /// mean that is not.
    std::optional<double> t;
    std::optional<double> p;                ///< two-sided, Student's t with the preferred error
    std::optional<Interval> interval;       ///< of the mean, with the preferred error
    std::optional<Interval> ratio_interval; ///< of the perplexity ratio: exp of the above
    double perplexity_ratio = 1;            ///< exp(mean d) = perplexity_candidate / perplexity_reference
    double perplexity_percent = 0;          ///< 100 (ratio - 1)
    std::int64_t higher = 0,                ///< positions where the candidate's NLL is higher
        lower = 0;                          ///< positions where it is lower
    std::int64_t equal = 0;                 ///< positions where both NLLs are the same number
    double sign_test_p = 1;                 ///< exact, two-sided, on higher against lower
    double largest = 0;                     ///< the d of largest size, with its sign
    std::size_t largest_index = 0;          ///< where, the first of equals
    std::optional<double> correlation;      ///< of the two arms' NLLs; nothing when one is constant

    /// "Standard errors from zero" by the iid error.
    std::optional<double> t_iid() const {
        if (!se.iid || (*se.iid == 0 && mean != 0)) { return std::nullopt; }
        return mean == 0 ? 0.0 : mean / *se.iid;
    }
};

/// [n] the differences, in double. O(n). Throws std::invalid_argument when the shapes do not fit, or naming the
/// position of a difference that is not finite.
template <trace_like R, trace_like C> std::vector<double> nll_differences(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto a = reference.view().nll;
    const auto b = candidate.view().nll;
    std::vector<double> d(a.size());
    for (std::size_t i = 0; i < d.size(); ++i) { d[i] = static_cast<double>(b[i]) - static_cast<double>(a[i]); }
    if (const std::size_t i = simd::first_non_finite(std::span<const double>(d)); i < d.size()) {
        throw std::invalid_argument("position " + std::to_string(i) + ": the NLLs " + detail::shortest_text(a[i]) +
                                    " and " + detail::shortest_text(b[i]) + " have no finite difference");
    }
    return d;
}

/// The mean of paired differences with its errors and tests. Identical arms give mean 0, SE 0, t 0, p 1 and ratio 1,
/// exactly. `boundaries` are the chunks, as `cluster_boundaries` gives them. Nothing for no positions; no correlation,
/// which takes both columns. O(n lag). Precondition: finite. Throws as `standard_errors`.
inline std::optional<NllDifference> nll_difference(std::span<const double> d, std::span<const std::size_t> boundaries,
                                                   confidence_level level = confidence_level(0.95),
                                                   const HacOptions& hac = {}) {
    if (d.empty()) { return std::nullopt; }
    NllDifference result;
    result.mean = moments_of(d).mean;
    result.perplexity_ratio = std::exp(result.mean);
    result.perplexity_percent = 100 * std::expm1(result.mean);
    result.se = standard_errors(d, boundaries, hac);
    if (const auto se = result.se.value()) {
        if (*se > 0 || result.mean == 0) { result.t = result.mean == 0 ? 0.0 : result.mean / *se; }
        result.p = student_p(result.mean, *se, result.se.df());
        result.interval = student_interval(result.mean, *se, result.se.df(), level);
        result.ratio_interval = Interval{std::exp(result.interval->lo), std::exp(result.interval->hi)};
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
        result.higher += d[i] > 0 ? 1 : 0;
        result.lower += d[i] < 0 ? 1 : 0;
        result.equal += d[i] == 0 ? 1 : 0;
        if (std::abs(d[i]) > std::abs(result.largest)) {
            result.largest = d[i];
            result.largest_index = i;
        }
    }
    result.sign_test_p = sign_test_p(result.higher, result.lower);
    return result;
}

/// The paired difference of two traces, with the correlation of their NLLs. Nothing for no positions. O(n lag). Throws
/// as `nll_differences` and `standard_errors`.
template <trace_like R, trace_like C>
std::optional<NllDifference> nll_difference(const R& reference, const C& candidate,
                                            confidence_level level = confidence_level(0.95),
                                            const HacOptions& hac = {}) {
    auto result =
        nll_difference(nll_differences(reference, candidate), cluster_boundaries(reference.view().chunk), level, hac);
    if (result) { result->correlation = correlation(reference.view().nll, candidate.view().nll); }
    return result;
}

} // namespace logitstat

#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// The candidate's perplexity minus the reference's. (The ratio is the better figure: it does not depend on how hard
/// the text is.)
struct PerplexityDifference {
    double value = 0; ///< perplexity_candidate - perplexity_reference
    /// By the delta method: to first order the difference moves with the mean of
    ///   e_i = perplexity_candidate nll_candidate,i - perplexity_reference nll_reference,i
    /// so that the errors of that mean are its errors, with the covariance of the two arms in them.
    StandardErrors se;
};

/// The difference of the perplexities of two traces of the same positions. Nothing for no position, or when a
/// perplexity is infinite. O(n lag). Precondition: finite NLLs. Throws std::invalid_argument when the shapes do not
/// fit, and as `standard_errors`.
template <trace_like R, trace_like C>
std::optional<PerplexityDifference> perplexity_difference(const R& reference, const C& candidate,
                                                          const HacOptions& hac = {}) {
    detail::check_pair(reference, candidate);
    const auto a = reference.view().nll;
    const auto b = candidate.view().nll;
    if (a.empty()) { return std::nullopt; }
    const double perplexity_a = std::exp(moments_of(a).mean), perplexity_b = std::exp(moments_of(b).mean);
    if (!simd::is_finite(perplexity_a) || !simd::is_finite(perplexity_b)) { return std::nullopt; }
    std::vector<double> e(a.size());
    for (std::size_t i = 0; i < e.size(); ++i) {
        e[i] = perplexity_b * static_cast<double>(b[i]) - perplexity_a * static_cast<double>(a[i]);
    }
    return PerplexityDifference{perplexity_b - perplexity_a,
                                standard_errors(e, cluster_boundaries(reference.view().chunk), hac)};
}

} // namespace logitstat

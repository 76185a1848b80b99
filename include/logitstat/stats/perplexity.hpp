#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// The perplexity of one arm on the corpus tokens.
struct Perplexity {
    double value = 0;         ///< exp(mean NLL); infinite when the mean exceeds what double can hold
    double mean_nll = 0;      ///< nats
    StandardErrors nll_se;    ///< of the mean NLL, in nats
    std::optional<double> se; ///< of the perplexity, from the iid error of the mean NLL; nothing for n < 2 or an
                              ///< infinite perplexity
    /// exp(mean NLL -+ t SE) with the preferred standard error: an interval on the log scale stays above 0 and is as
    /// skewed as a perplexity is. Nothing where that error does not exist.
    std::optional<Interval> interval;
};

/// Perplexity exp(mean NLL) of a column of NLLs in nats, with its errors; the SE of the perplexity is by the delta
/// method, d exp(m) = exp(m) dm. `boundaries` are the chunks, as `cluster_boundaries` gives them. Nothing for no
/// positions. O(n lag). Precondition: finite NLLs. Throws as `standard_errors`.
inline std::optional<Perplexity> perplexity(std::span<const double> nll, std::span<const std::size_t> boundaries,
                                            confidence_level level = confidence_level(0.95),
                                            const HacOptions& hac = {}) {
    if (nll.empty()) { return std::nullopt; }
    Perplexity result;
    result.mean_nll = moments_of(nll).mean;
    result.value = std::exp(result.mean_nll);
    result.nll_se = standard_errors(nll, boundaries, hac);
    if (result.nll_se.iid && simd::is_finite(result.value)) { result.se = result.value * *result.nll_se.iid; }
    if (const auto se = result.nll_se.value()) {
        const Interval log = student_interval(result.mean_nll, *se, result.nll_se.df(), level);
        result.interval = Interval{std::exp(log.lo), std::exp(log.hi)};
    }
    return result;
}

/// The perplexity of a trace. Throws also as `check_shape`.
template <trace_like T>
std::optional<Perplexity> perplexity(const T& trace, confidence_level level = confidence_level(0.95),
                                     const HacOptions& hac = {}) {
    check_shape(trace);
    const auto view = trace.view();
    const std::vector<double> nll(view.nll.begin(), view.nll.end());
    return perplexity(nll, cluster_boundaries(view.chunk), level, hac);
}

} // namespace logitstat

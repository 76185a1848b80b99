#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "logitstat/simd/columns.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// The perplexity of one arm on the corpus tokens.
struct Perplexity {
    double value = 0;         ///< exp(mean NLL); infinite when the mean exceeds what double can hold
    std::optional<double> se; ///< iid standard error, by the delta method; nothing for n < 2 or an infinite value
    Moments nll;              ///< of the per-position NLL, in nats
};

/// Perplexity exp(mean NLL) with its standard error by the delta method, d exp(m) = exp(m) dm, from the iid standard
/// error of the mean NLL (positions taken as independent, which text is not quite). Nothing for no positions. O(n).
/// Precondition: finite NLLs.
template <class Real> std::optional<Perplexity> perplexity(std::span<const Real> nll) {
    if (nll.empty()) { return std::nullopt; }
    Perplexity result;
    result.nll = moments_of(nll);
    result.value = std::exp(result.nll.mean);
    if (const auto se = result.nll.standard_error(); se && simd::is_finite(result.value)) {
        result.se = result.value * *se;
    }
    return result;
}

template <trace_like T> std::optional<Perplexity> perplexity(const T& trace) { return perplexity(trace.view().nll); }

} // namespace logitstat

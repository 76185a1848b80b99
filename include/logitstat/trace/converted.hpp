#pragma once

#include <algorithm>
#include <concepts>

#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// An owning copy whose NLLs and logits are of type Real, with the source of the original when it has one. To a wider
/// type exact; to float each value is rounded to the nearest, which keeps logits descending, and what float cannot hold
/// becomes infinite. Throws std::invalid_argument when the columns do not fit each other. O(n k).
template <std::floating_point Real, trace_like T> Trace<Real> converted(const T& trace) {
    check_shape(trace);
    const auto view = trace.view();
    auto copy = Trace<Real>::with_shape(view.size(), view.k);
    const auto to_real = [](auto x) { return static_cast<Real>(x); };
    std::ranges::copy(view.chunk, copy.chunk.begin());
    std::ranges::copy(view.pos, copy.pos.begin());
    std::ranges::copy(view.target, copy.target.begin());
    std::ranges::copy(view.top_ids, copy.top_ids.begin());
    std::ranges::transform(view.nll, copy.nll.begin(), to_real);
    std::ranges::transform(view.top_logits, copy.top_logits.begin(), to_real);
    if constexpr (requires { trace.source; }) { copy.source = trace.source; }
    return copy;
}

} // namespace logitstat

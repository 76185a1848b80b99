#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

/// Infinite and NaN values in a trace. A position is finite when its NLL and all its k logits are. The tests look at
/// the bits, so they also hold under -ffast-math.
namespace logitstat {

/// Throws std::invalid_argument, naming the arm, the first such position and the column, when a value is infinite or
/// NaN. O(n k), memory bound. Precondition: `check_shape` passes.
template <trace_like T> void require_finite(const T& trace, const std::string& arm = "trace") {
    const auto view = trace.view();
    const auto check = [&](auto column, const std::string& name) {
        const std::size_t i = simd::first_non_finite(column);
        if (i < column.size()) {
            throw std::invalid_argument(arm + ": non-finite " + name + " at position " + std::to_string(i) +
                                        " (chunk " + std::to_string(view.chunk[i]) + ", pos " +
                                        std::to_string(view.pos[i]) + ")");
        }
    };
    check(view.nll, "nll");
    for (std::size_t j = 0; j < view.k; ++j) { check(view.logits(j), "logit of rank " + std::to_string(j + 1)); }
}

/// The indices, ascending, of the positions that are finite in both arms. O(n k). Throws
/// std::invalid_argument when the shapes do not fit.
template <trace_like R, trace_like C>
std::vector<std::size_t> finite_positions(const R& reference, const C& candidate) {
    const auto finite = [](const auto& view, std::size_t i) {
        bool all = simd::is_finite(view.nll[i]);
        for (std::size_t j = 0; j < view.k; ++j) { all = all && simd::is_finite(view.logits(j)[i]); }
        return all;
    };
    detail::check_pair(reference, candidate);
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < reference.view().size(); ++i) {
        if (finite(reference.view(), i) && finite(candidate.view(), i)) { positions.push_back(i); }
    }
    return positions;
}

/// A trace of the given positions, in the given order, with the source of the original when it has one. O(size k).
/// Throws std::invalid_argument for a position beyond the trace, and as `check_shape`.
template <trace_like T> Trace<typename T::real_type> subset(const T& trace, std::span<const std::size_t> positions) {
    check_shape(trace);
    check_positions(trace, positions);
    const auto view = trace.view();
    auto chosen = Trace<typename T::real_type>::with_shape(positions.size(), view.k);
    const auto gather = [&](auto from, auto* to) {
        for (const std::size_t i : positions) { *to++ = from[i]; }
    };
    gather(view.chunk, chosen.chunk.data());
    gather(view.pos, chosen.pos.data());
    gather(view.target, chosen.target.data());
    gather(view.nll, chosen.nll.data());
    for (std::size_t j = 0; j < view.k; ++j) {
        gather(view.ids(j), chosen.top_ids.data() + j * positions.size());
        gather(view.logits(j), chosen.top_logits.data() + j * positions.size());
    }
    if constexpr (requires { trace.source; }) { chosen.source = trace.source; }
    return chosen;
}

} // namespace logitstat

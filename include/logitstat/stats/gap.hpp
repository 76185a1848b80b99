#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/simd/gap_sweep.hpp"
#include "logitstat/trace/trace.hpp"

/// The gap g = a_1 - a_2 between the two best logits of a position, in double whatever the storage type: how clearly
/// the model preferred its choice. g = 2 is a factor of e^2 = 7.4 in probability.
namespace logitstat {

namespace detail {
/// The error for a column pair that `simd::fill_gaps` refused; `from` is where to start looking.
template <trace_like T> [[noreturn]] void throw_bad_gap(const T& trace, std::size_t from) {
    const auto best = trace.view().logits(0);
    const auto second = trace.view().logits(1);
    for (std::size_t i = from; i < best.size(); ++i) {
        const double gap = static_cast<double>(best[i]) - static_cast<double>(second[i]);
        if (!simd::is_finite(gap) || gap < 0) {
            throw std::invalid_argument("position " + std::to_string(i) + ": the two best logits are " +
                                        detail::shortest_text(best[i]) + " and " + detail::shortest_text(second[i]) +
                                        ", which have no finite gap >= 0");
        }
    }
    throw std::logic_error("no bad gap found");
}
} // namespace detail

/// [n] the gaps of a trace, in logits. O(n). Throws std::invalid_argument naming the position when a gap is negative
/// (logits not descending) or not finite.
template <trace_like T> std::vector<double> gaps(const T& trace) {
    check_shape(trace);
    const auto view = trace.view();
    std::vector<double> gap(view.size());
    if (!simd::fill_gaps(view.logits(0), view.logits(1), std::span<double>(gap))) { detail::throw_bad_gap(trace, 0); }
    return gap;
}

/// Number of hard ties: positions whose two best logits are equal, g == 0, so that the first token is only an order of
/// printing. O(n); exact, and free of the throws of `gaps` because equality needs no subtraction. NaN is no tie.
/// Throws as `check_shape`.
template <trace_like T> std::int64_t count_hard_ties(const T& trace) {
    check_shape(trace);
    const auto best = trace.view().logits(0);
    const auto second = trace.view().logits(1);
    std::int64_t ties = 0;
    for (std::size_t i = 0; i < best.size(); ++i) { ties += best[i] == second[i] ? 1 : 0; }
    return ties;
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

/// Top-1 agreement: do both arms put the same token first? With r the reference's best token and q the candidate's,
/// a position agrees when r == q; ties keep the order that each trace recorded.
namespace logitstat {

/// Number of positions where the best tokens differ. Empty traces give 0. O(n), one pass over two id columns.
/// Throws std::invalid_argument when the shapes do not fit each other.
template <trace_like R, trace_like C> std::int64_t count_disagreements(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    return simd::count_different(reference.view().ids(0), candidate.view().ids(0));
}

/// [n] 1 where the best tokens differ, else 0: the mask to combine with conditions of one's own. O(n). Throws as above.
template <trace_like R, trace_like C> std::vector<std::uint8_t> disagreements(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto r = reference.view().ids(0);
    const auto q = candidate.view().ids(0);
    std::vector<std::uint8_t> mask(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) { mask[i] = r[i] != q[i]; }
    return mask;
}

/// The positions where the best tokens differ, ascending: what the statistics of disagreements walk. O(n). Throws as
/// above.
template <trace_like R, trace_like C>
std::vector<std::size_t> disagreement_positions(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto r = reference.view().ids(0);
    const auto q = candidate.view().ids(0);
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < r.size(); ++i) {
        i += simd::first_difference(r.subspan(i), q.subspan(i));
        if (i < r.size()) { positions.push_back(i); }
    }
    return positions;
}

} // namespace logitstat

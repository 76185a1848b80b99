#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/simd/gap_sweep.hpp"
#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/gap.hpp"
#include "logitstat/trace/trace.hpp"

/// Mismatches where the reference had decided. A position is decided at t when the reference's gap is at least t; there
/// another token is an error, while at an undecided position both arms split a near-tie.
namespace logitstat {

/// D(t) and M(t): the positions decided at a threshold, and those of them that disagree.
struct DecidedCount {
    double threshold = 0;        ///< logits
    std::int64_t positions = 0;  ///< D: positions with gap >= threshold
    std::int64_t mismatches = 0; ///< M: those whose top-1 tokens differ

    /// M / D; nothing when no position is decided.
    std::optional<double> rate() const {
        if (positions == 0) { return std::nullopt; }
        return static_cast<double>(mismatches) / static_cast<double>(positions);
    }
    /// Same threshold, same counts.
    friend bool operator==(const DecidedCount&, const DecidedCount&) = default;
};

/// Throws std::invalid_argument unless a threshold is finite and >= 0.
inline void check_threshold(double threshold) {
    if (!simd::is_finite(threshold) || threshold < 0) {
        throw std::invalid_argument("a gap threshold must be finite and at least 0, not " +
                                    detail::shortest_text(threshold));
    }
}

/// D and M at each threshold, in the order given; repeated and unsorted thresholds are fine, and there may be none.
/// One streaming pass over the columns whatever the number of thresholds. Throws std::invalid_argument on a bad
/// threshold, shapes that do not fit, or a reference without finite descending logits.
template <trace_like R, trace_like C>
std::vector<DecidedCount> threshold_sweep(const R& reference, const C& candidate, std::span<const double> thresholds) {
    detail::check_pair(reference, candidate);
    for (const double threshold : thresholds) { check_threshold(threshold); }
    const auto ref = reference.view();
    std::vector<std::int64_t> decided(thresholds.size()), mismatches(thresholds.size());
    const std::size_t done = simd::gap_sweep(ref.ids(0), candidate.view().ids(0), ref.logits(0), ref.logits(1),
                                             thresholds, std::span(decided), std::span(mismatches));
    if (done < ref.size()) { detail::throw_bad_gap(reference, done); }
    std::vector<DecidedCount> counts;
    for (std::size_t j = 0; j < thresholds.size(); ++j) {
        counts.push_back({thresholds[j], decided[j], mismatches[j]});
    }
    return counts;
}

/// The same counts for margins that are given position by position (ulps, probabilities): D = positions with
/// margin >= threshold, M = those of them where `differs` is not 0. O(n thresholds).
/// Throws std::invalid_argument on a bad threshold or when the sizes differ. Precondition: finite margins.
inline std::vector<DecidedCount> margin_sweep(std::span<const double> margins, std::span<const std::uint8_t> differs,
                                              std::span<const double> thresholds) {
    if (margins.size() != differs.size()) { throw std::invalid_argument("margins and mask differ in length"); }
    std::vector<DecidedCount> counts;
    for (const double threshold : thresholds) {
        check_threshold(threshold);
        DecidedCount count{threshold, 0, 0};
        for (std::size_t i = 0; i < margins.size(); ++i) {
            const bool decided = margins[i] >= threshold;
            count.positions += decided ? 1 : 0;
            count.mismatches += decided && differs[i] != 0 ? 1 : 0;
        }
        counts.push_back(count);
    }
    return counts;
}

/// The sweep at a single threshold. O(n). Throws as `threshold_sweep`.
template <trace_like R, trace_like C>
DecidedCount decided_mismatches(const R& reference, const C& candidate, double threshold) {
    return threshold_sweep(reference, candidate, std::span<const double>(&threshold, 1)).front();
}

} // namespace logitstat

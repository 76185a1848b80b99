#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "logitstat/stats/sweep.hpp"

namespace logitstat {

/// The sweep over all thresholds at once: D(t) and M(t) are step functions that change only at gaps that occur.
///
/// `steps` holds one entry for each distinct gap of the reference, ascending, with D and M at a threshold equal to it.
/// Both counts never increase along the curve, and both are 0 beyond the last step.
struct StepCurve {
    std::vector<DecidedCount> steps; ///< see above; empty for no positions

    /// D(t) and M(t) at any t >= 0. O(log steps).
    DecidedCount at(double threshold) const {
        check_threshold(threshold);
        const auto step = std::lower_bound(steps.begin(), steps.end(), threshold,
                                           [](const DecidedCount& s, double t) { return s.threshold < t; });
        if (step == steps.end()) { return {threshold, 0, 0}; }
        return {threshold, step->positions, step->mismatches};
    }
};

/// The exact step curve of a pair. O(n log n). Throws as `threshold_sweep`.
template <trace_like R, trace_like C> StepCurve step_curve(const R& reference, const C& candidate) {
    const std::vector<double> gap = gaps(reference);
    const std::vector<std::uint8_t> differs = disagreements(reference, candidate);
    std::vector<std::size_t> order(gap.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return gap[a] > gap[b]; });
    StepCurve curve;
    DecidedCount so_far;
    for (std::size_t i = 0; i < order.size(); ++i) { // from the largest gap down, so that counts only grow
        so_far.threshold = gap[order[i]];
        so_far.positions += 1;
        so_far.mismatches += differs[order[i]];
        const bool last_of_its_gap = i + 1 == order.size() || gap[order[i + 1]] != so_far.threshold;
        if (last_of_its_gap) { curve.steps.push_back(so_far); }
    }
    std::reverse(curve.steps.begin(), curve.steps.end());
    return curve;
}

} // namespace logitstat

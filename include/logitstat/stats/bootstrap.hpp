#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/quantile.hpp"

namespace logitstat {

/// What can be chosen about a bootstrap.
struct BootstrapOptions {
    std::size_t replicates = 2000; ///< drawn samples; 0 is for `compare`, which then draws none
    std::uint32_t seed = 1;        ///< of std::mt19937
};

/// Percentile interval of a ratio of sums, sum of a_c over sum of b_c, when whole chunks are drawn with replacement
/// (Efron and Tibshirani 1993, chapters 8 and 13): the mean NLL difference is (sum of d) / positions, the mismatch rate
/// is mismatches / decided. Chunks keep their inner dependence, so none of it has to be modelled.
///
/// Replicates whose denominator is 0 are left out. Nothing for fewer than two chunks, or when fewer than half of the
/// replicates are left. The same seed gives the same interval everywhere: std::mt19937, draw r becomes chunk (r G) >>
/// 32, G draws a replicate. Percentiles by linear interpolation (type 7). O(replicates x chunks). Throws
/// std::invalid_argument when the spans differ in size, or for no replicates.
inline std::optional<Interval> bootstrap_ratio(std::span<const double> a, std::span<const double> b,
                                               confidence_level level, const BootstrapOptions& options = {}) {
    if (a.size() != b.size()) {
        throw std::invalid_argument("numerators and denominators of different numbers of chunks");
    }
    if (options.replicates == 0) { throw std::invalid_argument("a bootstrap needs replicates"); }
    const std::size_t groups = a.size();
    if (groups < 2) { return std::nullopt; }
    std::mt19937 random(options.seed);
    std::vector<double> ratios;
    ratios.reserve(options.replicates);
    for (std::size_t r = 0; r < options.replicates; ++r) {
        double numerator = 0, denominator = 0;
        for (std::size_t draw = 0; draw < groups; ++draw) {
            const auto chunk = static_cast<std::size_t>((static_cast<std::uint64_t>(random()) * groups) >> 32);
            numerator += a[chunk];
            denominator += b[chunk];
        }
        if (denominator != 0) { ratios.push_back(numerator / denominator); }
    }
    if (2 * ratios.size() < options.replicates) { return std::nullopt; }
    const std::array<double, 2> tails{level.alpha() / 2, 1 - level.alpha() / 2};
    const std::vector<double> ends = quantiles(std::move(ratios), tails, quantile_rule::linear);
    return Interval{ends[0], ends[1]};
}

} // namespace logitstat

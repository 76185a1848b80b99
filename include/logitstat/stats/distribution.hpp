#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/quantile.hpp"
#include "logitstat/stats/standard_error.hpp"

namespace logitstat {

/// How a figure that each position has, such as its KL divergence, is spread over the positions.
struct Distribution {
    /// Of the quantiles that are computed, ascending.
    static constexpr std::array<double, 11> probabilities{0.001, 0.01, 0.05, 0.1,  0.25, 0.5,
                                                          0.75,  0.9,  0.95, 0.99, 0.999};

    std::int64_t infinite = 0;        ///< positions whose value is an infinity: counted here, left out of all below
    double mean = 0;                  ///< of the finite values, as are all the figures
    StandardErrors se;                ///< of the mean
    std::optional<Interval> interval; ///< of the mean, by the preferred error; nothing where that does not exist
    std::array<double, probabilities.size()> quantiles{}; ///< at `probabilities`
    double min = 0,                                       ///< smallest
        max = 0;                                          ///< largest
    std::size_t min_index = 0,                            ///< position of the smallest, the first of equals
        max_index = 0;                                    ///< position of the largest, the first of equals

    /// The quantile at one of `probabilities`. Throws std::invalid_argument for another.
    double quantile(double p) const {
        const auto at = std::ranges::find(probabilities, p);
        if (at == probabilities.end()) { throw std::invalid_argument("no such quantile was computed"); }
        return quantiles[static_cast<std::size_t>(at - probabilities.begin())];
    }
};

/// The distribution of a column of n values, whose positions belong to the chunks that begin at `boundaries` (as
/// `cluster_boundaries` gives them). Infinite values (a KL divergence where the candidate rules out what the reference
/// does not) have no place in a mean: they are counted apart. Nothing when no value is finite. O(n lag). Throws
/// std::invalid_argument when the chunks do not cover the values in order, naming the position of a NaN, and as
/// `standard_errors` of the finite values.
inline std::optional<Distribution> distribution(std::span<const double> values, std::span<const std::size_t> boundaries,
                                                quantile_rule rule = quantile_rule::linear,
                                                confidence_level level = confidence_level(0.95),
                                                const HacOptions& hac = {}) {
    check_boundaries(boundaries, values.size());
    Distribution result;
    std::vector<double> finite;
    std::vector<std::size_t> index, chunks{0};
    finite.reserve(values.size());
    index.reserve(values.size());
    for (std::size_t c = 0; c + 1 < boundaries.size(); ++c) {
        for (std::size_t i = boundaries[c]; i < boundaries[c + 1]; ++i) {
            if (simd::is_finite(values[i])) {
                finite.push_back(values[i]);
                index.push_back(i);
            } else if (simd::is_infinite(values[i])) {
                ++result.infinite;
            } else {
                throw std::invalid_argument("the distribution of values of which one is NaN, at position " +
                                            std::to_string(i));
            }
        }
        if (finite.size() > chunks.back()) { chunks.push_back(finite.size()); }
    }
    if (finite.empty()) { return std::nullopt; }
    result.mean = moments_of(std::span<const double>(finite)).mean;
    HacOptions lags = hac; // asked of all values; what is left may be shorter
    if (lags.lag) { lags.lag = (std::min)(*lags.lag, finite.size() - 1); }
    result.se = standard_errors(finite, chunks, lags);
    if (const auto se = result.se.value()) {
        result.interval = student_interval(result.mean, *se, result.se.df(), level);
    }
    const auto [least, most] = std::minmax_element(finite.begin(), finite.end()); // the last of equal maxima
    const auto first_most = std::find(finite.begin(), finite.end(), *most);
    result.min = *least;
    result.max = *most;
    result.min_index = index[static_cast<std::size_t>(least - finite.begin())];
    result.max_index = index[static_cast<std::size_t>(first_most - finite.begin())];
    std::ranges::copy(quantiles(std::move(finite), Distribution::probabilities, rule), result.quantiles.begin());
    return result;
}

} // namespace logitstat

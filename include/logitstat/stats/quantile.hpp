#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/simd/columns.hpp"

namespace logitstat {

/// How a quantile between two order statistics is read.
enum class quantile_rule {
    floor_index, ///< sorted[min(floor(p n), n-1)]: always a value that occurred; what published trace tables use
    linear,      ///< Hyndman and Fan (1996), type 7: interpolated at p (n-1); numpy
    linear_float ///< the same with p (n-1) rounded to float, for reproducing llama.cpp's figures
};

/// The quantiles of `values` at each p in [0, 1], in the order given; p need not be sorted. Ties need no care. Reorders
/// its copy only. O(n log #p) expected: selection, not sorting. Throws std::invalid_argument when `values` is empty or
/// holds a non-finite value, or a p is outside [0, 1] or NaN.
inline std::vector<double> quantiles(std::vector<double> values, std::span<const double> probabilities,
                                     quantile_rule rule = quantile_rule::floor_index) {
    const std::size_t n = values.size();
    if (n == 0) { throw std::invalid_argument("the quantile of no values"); }
    if (simd::first_non_finite(std::span<const double>(values)) < n) {
        throw std::invalid_argument("the quantile of a non-finite value");
    }
    // Ranks are selected in ascending order, each in what the one before left to its right.
    std::size_t selected = 0;
    const auto order_statistic = [&](std::size_t rank) {
        const auto begin = values.begin();
        if (rank >= selected) {
            std::nth_element(begin + static_cast<std::ptrdiff_t>(selected), begin + static_cast<std::ptrdiff_t>(rank),
                             values.end());
            selected = rank + 1;
        }
        return values[rank];
    };
    std::vector<std::size_t> ascending(probabilities.size());
    for (std::size_t j = 0; j < ascending.size(); ++j) {
        const double p = probabilities[j];
        if (!simd::is_finite(p) || p < 0 || p > 1) {
            throw std::invalid_argument("a quantile's probability must be in [0, 1], not " + detail::shortest_text(p));
        }
        ascending[j] = j;
    }
    std::sort(ascending.begin(), ascending.end(),
              [&](std::size_t a, std::size_t b) { return probabilities[a] < probabilities[b]; });
    std::vector<double> result(probabilities.size());
    for (const std::size_t j : ascending) {
        if (rule == quantile_rule::floor_index) {
            const auto rank = static_cast<std::size_t>(probabilities[j] * static_cast<double>(n));
            result[j] = order_statistic((std::min)(rank, n - 1));
        } else {
            double place = probabilities[j] * static_cast<double>(n - 1);
            if (rule == quantile_rule::linear_float) {
                place =
                    (std::min)(static_cast<double>(static_cast<float>(probabilities[j]) * static_cast<float>(n - 1)),
                               static_cast<double>(n - 1));
            }
            const auto below = static_cast<std::size_t>(place);
            const double low = order_statistic(below), high = order_statistic((std::min)(below + 1, n - 1));
            result[j] = low + (place - static_cast<double>(below)) * (high - low);
        }
    }
    return result;
}

} // namespace logitstat

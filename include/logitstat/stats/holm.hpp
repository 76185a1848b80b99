#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/simd/columns.hpp"

namespace logitstat {

/// P-values of several tests, adjusted so that rejecting those below alpha errs anywhere with probability at most
/// alpha, whatever the dependence between the tests (Holm 1979, jstor.org/stable/4615733): the i-th smallest of m is
/// multiplied by m - i + 1, kept monotone and at most 1. In the order given; ties are adjusted alike; empty for none.
/// O(m log m). Throws std::invalid_argument for a value outside [0, 1] or NaN.
inline std::vector<double> holm_adjusted(std::span<const double> p) {
    for (const double value : p) {
        if (!(simd::is_finite(value) && value >= 0 && value <= 1)) {
            throw std::invalid_argument("a p-value must be in [0, 1], not " + detail::shortest_text(value));
        }
    }
    std::vector<std::size_t> order(p.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
    std::vector<double> adjusted(p.size());
    double so_far = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        so_far = (std::max)(so_far, (std::min)(1.0, p[order[i]] * static_cast<double>(order.size() - i)));
        adjusted[order[i]] = so_far;
    }
    return adjusted;
}

} // namespace logitstat

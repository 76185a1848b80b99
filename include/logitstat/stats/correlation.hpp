#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/dot.hpp"
#include "logitstat/stats/moments.hpp"

namespace logitstat {

/// Pearson's correlation of two columns, in [-1, 1]: how much of the difficulty of the text both arms share. Nothing
/// for n < 2, when either column is constant, or when squares leave double's range. Two passes, O(n). Throws
/// std::invalid_argument when the sizes differ. Precondition: finite values.
template <class A, class B> std::optional<double> correlation(std::span<const A> a, std::span<const B> b) {
    if (a.size() != b.size()) { throw std::invalid_argument("the correlation of columns of different sizes"); }
    const auto centered = [](auto column) {
        const double mean = moments_of(column).mean;
        std::vector<double> e(column.size());
        for (std::size_t i = 0; i < e.size(); ++i) { e[i] = static_cast<double>(column[i]) - mean; }
        return e;
    };
    const std::vector<double> x = centered(a), y = centered(b);
    const double norm = std::sqrt(simd::dot(x, x)) * std::sqrt(simd::dot(y, y));
    if (a.size() < 2 || !(norm > 0) || !simd::is_finite(norm)) { return std::nullopt; }
    return std::clamp(simd::dot(x, y) / norm, -1.0, 1.0);
}

} // namespace logitstat

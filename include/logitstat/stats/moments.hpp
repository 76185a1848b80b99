#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "logitstat/simd/columns.hpp"

namespace logitstat {

/// Count, mean and sum of squared deviations from the mean, in double: the accumulator behind every mean and standard
/// error. Merging is associative up to rounding, and blocks are always cut at the same places, so a result does not
/// depend on who computed which block.
struct Moments {
    std::int64_t n = 0; ///< values
    double mean = 0;    ///< 0 when n == 0
    double m2 = 0;      ///< sum of (x - mean)^2, >= 0

    /// Adds the values of another accumulator (Chan, Golub and LeVeque 1983). With delta = mean_b - mean_a the joint
    /// mean is mean_a + delta n_b / n. Each part's deviations shift by its distance from that mean, delta n_b / n and
    /// delta n_a / n, and the cross terms vanish since deviations sum to zero, which leaves
    ///   m2 = m2_a + m2_b + n_a (delta n_b / n)^2 + n_b (delta n_a / n)^2 = m2_a + m2_b + delta^2 n_a n_b / n.
    Moments& merge(const Moments& other) {
        if (other.n == 0) { return *this; }
        if (n == 0) { return *this = other; }
        const auto a = static_cast<double>(n), b = static_cast<double>(other.n);
        const double delta = other.mean - mean;
        mean += delta * (b / (a + b));
        m2 += other.m2 + delta * delta * (a * b / (a + b));
        n += other.n;
        return *this;
    }

    /// Sample variance m2 / (n - 1); nothing for n < 2, or when squares left double's range.
    std::optional<double> variance() const {
        if (n < 2 || !simd::is_finite(m2)) { return std::nullopt; }
        return m2 / static_cast<double>(n - 1);
    }

    /// Standard error of the mean of independent values, s / sqrt(n); nothing where the variance is none, exactly 0
    /// when all are equal.
    std::optional<double> standard_error() const {
        const auto s2 = variance();
        if (!s2) { return std::nullopt; }
        return std::sqrt(*s2 / static_cast<double>(n));
    }
};

/// The moments of any range of numbers given by index: `value(i)` for i in [0, n). Two passes over each block of 256
/// (mean, then deviations), blocks merged: no E[x^2] - E[x]^2, and the error grows with the number of blocks, not of
/// values. Equal values give m2 == 0 exactly. O(n).
template <class Value> Moments moments_of(std::size_t n, Value value) {
    constexpr std::size_t block = 256;
    Moments total;
    double x[block];
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t count = (std::min)(block, n - first);
        // Taking the block's first value off makes equal values exact and keeps the sums small. One of what is left is
        // then 0, and m2 at least half the largest square: the rounding of the mean, 256 ulps of the largest, whose
        // square Chan, Golub and LeVeque take off, is beyond the digits of m2.
        const double origin = static_cast<double>(value(first));
        double sum = 0, m2 = 0;
        for (std::size_t i = 0; i < count; ++i) {
            x[i] = static_cast<double>(value(first + i)) - origin;
            sum += x[i];
        }
        const double mean = sum / static_cast<double>(count);
        for (std::size_t i = 0; i < count; ++i) {
            const double d = x[i] - mean;
            m2 += d * d;
        }
        total.merge({static_cast<std::int64_t>(count), origin + mean, m2});
    }
    return total;
}

/// The moments of a column: all 0 when it is empty. O(n).
template <class Real> Moments moments_of(std::span<const Real> values) {
    return moments_of(values.size(), [&](std::size_t i) { return values[i]; });
}

} // namespace logitstat

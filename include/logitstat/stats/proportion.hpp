#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>

#include "logitstat/stats/confidence.hpp"

/// Intervals for a rate k / n: what a count of mismatches, a zero above all, does and does not exclude.
namespace logitstat {

namespace detail {
inline void check_counts(std::int64_t k, std::int64_t n) {
    if (k < 0 || n < 0 || k > n) { throw std::invalid_argument("a proportion needs 0 <= k <= n"); }
}
/// Clopper-Pearson limits for k of n, which need not be whole numbers; each tail holds `tail`.
inline double clopper_pearson_lower(double k, double n, double tail) {
    return k <= 0 ? 0.0 : boost::math::quantile(boost::math::beta_distribution<>(k, n - k + 1), tail);
}
inline double clopper_pearson_upper(double k, double n, double tail) {
    return k >= n
               ? 1.0
               : boost::math::quantile(boost::math::complement(boost::math::beta_distribution<>(k + 1, n - k), tail));
}
} // namespace detail

/// The exact two-sided interval (Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404): covers at least as often as it
/// says, for independent positions. k = 0 gives lo = 0, k = n gives hi = 1, n = 0 gives [0, 1]. O(1).
/// Throws std::invalid_argument unless 0 <= k <= n.
inline Interval clopper_pearson(std::int64_t k, std::int64_t n, confidence_level level) {
    detail::check_counts(k, n);
    const auto x = static_cast<double>(k), size = static_cast<double>(n);
    return {detail::clopper_pearson_lower(x, size, level.alpha() / 2),
            detail::clopper_pearson_upper(x, size, level.alpha() / 2)};
}

/// The exact one-sided upper bound: the largest rate not excluded at `level`. For k = 0 it is 1 - alpha^(1/n), so that
/// "0 of 274" also says "below 1.1 % at 95 %". 1 for k = n and for n = 0. O(1). Throws as above.
inline double proportion_upper_bound(std::int64_t k, std::int64_t n, confidence_level level) {
    detail::check_counts(k, n);
    return detail::clopper_pearson_upper(static_cast<double>(k), static_cast<double>(n), level.alpha());
}

/// Wilson's score interval (1927, doi:10.1080/01621459.1927.10502953): shorter than Clopper-Pearson, covers as stated
/// on average over rates but not at each. n = 0 gives [0, 1]. O(1). Throws as above.
inline Interval wilson(std::int64_t k, std::int64_t n, confidence_level level) {
    detail::check_counts(k, n);
    if (n == 0) { return {0, 1}; }
    const double z = boost::math::quantile(boost::math::complement(boost::math::normal(), level.alpha() / 2));
    const auto size = static_cast<double>(n);
    const double p = static_cast<double>(k) / size;
    const double center = (p + z * z / (2 * size)) / (1 + z * z / size);
    const double half = z / (1 + z * z / size) * std::sqrt(p * (1 - p) / size + z * z / (4 * size * size));
    return {k == 0 ? 0.0 : center - half, k == n ? 1.0 : center + half};
}

/// A rate with everything that says how sure it is.
struct Proportion {
    std::int64_t k = 0,         ///< how many of them
        n = 0;                  ///< how many there are
    std::optional<double> rate; ///< k / n; nothing for n == 0
    Interval interval{0, 1};    ///< Clopper-Pearson, two-sided
    double upper_bound = 1;     ///< Clopper-Pearson, one-sided, at the same level
};

/// k of n with the exact interval and bound. O(1). Throws std::invalid_argument unless 0 <= k <= n.
inline Proportion proportion(std::int64_t k, std::int64_t n, confidence_level level = confidence_level(0.95)) {
    Proportion result{k, n, std::nullopt, clopper_pearson(k, n, level), proportion_upper_bound(k, n, level)};
    if (n > 0) { result.rate = static_cast<double>(k) / static_cast<double>(n); }
    return result;
}

} // namespace logitstat

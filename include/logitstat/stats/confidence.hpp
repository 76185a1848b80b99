#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include <boost/math/distributions/students_t.hpp>

#include "logitstat/error.hpp"
#include "logitstat/simd/columns.hpp"

namespace logitstat {

/// A confidence level in (0, 1), such as 0.95: a type of its own, so that it is never confused with a threshold, a rate
/// or an alpha.
class confidence_level {
  public:
    /// Throws std::invalid_argument unless 0 < level < 1.
    constexpr explicit confidence_level(double level) : level_(level) {
        if (!simd::is_finite(level) || level <= 0 || level >= 1) {
            throw std::invalid_argument("a confidence level must be between 0 and 1, not " +
                                        detail::shortest_text(level));
        }
    }
    constexpr double value() const noexcept { return level_; }     ///< the level, in (0, 1)
    constexpr double alpha() const noexcept { return 1 - level_; } ///< what both tails hold together

  private:
    double level_;
};

/// An interval [lo, hi]; either end may be infinite.
struct Interval {
    double lo = 0, ///< may be -infinity
        hi = 0;    ///< may be +infinity
    /// Equal ends, exactly.
    friend bool operator==(const Interval&, const Interval&) = default;
};

namespace detail {
/// The two-sided Student quantile t with P(|T| <= t) = level. Precondition: df > 0.
inline double student_quantile(double df, confidence_level level) {
    return boost::math::quantile(boost::math::complement(boost::math::students_t(df), level.alpha() / 2));
}
} // namespace detail

/// mean -+ t se with Student's t on df degrees of freedom. A zero se gives the point [mean, mean].
/// Throws std::invalid_argument for df <= 0, a negative se, or a mean or se that is not finite. O(1).
inline Interval student_interval(double mean, double se, double df, confidence_level level) {
    if (!simd::is_finite(mean) || !simd::is_finite(se) || !(df > 0) || !(se >= 0)) {
        throw std::invalid_argument("an interval needs df > 0 and a standard error >= 0");
    }
    const double half = se == 0 ? 0.0 : detail::student_quantile(df, level) * se;
    return {mean - half, mean + half};
}

/// Two-sided p-value of "the mean is 0" by Student's t. With se == 0: 1 when the mean is 0 (nothing moved at all), else
/// 0. O(1). Throws as `student_interval`.
inline double student_p(double mean, double se, double df) {
    if (!simd::is_finite(mean) || !simd::is_finite(se) || !(df > 0) || !(se >= 0)) {
        throw std::invalid_argument("a t-test needs a finite mean, df > 0 and a standard error >= 0");
    }
    if (mean == 0) { return 1; }
    if (se == 0) { return 0; }
    const double t = mean < 0 ? -mean / se : mean / se;
    if (!simd::is_finite(t)) { return 0; }
    return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(df), t));
}

} // namespace logitstat

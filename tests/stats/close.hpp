#pragma once

#include <cmath>
#include <optional>

#include "logitstat/simd/columns.hpp"

/// Comparison with an expected value of 17 significant digits.
namespace expected {

/// |actual - wanted| <= relative |wanted|. Never true for NaN or infinity, whatever the compiler assumes about them; a
/// wanted zero must be met exactly.
inline bool close(double actual, double wanted, double relative) {
    return logitstat::simd::is_finite(actual) && logitstat::simd::is_finite(wanted) &&
           std::fabs(actual - wanted) <= relative * std::fabs(wanted);
}
inline bool close(std::optional<double> actual, double wanted, double relative) {
    return actual.has_value() && close(*actual, wanted, relative);
}

} // namespace expected

#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/standard_error.hpp"

namespace logitstat {

/// sqrt(mean x^2), which unlike the mean does not let ups and downs cancel.
struct RootMeanSquare {
    double value = 0; ///< in the unit of the values, >= 0
    /// Of the value, by the delta method: d sqrt(m) = dm / (2 sqrt(m)), with each of the three errors of m = mean x^2.
    /// Zero when every x is.
    StandardErrors se;
};

/// The root mean square of a column, whose positions belong to the chunks that begin at `boundaries`. Nothing for no
/// value. O(n lag). Precondition: finite values whose squares are in double's range. Throws as
/// `standard_errors`.
inline std::optional<RootMeanSquare>
root_mean_square(std::span<const double> values, std::span<const std::size_t> boundaries, const HacOptions& hac = {}) {
    if (values.empty()) { return std::nullopt; }
    std::vector<double> squares(values.begin(), values.end());
    for (double& x : squares) { x *= x; }
    RootMeanSquare result;
    result.value = std::sqrt(moments_of(std::span<const double>(squares)).mean);
    result.se = standard_errors(squares, boundaries, hac);
    for (std::optional<double>* se : {&result.se.iid, &result.se.clustered, &result.se.hac}) {
        if (*se && result.value > 0) { **se /= 2 * result.value; }
    }
    return result;
}

} // namespace logitstat

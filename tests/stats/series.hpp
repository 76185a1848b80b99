#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "logitstat/stats/clusters.hpp"

/// Short deterministic series whose values are exact in binary, and ways to cut them into chunks. In R:
///   spread  <- function(i) ((7*i*i + 3*i) %% 23 - 9) / 8
///   stepped <- function(i) ((7*(i %/% 5)) %% 11) / 4 + ((5*i) %% 13) / 32
///   growing <- function(i) (((37*i) %% 19) - 9) * (i %% 50 + 1) / 64
///   eights  <- function(i) i %/% 8
///   roots   <- function(i) floor(sqrt(i))
/// for i = 0, 1, ..., n - 1. `spread` looks independent, `stepped` is autocorrelated, `growing` heteroskedastic.
namespace series {

inline double spread(std::int64_t i) { return static_cast<double>((7 * i * i + 3 * i) % 23 - 9) / 8; }
inline double stepped(std::int64_t i) {
    return static_cast<double>(7 * (i / 5) % 11) / 4 + static_cast<double>(5 * i % 13) / 32;
}
inline double growing(std::int64_t i) { return static_cast<double>((37 * i % 19 - 9) * (i % 50 + 1)) / 64; }

inline std::int32_t eights(std::int64_t i) { return static_cast<std::int32_t>(i / 8); } ///< chunks of 8, a last one
inline std::int32_t roots(std::int64_t i) {                                             ///< chunks of 1, 3, 5, 7, ...
    return static_cast<std::int32_t>(std::sqrt(static_cast<double>(i)));
}

using Formula = double (*)(std::int64_t);

template <class Value> auto take(std::size_t n, Value value) {
    std::vector<decltype(value(0))> values;
    for (std::size_t i = 0; i < n; ++i) { values.push_back(value(static_cast<std::int64_t>(i))); }
    return values;
}
inline std::vector<std::size_t> chunks(std::size_t n, std::int32_t (*chunk)(std::int64_t)) {
    return logitstat::cluster_boundaries(take(n, chunk));
}

} // namespace series

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/proportion.hpp"

namespace logitstat {

/// A rate over positions that come in chunks, whose mismatches may cluster.
struct ClusteredProportion {
    double design_effect = 1;  ///< variance of the rate over what independent positions would have; 1 where unknown
    double effective_size = 0; ///< n / design effect, corrected for few chunks, at most n
    Interval interval{0, 1};   ///< two-sided, of the rate; [0, 1] without positions
    double upper_bound = 1;    ///< one-sided, at the same level and the same effective size
};

/// The Korn-Graubard interval (1998, Survey Methodology 24, 193-201): Clopper-Pearson at the effective sample size
///   n* = n / deff (t_(n-1) / t_(G-1))^2,   deff = var_clustered / (p (1 - p) / n) ,
/// with var_clustered = G / (G - 1) sum over chunks (k_c - p n_c)^2 / n^2. n* is kept at or below n, so that the
/// interval is never narrower than for independent positions. Where the data cannot show clustering (k = 0, k = n, or
/// fewer than two chunks with counted positions) deff is 1 and n* is n: read it with that in mind.
///
/// k_c of n_c positions in each chunk; chunks without counted positions carry no information and are left out.
/// O(chunks). Throws std::invalid_argument unless both spans are equally long and 0 <= k_c <= n_c.
inline ClusteredProportion korn_graubard(std::span<const std::int64_t> k_of, std::span<const std::int64_t> n_of,
                                         confidence_level level) {
    if (k_of.size() != n_of.size()) { throw std::invalid_argument("k and n have different numbers of chunks"); }
    std::int64_t k = 0, n = 0, groups = 0;
    for (std::size_t c = 0; c < k_of.size(); ++c) {
        detail::check_counts(k_of[c], n_of[c]);
        k += k_of[c];
        n += n_of[c];
        groups += n_of[c] > 0 ? 1 : 0;
    }
    ClusteredProportion result;
    result.effective_size = static_cast<double>(n);
    if (n == 0) { return result; }
    const double size = static_cast<double>(n), p = static_cast<double>(k) / size;
    if (k > 0 && k < n && groups >= 2) {
        double squares = 0;
        for (std::size_t c = 0; c < k_of.size(); ++c) {
            const double excess = static_cast<double>(k_of[c]) - p * static_cast<double>(n_of[c]);
            squares += excess * excess;
        }
        const auto g = static_cast<double>(groups);
        const double variance = g / (g - 1) * squares / (size * size);
        result.design_effect = variance / (p * (1 - p) / size);
        const double few_chunks = detail::student_quantile(size - 1, level) / detail::student_quantile(g - 1, level);
        const double effective = size / result.design_effect * few_chunks * few_chunks;
        result.effective_size = variance > 0 ? (std::min)(size, effective) : size;
    }
    const double x = p * result.effective_size, m = result.effective_size;
    result.interval = {detail::clopper_pearson_lower(x, m, level.alpha() / 2),
                       detail::clopper_pearson_upper(x, m, level.alpha() / 2)};
    result.upper_bound = detail::clopper_pearson_upper(x, m, level.alpha());
    return result;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include <boost/math/distributions/binomial.hpp>

namespace logitstat {

/// Exact two-sided sign test: the probability, when either sign is equally likely, of a split at least as uneven as
/// `higher` against `lower`. Ties (equal pairs) are left out by the caller, as usual. Twice the smaller tail of a
/// binomial with p = 1/2, at most 1; 1 when there is nothing to count. O(1).
/// Throws std::invalid_argument for a negative count.
inline double sign_test_p(std::int64_t higher, std::int64_t lower) {
    if (higher < 0 || lower < 0) { throw std::invalid_argument("a sign test needs counts >= 0"); }
    const std::int64_t n = higher + lower, fewer = (std::min)(higher, lower);
    if (n == 0 || 2 * fewer == n) { return 1; }
    const boost::math::binomial split(static_cast<double>(n), 0.5);
    return (std::min)(1.0, 2 * boost::math::cdf(split, static_cast<double>(fewer)));
}

} // namespace logitstat

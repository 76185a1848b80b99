#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/bootstrap.hpp"
#include "stats/close.hpp"

namespace test_bootstrap {

using namespace logitstat;
using expected::close;

namespace {
using Sums = std::vector<double>;
const confidence_level usual(0.95);

// Chunk c: a = ((5 c^2 + c) mod 17 - 6) / 16, b = 4 + (3 c) mod 5.
Sums numerators(int groups) {
    Sums sums;
    for (int c = 0; c < groups; ++c) { sums.push_back(((5 * c * c + c) % 17 - 6) / 16.0); }
    return sums;
}
Sums denominators(int groups) {
    Sums sums;
    for (int c = 0; c < groups; ++c) { sums.push_back(4 + 3 * c % 5); }
    return sums;
}
} // namespace

TEST_CASE("the bootstrap interval against numpy, draw by draw") {
    // Python, numpy 1.24, whose RandomState has the raw stream of std::mt19937:
    //   def boot(a, b, seed, R, level):
    //       G = len(a)
    //       r = np.random.RandomState(seed).randint(0, 2**32, dtype=np.uint32, size=(R, G)).astype(np.uint64)
    //       c = ((r * np.uint64(G)) >> np.uint64(32)).astype(int)
    //       num, den = a[c].sum(1), b[c].sum(1)
    //       q = num[den != 0] / den[den != 0]
    //       return np.percentile(q, [100 * (1-level) / 2, 100 * (1 - (1-level) / 2)])
    struct Row {
        int groups;
        std::uint32_t seed;
        std::size_t replicates;
        double level, lo, hi;
    };
    const Row rows[] = {
        {2, 1, 2000, 0.95, -0.09375, 0.0},
        {3, 7, 500, 0.9, -0.0625, -0.003289473684210526},
        {7, 1, 2000, 0.95, -0.00946969696969697, 0.07683053523936166},
        {30, 12345, 1000, 0.99, -0.012709081783601011, 0.038891017025089604},
        {128, 4294967295, 301, 0.5, 0.009521484375, 0.015709005376344086},
        {5, 0, 1, 0.95, 0.046875, 0.046875},
        {11, 3, 2000, 0.999999, -0.037494830172413646, 0.0830332957233436},
    };
    for (const Row& row : rows) {
        CAPTURE(row.groups);
        const BootstrapOptions options{row.replicates, row.seed};
        const auto interval =
            bootstrap_ratio(numerators(row.groups), denominators(row.groups), confidence_level(row.level), options);
        REQUIRE(interval.has_value());
        CHECK(close(interval->lo, row.lo, 1e-13));
        CHECK(close(interval->hi, row.hi, 1e-13));
        CHECK(interval ==
              bootstrap_ratio(numerators(row.groups), denominators(row.groups), confidence_level(row.level), options));
    }
    // 2000 replicates of seed 1 unless stated
    CHECK(bootstrap_ratio(numerators(7), denominators(7), usual) ==
          bootstrap_ratio(numerators(7), denominators(7), usual, {2000, 1}));
    CHECK(bootstrap_ratio(numerators(7), denominators(7), usual) !=
          bootstrap_ratio(numerators(7), denominators(7), usual, {2000, 2}));
    CHECK(bootstrap_ratio(numerators(7), denominators(7), usual) !=
          bootstrap_ratio(numerators(7), denominators(7), usual, {1999, 1}));
}

TEST_CASE("replicates without a denominator are left out") {
    // As above; 1854, 1392, 1514 and 1494 of 2000 replicates are left.
    const auto rate = bootstrap_ratio(Sums{0, 0, 0, 0, 1}, Sums{0, 0, 0, 4, 5}, usual);
    REQUIRE(rate.has_value());
    CHECK(rate->lo == 0);
    CHECK(close(rate->hi, 0.2, 1e-15));
    CHECK(bootstrap_ratio(Sums{0, 0, 2}, Sums{0, 0, 3}, usual).has_value());
    CHECK(close(bootstrap_ratio(Sums{0, 0, 2}, Sums{0, 0, 3}, usual)->hi, 0.66666666666666663, 1e-15));
    CHECK(bootstrap_ratio(Sums{0, 1}, Sums{0, 1}, usual) == Interval{1, 1});
    CHECK(bootstrap_ratio(Sums{0, 1}, Sums{0, 1}, usual, {2000, 7}) == Interval{1, 1});
    // Of 10 replicates numpy leaves 4 with seed 10 and 3 with seed 35, but 5, which is half, with seeds 19 and 21.
    for (const std::uint32_t seed : {10u, 35u}) {
        CHECK_FALSE(bootstrap_ratio(Sums{0, 1, 0}, Sums{0, 1, 0}, usual, {10, seed}).has_value());
    }
    for (const std::uint32_t seed : {19u, 21u}) {
        CHECK(bootstrap_ratio(Sums{0, 1, 0}, Sums{0, 1, 0}, usual, {10, seed}) == Interval{1, 1});
    }
    CHECK_FALSE(bootstrap_ratio(Sums{0, 0, 0}, Sums{0, 0, 0}, usual).has_value());
    CHECK_FALSE(bootstrap_ratio(Sums{1, 2}, Sums{0, 0}, usual).has_value());
}

TEST_CASE("too few chunks have no interval, wrong arguments throw") {
    CHECK_FALSE(bootstrap_ratio({}, {}, usual).has_value());
    CHECK_FALSE(bootstrap_ratio(Sums{1}, Sums{2}, usual).has_value());
    CHECK_THROWS_AS(bootstrap_ratio(Sums{1, 2}, Sums{2}, usual), std::invalid_argument);
    CHECK_THROWS_AS(bootstrap_ratio({}, Sums{2}, usual), std::invalid_argument);
    CHECK_THROWS_AS(bootstrap_ratio(Sums{1, 2}, Sums{2, 3}, usual, {0, 1}), std::invalid_argument);
    CHECK_THROWS_AS(bootstrap_ratio({}, {}, usual, {0, 1}), std::invalid_argument);
    const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(bootstrap_ratio(Sums{1, nan}, Sums{2, 3}, usual), std::invalid_argument);
    CHECK_THROWS_AS(bootstrap_ratio(Sums{infinity, 1}, Sums{2, 3}, usual), std::invalid_argument);
}

TEST_CASE("equal chunks give a point") {
    const auto point = bootstrap_ratio(Sums(9, 0.75), Sums(9, 3), usual);
    REQUIRE(point.has_value());
    CHECK(*point == Interval{0.25, 0.25});
}

} // namespace test_bootstrap

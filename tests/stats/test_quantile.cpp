#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/quantile.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_quantile {

using logitstat::quantile_rule;
using logitstat::quantiles;
using oracle::close;

TEST_CASE("quantiles against a sort, all sizes, with ties, unsorted and repeated probabilities") {
    oracle::Random random(7);
    for (std::size_t n = 1; n <= 300; ++n) {
        CAPTURE(n);
        const std::size_t distinct = random.pick<std::size_t>({1, 3, 50, 1'000'000});
        std::vector<double> values(n);
        for (double& x : values) { x = 0.25 * static_cast<double>(random.below(distinct)) - 10; }
        std::vector<double> p{0.5, 1.0, 0.0, 0.99, 0.9, 0.5, 0.01, 0.07, 0.29};
        for (int j = 0; j < 5; ++j) { p.push_back(random.unit()); }
        // At and beside every place where the rank changes.
        const double at = static_cast<double>(random.below(n + 1)) / static_cast<double>(n);
        for (const double x : {at, std::nextafter(at, 2.0), std::nextafter(at, -1.0)}) {
            p.push_back(std::min(1.0, std::max(0.0, x)));
        }
        const std::vector<long double> exact(values.begin(), values.end());
        for (const auto rule : {quantile_rule::floor_index, quantile_rule::linear}) {
            const std::vector<double> got = quantiles(values, p, rule);
            REQUIRE(got.size() == p.size());
            for (std::size_t j = 0; j < p.size(); ++j) {
                CAPTURE(p[j]);
                CHECK(close(got[j], oracle::quantile(exact, p[j], rule),
                            rule == quantile_rule::floor_index ? 0.0L : 1e-9L * static_cast<long double>(distinct)));
            }
        }
    }
}

TEST_CASE("type 7 as numpy computes it, and the floor index as a table writer in Python does") {
    // python3 -c "import numpy as n; x=[3,1,4,1,5,9,2,6,5,3.5]; p=[0,.1,.25,.5,.75,.9,.99,1]
    // print(n.quantile(x,p).tolist(), [sorted(x)[min(int(q*len(x)),len(x)-1)] for q in p])"
    const std::vector<double> x{3, 1, 4, 1, 5, 9, 2, 6, 5, 3.5}, p{0, .1, .25, .5, .75, .9, .99, 1};
    const std::vector<double> numpy{1.0, 1.0, 2.25, 3.75, 5.0, 6.299999999999999, 8.73, 9.0};
    const auto linear = quantiles(x, p, quantile_rule::linear);
    for (std::size_t j = 0; j < p.size(); ++j) { CHECK(close(linear[j], numpy[j], 1e-14L)); }
    CHECK(quantiles(x, p, quantile_rule::floor_index) == std::vector<double>{1, 1, 2, 4, 5, 9, 9, 9});
    CHECK(quantiles(x, p) == std::vector<double>{1, 1, 2, 4, 5, 9, 9, 9}); // the default
}

TEST_CASE("one value is every quantile; no probabilities give no quantiles") {
    for (const auto rule : {quantile_rule::floor_index, quantile_rule::linear}) {
        CHECK(quantiles({-2.5}, std::vector<double>{0, 0.3, 1}, rule) == std::vector<double>{-2.5, -2.5, -2.5});
        CHECK(quantiles({1, 2}, std::vector<double>{}, rule).empty());
    }
}

TEST_CASE("quantiles refuse what has none") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    const std::vector<double> half{0.5};
    CHECK_THROWS_AS(quantiles({}, half), std::invalid_argument);
    for (const double bad : {nan, inf, -inf}) {
        CHECK_THROWS_AS(quantiles({1, bad, 3}, half), std::invalid_argument);
        CHECK_THROWS_AS(quantiles({1, 2}, std::vector<double>{bad}), std::invalid_argument);
    }
    for (const double bad : {-1e-9, std::nextafter(1.0, 2.0), -1.0, 99.0}) {
        CHECK_THROWS_AS(quantiles({1, 2}, std::vector<double>{0.5, bad}), std::invalid_argument);
    }
}

TEST_CASE("a place that floats round beyond the last value is the last value") {
    constexpr std::size_t n = (1u << 24) + 4; // n - 1 is no float, the next is n
    std::vector<double> values(n, 1.0);
    values[5] = 2;
    const std::vector<double> one{1.0};
    CHECK(static_cast<double>(static_cast<float>(n - 1)) == static_cast<double>(n));
    CHECK(quantiles(std::move(values), one, quantile_rule::linear_float).front() == 2);
}

} // namespace test_quantile

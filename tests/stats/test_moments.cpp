#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/nll_difference.hpp"
#include "logitstat/stats/perplexity.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_moments {

using logitstat::Moments;
using logitstat::moments_of;
using oracle::close;
using oracle::Sizes;

namespace {

Moments moments(const std::vector<double>& values) { return moments_of(std::span<const double>(values)); }

/// Mean and sum of squared deviations by two passes in long double.
struct Exact {
    long double mean = 0, m2 = 0;
    explicit Exact(const std::vector<double>& values) {
        for (const double x : values) { mean += x; }
        mean /= static_cast<long double>(values.size());
        for (const double x : values) { m2 += (x - mean) * (x - mean); }
    }
};

bool relatively_close(long double a, long double b, long double tolerance) {
    return std::fabs(a - b) <= tolerance * std::fabs(b);
}

} // namespace

TEST_CASE("a million values far from zero") {
    oracle::Random random(11);
    std::vector<double> values(1'000'000);
    // The mean is right to a few roundings of itself. What that leaves of m2 depends on how far the mean is from zero
    // in standard deviations; E[x^2] - E[x]^2 would keep no digit at all at 1e8.
    long double m2_tolerance = 1e-13L;
    SUBCASE("1e8 and noise") {
        for (double& x : values) { x = 1e8 + random.unit(); }
        m2_tolerance = 1e-8L;
    }
    SUBCASE("-1e8, noise and a drift") {
        for (std::size_t i = 0; i < values.size(); ++i) { values[i] = -1e8 + random.unit() + 1e-6 * double(i); }
        m2_tolerance = 1e-5L;
    }
    SUBCASE("ordinary") {
        for (double& x : values) { x = 10 * random.unit() - 3; }
    }
    SUBCASE("1e8, then near 0") {
        for (std::size_t i = 0; i < values.size(); ++i) { values[i] = (i < 300'000 ? 1e8 : 0.0) + random.unit(); }
    }
    const Exact exact(values);
    const Moments m = moments(values);
    CHECK(m.n == 1'000'000);
    CHECK(relatively_close(m.mean, exact.mean, 1e-14L));
    CHECK(relatively_close(m.m2, exact.m2, m2_tolerance));
}

TEST_CASE("every length around the blocks") {
    oracle::Random random(12);
    std::vector<double> values;
    while (values.size() < 800) {
        values.push_back(5 + random.unit());
        const Exact exact(values);
        const Moments m = moments(values);
        CAPTURE(values.size());
        CHECK(m.n == static_cast<std::int64_t>(values.size()));
        CHECK(close(m.mean, exact.mean, 1e-15L));
        CHECK(close(m.m2, exact.m2, 1e-14L));
    }
}

TEST_CASE("merging any split gives the whole") {
    oracle::Random random(13);
    for (int round = 0; round < 300; ++round) {
        std::vector<double> values(1 + random.below(2000));
        const double offset = random.pick({0.0, -3.0, 1e6});
        for (double& x : values) { x = offset + random.unit(); }
        const Moments whole = moments(values);
        Moments merged, grouped;
        for (std::size_t at = 0; at < values.size();) { // some parts are empty
            const std::size_t part = std::min(values.size() - at, random.below(700));
            const Moments next = moments_of(std::span<const double>(values).subspan(at, part));
            merged.merge(next);
            grouped = Moments(next).merge(grouped); // the other way round
            at += part;
        }
        CAPTURE(round);
        for (const Moments& m : {merged, grouped}) {
            CHECK(m.n == whole.n);
            CHECK(close(m.mean, whole.mean, 1e-15L));
            CHECK(close(m.m2, whole.m2, 1e-9L)); // a mean near 1e6 is itself known to 1e-10 only
        }
    }
}

TEST_CASE("merging the empty accumulator changes nothing, from either side") {
    const Moments m = moments({1, 2, 4});
    for (const Moments& merged : {Moments(m).merge({}), Moments().merge(m)}) {
        CHECK(merged.n == 3);
        CHECK(merged.mean == m.mean);
        CHECK(merged.m2 == m.m2);
    }
    CHECK(Moments().merge({}).n == 0);
}

TEST_CASE("merging the empty accumulator changes nothing where squares would overflow") {
    logitstat::Moments far{2, 1e200, 4};
    far.merge({});
    CHECK(far.n == 2);
    CHECK(far.mean == 1e200);
    CHECK(far.m2 == 4);
    CHECK(logitstat::Moments{}.m2 == 0);
}

TEST_CASE("equal values have no deviation at all") {
    for (const double x : {0.1, -1e8 / 3, 1e300, 5e-324, -0.0, 0.0}) {
        for (const std::size_t n : Sizes{1, 2, 3, 255, 256, 257, 1000, 100'000}) {
            const Moments m = moments(std::vector<double>(n, x));
            CHECK(m.mean == x);
            CHECK(m.m2 == 0);
            if (n > 1) { CHECK(m.standard_error() == 0.0); }
        }
    }
}

TEST_CASE("variance and standard error") {
    CHECK(moments({}).n == 0);
    CHECK(moments({}).mean == 0);
    CHECK(!moments({}).variance());
    CHECK(!moments({}).standard_error());
    CHECK(!moments({3}).variance());
    CHECK(!moments({3}).standard_error());
    CHECK(moments({1, 3}).variance() == 2.0);
    CHECK(moments({1, 3}).standard_error() == 1.0);
    // python3 -c "import numpy as n; x=[3,1,4,1,5,9,2,6]; print(n.var(x,ddof=1), n.std(x,ddof=1)/8**.5)"
    const Moments m = moments({3, 1, 4, 1, 5, 9, 2, 6});
    CHECK(close(m.variance(), std::optional(7.553571428571429), 1e-15L));
    CHECK(close(m.standard_error(), std::optional(0.9716977043151993), 1e-15L));
}

TEST_CASE("floats are summed in double") {
    const std::vector<float> values(1'000'003, 0.1f); // a sum in float would be off in the third digit
    const Moments m = moments_of(std::span<const float>(values));
    CHECK(m.mean == static_cast<double>(0.1f));
    CHECK(m.m2 == 0);
}

namespace {
/// All positions in one chunk.
auto perplexity_of(const std::vector<double>& nll) {
    return logitstat::perplexity(nll, std::vector{std::size_t{0}, nll.size()});
}
auto difference_of(const std::vector<double>& d) {
    return logitstat::nll_difference(d, std::vector{std::size_t{0}, d.size()}).value();
}
} // namespace

TEST_CASE("perplexity") {
    CHECK(!perplexity_of({}));
    const std::vector<double> nll{0.0, 2.0};
    const auto p = perplexity_of(nll).value();
    CHECK(close(p.value, std::exp(1.0L), 1e-15L));
    CHECK(close(p.se.value(), std::exp(1.0L), 1e-15L)); // s / sqrt(n) is 1
    const auto certain = perplexity_of({-0.0}).value();
    CHECK(certain.value == 1);
    CHECK(!certain.se);
}

TEST_CASE("an infinite perplexity has no standard error, in place of infinity times zero") {
    for (const std::vector<double>& nll : {std::vector<double>{800, 800}, std::vector<double>{800, 900, 1000}}) {
        const auto p = perplexity_of(nll).value();
        CHECK(p.value == std::numeric_limits<double>::infinity());
        CHECK(!p.se);
        CHECK(p.nll_se.iid.has_value());
    }
}

TEST_CASE("NLL difference: small shifts keep their digits") {
    const std::vector<double> d{1e-12, 3e-12};
    const auto r = difference_of(d);
    CHECK(relatively_close(r.mean, 2e-12L, 1e-15L));
    CHECK(relatively_close(r.perplexity_percent, 100 * std::expm1(2e-12L), 1e-14L));
    CHECK(relatively_close(r.se.iid.value(), 1e-12L, 1e-14L));
    CHECK(close(r.t_iid().value(), 2, 1e-14L));
}

TEST_CASE("NLL difference: the figures that do not exist") {
    CHECK(!logitstat::nll_difference(std::vector<double>(), std::vector{std::size_t{0}}));
    CHECK_THROWS_AS(logitstat::nll_difference(std::vector{1.0}, std::vector{std::size_t{0}, std::size_t{2}}),
                    std::invalid_argument);

    const auto one = difference_of({0.5});
    CHECK(one.mean == 0.5);
    CHECK(!one.se.iid);
    CHECK(!one.se.hac);
    CHECK(!one.p);
    CHECK(!one.interval);
    CHECK(!one.ratio_interval);
    CHECK(!one.t);
    CHECK(one.largest == 0.5);
    CHECK(one.largest_index == std::size_t{0});

    const auto constant = difference_of({0.5, 0.5, 0.5});
    CHECK(constant.se.iid == 0.0);
    CHECK(constant.p == 0.0);
    CHECK(constant.interval == logitstat::Interval{0.5, 0.5});
    CHECK(!constant.t); // a shift without any scatter is infinitely many standard errors from zero
    CHECK(!constant.t_iid());

    const auto zero = difference_of({0.0, -0.0, 0.0});
    CHECK(zero.mean == 0.0);
    CHECK(zero.se.iid == 0.0);
    CHECK(zero.p == 1.0);
    CHECK(zero.ratio_interval == logitstat::Interval{1.0, 1.0});
    CHECK(zero.t == 0.0);
    CHECK(zero.equal == 3);
    CHECK(zero.perplexity_ratio == 1.0);
    CHECK(zero.perplexity_percent == 0.0);
    CHECK(zero.largest == 0.0);

    const auto balanced = difference_of({1.0, -1.0});
    CHECK(balanced.t == 0.0);
    CHECK(balanced.largest_index == std::size_t{0}); // the first of equals
}

} // namespace test_moments

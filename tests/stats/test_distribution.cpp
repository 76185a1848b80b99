#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/stats/distribution.hpp"
#include "logitstat/stats/nll_difference.hpp"
#include "logitstat/stats/perplexity.hpp"
#include "logitstat/stats/perplexity_difference.hpp"
#include "logitstat/stats/rank.hpp"
#include "logitstat/stats/root_mean_square.hpp"

namespace test_distribution {

using logitstat::distribution;
using logitstat::Distribution;
using logitstat::quantile_rule;
using testing::contains;
using testing::message_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t n = 40;

std::vector<double> column() {
    std::vector<double> x;
    for (std::size_t i = 0; i < n; ++i) { x.push_back(static_cast<double>(i * 37 % 41) / 8 - 1.5); }
    return x;
}
const std::vector<std::size_t> four_chunks{0, 10, 20, 30, 40};

logitstat::Trace<double> trace_of(const std::vector<double>& nll) {
    auto trace = logitstat::Trace<double>::with_shape(nll.size(), 2);
    trace.nll.assign(nll.begin(), nll.end());
    for (std::size_t i = 0; i < nll.size(); ++i) { trace.chunk[i] = static_cast<std::int32_t>(i / 10); }
    return trace;
}

} // namespace

// numpy 1.24: x = [((i*37)%41)/8 - 1.5 for i in range(40)]; x.mean(), x.std(ddof=1)/40**.5, np.quantile(x, P)
TEST_CASE("a distribution's figures are numpy's") {
    const Distribution d = distribution(column(), four_chunks).value();
    CHECK(d.mean == doctest::Approx(1.05).epsilon(1e-14));
    CHECK(d.se.iid.value() == doctest::Approx(0.23423019030706105).epsilon(1e-13));
    CHECK(d.se.clusters == 4);
    CHECK(d.min == -1.5);
    CHECK(d.min_index == 0);
    CHECK(d.max == 3.5);
    CHECK(d.max_index == 31);
    CHECK(d.infinite == 0);
    const std::vector<double> expected{-1.495125, -1.45125, -1.25625, -0.9,    -0.15625, 1.0625,
                                       2.28125,   3.0125,   3.25625,  3.45125, 3.495125};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(d.quantiles[i] == doctest::Approx(expected[i]).epsilon(1e-13));
        CHECK(d.quantile(Distribution::probabilities[i]) == d.quantiles[i]);
    }
    CHECK_THROWS_AS(d.quantile(0.3), std::invalid_argument);
    // The position P (n-1) in np.float32, the interpolation in double.
    const Distribution rounded = distribution(column(), four_chunks, quantile_rule::linear_float).value();
    CHECK(rounded.quantile(0.001) == doctest::Approx(-1.4951249998994172).epsilon(1e-15));
    CHECK(rounded.quantile(0.1) == doctest::Approx(-0.8999999761581421).epsilon(1e-15));
    CHECK(rounded.quantile(0.999) == doctest::Approx(3.4951252937316895).epsilon(1e-15));
    const auto interval = d.interval.value();
    CHECK(interval.lo < 1.05);
    CHECK((interval.lo + interval.hi) / 2 == doctest::Approx(1.05).epsilon(1e-12));
}

TEST_CASE("infinite values are counted and left out, with the chunks that they leave empty") {
    std::vector<double> x = column();
    for (std::size_t i = 10; i < 20; ++i) { x[i] = i % 2 == 0 ? infinity : -infinity; }
    x[0] = infinity;
    const Distribution d = distribution(x, four_chunks).value();
    CHECK(d.infinite == 11);
    CHECK(d.se.n == 29);
    CHECK(d.se.clusters == 3);
    std::vector<double> finite(x.begin() + 1, x.begin() + 10);
    finite.insert(finite.end(), x.begin() + 20, x.end());
    const Distribution alone = distribution(finite, std::vector<std::size_t>{0, 9, 19, 29}).value();
    CHECK(d.mean == alone.mean);
    CHECK(d.se.iid == alone.se.iid);
    CHECK(d.se.clustered == alone.se.clustered);
    CHECK(d.se.hac == alone.se.hac);
    CHECK(d.quantiles == alone.quantiles);
    CHECK(x[d.max_index] == d.max); // an index into all values
    CHECK(d.max_index == 31);
    CHECK(x[d.min_index] == d.min);

    CHECK_FALSE(distribution(std::vector<double>{infinity, infinity}, std::vector<std::size_t>{0, 2}));
    CHECK_FALSE(distribution(std::vector<double>{}, std::vector<std::size_t>{0}));
}

TEST_CASE("NaN has no place in a distribution, and chunks cover it") {
    std::vector<double> x = column();
    x[17] = std::numeric_limits<double>::quiet_NaN();
    CHECK(contains(message_of<std::invalid_argument>([&] { distribution(x, four_chunks); }), "NaN, at position 17"));
    CHECK_THROWS_AS(distribution(column(), std::vector<std::size_t>{0, 39}), std::invalid_argument);
}

TEST_CASE("one value, and equal values") {
    const Distribution one = distribution(std::vector<double>{2.5}, std::vector<std::size_t>{0, 1}).value();
    CHECK(one.mean == 2.5);
    CHECK_FALSE(one.se.iid);
    CHECK_FALSE(one.interval);
    CHECK(one.quantile(0.999) == 2.5);
    const Distribution equal = distribution(std::vector<double>(40, 0.1), four_chunks).value();
    CHECK(equal.se.iid == 0.0);
    CHECK(equal.min_index == 0);
    CHECK(equal.max_index == 0); // the first of equals
}

// numpy: np.sqrt((x**2).mean()), (x**2).std(ddof=1)/40**.5/(2*rms)
TEST_CASE("root mean square") {
    const auto rms = logitstat::root_mean_square(column(), four_chunks).value();
    CHECK(rms.value == doctest::Approx(1.8006075363609917).epsilon(1e-14));
    CHECK(rms.se.iid.value() == doctest::Approx(0.15885255317427086).epsilon(1e-13));
    const auto zero = logitstat::root_mean_square(std::vector<double>(40, 0.0), four_chunks).value();
    CHECK(zero.value == 0);
    CHECK(zero.se.iid == 0.0);
    CHECK_FALSE(logitstat::root_mean_square(std::vector<double>{}, std::vector<std::size_t>{0}));
}

// numpy: a = [((i*37)%41)/16 ...], b = [((i*29)%43)/16 + ((i*37)%41)/32 ...]; pa, pb = exp of the means;
// c = np.cov(a, b, ddof=1)/40; pb - pa, np.sqrt(pa**2*c[0,0] + pb**2*c[1,1] - 2*pa*pb*c[0,1])
TEST_CASE("difference of perplexities, by the covariance of the arms") {
    std::vector<double> a, b;
    for (std::size_t i = 0; i < n; ++i) {
        a.push_back(static_cast<double>(i * 37 % 41) / 16);
        b.push_back(static_cast<double>(i * 29 % 43) / 16 + static_cast<double>(i * 37 % 41) / 32);
    }
    const auto difference = logitstat::perplexity_difference(trace_of(a), trace_of(b)).value();
    CHECK(difference.value == doctest::Approx(3.2231000656443625).epsilon(1e-13));
    CHECK(difference.se.iid.value() == doctest::Approx(0.8368608840529834).epsilon(1e-12));
    CHECK(difference.se.clusters == 4);
    const auto none = logitstat::perplexity_difference(trace_of(a), trace_of(a)).value();
    CHECK(none.value == 0);
    CHECK(none.se.iid == 0.0);
    CHECK_FALSE(logitstat::perplexity_difference(trace_of(a), trace_of(std::vector<double>(n, 800))));
}

TEST_CASE("a lag for all values is cut to what the infinite ones leave") {
    std::vector<double> x = column();
    for (std::size_t i = 3; i < n; ++i) { x[i] = infinity; }
    const std::vector<double> finite(x.begin(), x.begin() + 3);
    const std::vector<std::size_t> one{0, 3}, all{0, n};
    for (const std::size_t lag : {0u, 1u, 2u, 3u, 39u}) {
        const Distribution d =
            distribution(x, all, quantile_rule::linear, logitstat::confidence_level(0.95), {.lag = lag}).value();
        CHECK(d.se.lag == std::min<std::size_t>(lag, 2));
        CHECK(d.se.hac == logitstat::hac_se(finite, std::min<std::size_t>(lag, 2), one));
    }
}

TEST_CASE("95 % unless stated, by every statistic with an interval") {
    const logitstat::confidence_level stated(0.95);
    const std::vector<double> x = column();
    CHECK(distribution(x, four_chunks)->interval ==
          distribution(x, four_chunks, quantile_rule::linear, stated)->interval);
    CHECK(logitstat::perplexity(x, four_chunks)->interval == logitstat::perplexity(x, four_chunks, stated)->interval);
    CHECK(logitstat::perplexity(trace_of(x))->interval == logitstat::perplexity(x, four_chunks, stated)->interval);
    CHECK(logitstat::nll_difference(x, four_chunks)->interval ==
          logitstat::nll_difference(x, four_chunks, stated)->interval);
    const auto zero = trace_of(std::vector<double>(n, 0.0));
    CHECK(logitstat::nll_difference(zero, trace_of(x))->interval ==
          logitstat::nll_difference(x, four_chunks, stated)->interval);
}

TEST_CASE("a root mean square below 1 has the delta method's error, too") {
    // By hand: x^2 = {1/16, 1/4}, mean 5/32, value sqrt(5/32), error of the mean (3/16) / 2, over 2 sqrt(5/32).
    const auto rms =
        logitstat::root_mean_square(std::vector<double>{0.25, -0.5}, std::vector<std::size_t>{0, 2}).value();
    CHECK(rms.value == doctest::Approx(std::sqrt(5.0 / 32)).epsilon(1e-15));
    CHECK(rms.se.iid.value() == doctest::Approx(3.0 / 32 / (2 * std::sqrt(5.0 / 32))).epsilon(1e-15));
}

TEST_CASE("difference of perplexities of two positions, by hand; of one, and of none") {
    // a = {0, 2}, b = {1, 1}: both perplexities are e; e_i = e (b_i - a_i) = {e, -e}, whose standard error is e.
    const auto two = logitstat::perplexity_difference(trace_of({0, 2}), trace_of({1, 1})).value();
    CHECK(two.value == 0);
    CHECK(two.se.iid.value() == doctest::Approx(std::exp(1.0)).epsilon(1e-15));
    const auto one = logitstat::perplexity_difference(trace_of({0}), trace_of({1})).value();
    CHECK(one.value == doctest::Approx(std::exp(1.0) - 1).epsilon(1e-15));
    CHECK_FALSE(one.se.iid);
    CHECK_FALSE(logitstat::perplexity_difference(trace_of({}), trace_of({})));
}

TEST_CASE("ranks among all tokens, counted over the given positions") {
    const std::vector<std::int64_t> rank{1, 7, 2, 7, 300'000};
    const std::vector<std::size_t> positions{1, 3, 4, 2};
    const std::vector<logitstat::RankCount> expected{{2, 1}, {7, 2}, {300'000, 1}};
    CHECK(logitstat::rank_distribution(rank, positions) == expected);
    CHECK(logitstat::rank_distribution(rank, std::vector<std::size_t>{}).empty());
}

TEST_CASE("a distribution and a root mean square that nothing was put into are 0") {
    const Distribution d;
    CHECK(d.infinite == 0);
    CHECK(d.mean == 0);
    CHECK(d.min == 0);
    CHECK(d.max == 0);
    CHECK(d.min_index == 0);
    CHECK(d.max_index == 0);
    CHECK(d.quantile(0.5) == 0);
    CHECK(logitstat::RootMeanSquare{}.value == 0);
}

} // namespace test_distribution

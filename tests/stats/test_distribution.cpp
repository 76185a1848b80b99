#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/stats/distribution.hpp"
#include "logitstat/stats/perplexity_difference.hpp"
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

} // namespace test_distribution

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/bootstrap.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/korn_graubard.hpp"
#include "logitstat/stats/standard_error.hpp"

namespace test_coverage {

// Do 95 % intervals cover the truth 95 % of the time? Seeded simulations of the three kinds of dependence; the bands
// hold four Monte Carlo standard errors (0.005 for 2000 runs) around what theory expects, and are as much a record of
// where an interval does not cover as of where it does.

namespace {

using logitstat::confidence_level;
using Series = std::vector<double>;

constexpr std::size_t chunks = 64, length = 32, n = chunks * length;
constexpr confidence_level level(0.95);

std::vector<std::size_t> boundaries() {
    std::vector<std::size_t> b;
    for (std::size_t c = 0; c <= chunks; ++c) { b.push_back(c * length); }
    return b;
}

/// Standard normals from raw 32-bit draws (Box and Muller 1958): std::normal_distribution differs between libraries.
class Normal {
  public:
    double operator()() {
        const double u = (static_cast<double>(random_()) + 1) / 4294967297.0;
        const double v = static_cast<double>(random_()) / 4294967296.0;
        return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
    }

  private:
    std::mt19937 random_{20260930};
};

struct Coverage {
    double iid = 0, clustered = 0, hac = 0, preferred = 0;
};

/// How often each interval for the mean, whose truth is 0, holds it.
Coverage simulate(const std::function<Series(Normal&)>& draw, int runs = 2000) {
    Normal normal;
    Coverage hits;
    const auto cut = boundaries();
    const auto covers = [](double mean, double se, double df) {
        const auto interval = logitstat::student_interval(mean, se, df, level);
        return interval.lo <= 0 && 0 <= interval.hi ? 1.0 : 0.0;
    };
    for (int run = 0; run < runs; ++run) {
        const Series x = draw(normal);
        const double mean = logitstat::moments_of(std::span<const double>(x)).mean;
        const auto se = logitstat::standard_errors(x, cut);
        hits.iid += covers(mean, se.iid.value(), static_cast<double>(n - 1));
        hits.clustered += covers(mean, se.clustered.value(), static_cast<double>(chunks - 1));
        hits.hac += covers(mean, se.hac.value(), static_cast<double>(n - 1));
        hits.preferred += covers(mean, se.value().value(), se.df());
    }
    for (double* hit : {&hits.iid, &hits.clustered, &hits.hac, &hits.preferred}) { *hit /= runs; }
    MESSAGE("coverage: iid " << hits.iid << ", clustered " << hits.clustered << ", hac " << hits.hac);
    return hits;
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

} // namespace

TEST_CASE("coverage: independent positions, every interval covers") {
    const Coverage c = simulate([](Normal& normal) {
        Series x(n);
        for (double& value : x) { value = normal(); }
        return x;
    });
    CHECK(within(c.iid, 0.93, 0.97));
    CHECK(within(c.clustered, 0.93, 0.97));
    CHECK(within(c.hac, 0.93, 0.97));
}

TEST_CASE("coverage: positions that share a chunk's level, only clustering covers") {
    // Correlation 0.3 within a chunk of 32: the variance of the mean is 1 + 31 * 0.3 = 10.3 times the iid one, so that
    // the iid interval covers P(|Z| < 1.96 / sqrt(10.3)) = 0.46.
    const Coverage c = simulate([](Normal& normal) {
        Series x(n);
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
            const double shared = std::sqrt(0.3) * normal();
            for (std::size_t i = 0; i < length; ++i) { x[chunk * length + i] = shared + std::sqrt(0.7) * normal(); }
        }
        return x;
    });
    CHECK(within(c.clustered, 0.93, 0.97));
    CHECK(c.preferred == c.clustered);
    CHECK(within(c.iid, 0.42, 0.50));
    CHECK(c.hac < 0.90); // its lag is a fraction of the chunk
}

TEST_CASE("coverage: dependence that fades along the text") {
    // First-order autoregression with 0.5: the variance is 3 times the iid one, iid coverage P(|Z| < 1.96 / sqrt 3) =
    // 0.742. Bartlett weights at lag 7 see 1 + 2 sum (1 - l / 8) 0.5^l = 2.50 of the 3: coverage P(|Z| < 1.96 sqrt(2.50
    // / 3)) = 0.927. Chunks of 32 see 1 + 2 sum (1 - l / 32) 0.5^l = 2.88 of it: 0.945.
    const Coverage c = simulate([](Normal& normal) {
        Series x(n);
        double state = normal();
        for (double& value : x) {
            state = 0.5 * state + std::sqrt(0.75) * normal();
            value = state;
        }
        return x;
    });
    CHECK(within(c.hac, 0.905, 0.950));
    CHECK(within(c.clustered, 0.92, 0.97));
    CHECK(within(c.iid, 0.70, 0.78));
}

TEST_CASE("coverage: mismatches that cluster in chunks") {
    // One chunk in four is three times as prone to mismatches as the average, the others a third: 5 % in all.
    constexpr double truth = 0.25 * 0.15 + 0.75 * 0.05 / 3;
    constexpr int runs = 1000;
    std::mt19937 random(7);
    const auto chance = [&](double p) { return static_cast<double>(random()) < p * 4294967296.0; };
    double exact = 0, clustered = 0, drawn = 0;
    for (int run = 0; run < runs; ++run) {
        std::vector<std::int64_t> k(chunks), size(chunks, length);
        std::int64_t total = 0;
        for (std::int64_t& count : k) {
            const double rate = chance(0.25) ? 0.15 : 0.05 / 3;
            for (std::size_t i = 0; i < length; ++i) { count += chance(rate) ? 1 : 0; }
            total += count;
        }
        const auto covers = [&](const logitstat::Interval& i) { return i.lo <= truth && truth <= i.hi ? 1.0 : 0.0; };
        exact += covers(logitstat::clopper_pearson(total, n, level));
        clustered += covers(logitstat::korn_graubard(k, size, level).interval);
        const auto bootstrap = logitstat::bootstrap_ratio(
            std::vector<double>(k.begin(), k.end()), std::vector<double>(size.begin(), size.end()), level,
            {.replicates = 400, .seed = static_cast<std::uint32_t>(random())});
        drawn += covers(bootstrap.value());
    }
    MESSAGE("coverage: Clopper-Pearson " << exact / runs << ", Korn-Graubard " << clustered / runs << ", bootstrap "
                                         << drawn / runs);
    CHECK(within(clustered / runs, 0.93, 0.98));
    CHECK(within(drawn / runs, 0.90, 0.97));
    CHECK(exact / runs < 0.90);
}

} // namespace test_coverage

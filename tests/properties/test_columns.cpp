#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/bootstrap.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/correlation.hpp"
#include "logitstat/stats/distribution.hpp"
#include "logitstat/stats/holm.hpp"
#include "logitstat/stats/korn_graubard.hpp"
#include "logitstat/stats/proportion.hpp"
#include "logitstat/stats/quantile.hpp"
#include "logitstat/stats/root_mean_square.hpp"
#include "logitstat/stats/sign_test.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_columns {

// What must hold between the statistics of columns of numbers and of counts, and sums of the definitions in long double
// that share no formula with the library: an interval's ends are where a tail of the binomial holds what is left.

using logitstat::confidence_level;
using logitstat::Interval;
using logitstat::quantile_rule;
using oracle::close;
using oracle::Random;

namespace {

using Column = std::vector<double>;

/// Values of every kind: with ties, without, equal, shifted far from zero; all sums of a few are exact.
Column some_values(Random& random, std::size_t n) {
    const std::size_t distinct = random.pick<std::size_t>({1, 2, 9, 4096});
    const double shift = random.pick({0.0, -3.0, 1024.0});
    Column x(n);
    for (double& value : x) { value = shift + static_cast<double>(random.below(distinct)) / 64; }
    return x;
}

std::size_t some_size(Random& random) { return random.pick<std::size_t>({1, 2, 3, 7, 30, 61, 255, 256, 257, 600}); }

/// Clusters that cover n values, some of them empty.
std::vector<std::size_t> some_clusters(Random& random, std::size_t n) {
    std::vector<std::size_t> boundaries{0, n};
    for (std::size_t c = random.below(40); c > 0; --c) { boundaries.push_back(random.below(n + 1)); }
    std::sort(boundaries.begin(), boundaries.end());
    return boundaries;
}

template <class T> void shuffle(Random& random, std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) { std::swap(list[i - 1], list[random.below(i)]); }
}

/// P(X <= k) for n positions with rate p, one term after the other.
long double binomial_cdf(std::int64_t k, std::int64_t n, long double p) {
    long double sum = 0;
    for (std::int64_t i = 0; i <= k; ++i) {
        const auto x = static_cast<long double>(i), size = static_cast<long double>(n);
        const long double choose = std::lgamma(size + 1) - std::lgamma(x + 1) - std::lgamma(size - x + 1);
        const long double log_p = (i > 0 ? x * std::log(p) : 0) + (i < n ? (size - x) * std::log1p(-p) : 0);
        sum += std::exp(choose + log_p);
    }
    return sum;
}

/// P(|T| > t), by Simpson's rule over the density from 0 to t.
long double student_tail(long double t, long double df) {
    constexpr int steps = 4000;
    const long double scale =
        std::exp(std::lgamma((df + 1) / 2) - std::lgamma(df / 2)) / std::sqrt(df * 3.14159265358979323846L);
    const auto density = [&](long double x) { return scale * std::pow(1 + x * x / df, -(df + 1) / 2); };
    long double sum = density(0) + density(t);
    for (int i = 1; i < steps; ++i) { sum += (i % 2 == 1 ? 4 : 2) * density(t * i / steps); }
    return 1 - 2 * sum * t / steps / 3;
}

Interval scaled(const Interval& x, double factor, double shift = 0) {
    return {x.lo * factor + shift, x.hi * factor + shift};
}
bool close(const Interval& a, const Interval& b, long double tolerance) {
    return oracle::close(a.lo, b.lo, tolerance) && oracle::close(a.hi, b.hi, tolerance);
}

} // namespace

TEST_CASE("Clopper-Pearson: at either end a tail of the binomial holds half of what is left") {
    for (const std::int64_t n : {1, 2, 3, 10, 64, 200}) {
        for (std::int64_t k = 0; k <= n; k += n > 10 ? 9 : 1) {
            for (const double level : {0.5, 0.9, 0.95, 0.999}) {
                CAPTURE(n);
                CAPTURE(k);
                CAPTURE(level);
                const confidence_level at(level);
                const long double tail = (1 - static_cast<long double>(level)) / 2;
                const Interval interval = logitstat::clopper_pearson(k, n, at);
                if (k > 0) { CHECK(close(1 - binomial_cdf(k - 1, n, interval.lo), tail, 1e-12L)); }
                if (k < n) { CHECK(close(binomial_cdf(k, n, interval.hi), tail, 1e-12L)); }
                if (k < n) {
                    CHECK(close(binomial_cdf(k, n, logitstat::proportion_upper_bound(k, n, at)), 2 * tail, 1e-12L));
                }
            }
        }
    }
}

TEST_CASE("Wilson: at either end the rate is z standard errors away, by the error there") {
    for (const std::int64_t n : {1, 2, 3, 10, 200, 100'000}) {
        for (const std::int64_t k : {std::int64_t{0}, std::int64_t{1}, n / 3, n / 2, n}) {
            for (const double level : {0.5, 0.95, 0.999}) {
                CAPTURE(n);
                CAPTURE(k);
                CAPTURE(level);
                const Interval interval = logitstat::wilson(k, n, confidence_level(level));
                const auto size = static_cast<long double>(n);
                const long double rate = static_cast<long double>(k) / size;
                for (const long double end : {interval.lo, interval.hi}) {
                    if (end == 0 || end == 1) { continue; }
                    const long double z = std::abs(rate - end) / std::sqrt(end * (1 - end) / size);
                    CHECK(close(std::erfc(z / std::sqrt(2.0L)), 1 - static_cast<long double>(level), 1e-11L));
                }
            }
        }
    }
}

TEST_CASE("Student: the p-value is what the density leaves outside, and the interval's ends have it at 1 - level") {
    for (const double df : {1.0, 2.0, 3.0, 7.0, 29.0, 400.0}) {
        for (const double t : {0.01, 0.5, 1.0, 2.0, 4.0}) {
            CAPTURE(df);
            CAPTURE(t);
            CHECK(close(logitstat::student_p(t * 0.25, 0.25, df), student_tail(t, df), 1e-10L));
            CHECK(logitstat::student_p(-t * 0.25, 0.25, df) == logitstat::student_p(t * 0.25, 0.25, df));
            const confidence_level level(1 - logitstat::student_p(t, 1, df));
            CHECK(close(logitstat::student_interval(10, 2, df, level), {10 - 2 * t, 10 + 2 * t}, 1e-9L));
        }
        double before = 1;
        for (double t = 0.125; t < 50; t *= 1.5) {
            const double p = logitstat::student_p(t, 1, df);
            CHECK(p < before);
            CHECK(p > 0);
            before = p;
        }
    }
}

TEST_CASE("the sign test is a sum over fair coins, the same from either side") {
    for (std::int64_t higher = 0; higher <= 40; ++higher) {
        for (std::int64_t lower = 0; lower <= 40; lower += 1 + higher % 3) {
            CAPTURE(higher);
            CAPTURE(lower);
            const double p = logitstat::sign_test_p(higher, lower);
            CHECK(p == logitstat::sign_test_p(lower, higher));
            const long double sum = 2 * binomial_cdf(std::min(higher, lower), higher + lower, 0.5L);
            CHECK(close(p, std::min(1.0L, sum), 1e-13L));
            CHECK(p > 0);
            CHECK(p <= 1);
        }
    }
}

TEST_CASE("Holm: no less than p, no more than Bonferroni, in the order of the p-values, whatever that of the tests") {
    Random random(1);
    for (int round = 0; round < 300; ++round) {
        const std::size_t m = 1 + random.below(12);
        Column p(m);
        for (double& x : p) { x = random.chance(0.3) ? static_cast<double>(random.below(9)) / 8 : random.unit() * 0.2; }
        const Column adjusted = logitstat::holm_adjusted(p);
        for (std::size_t i = 0; i < m; ++i) {
            CHECK(adjusted[i] >= p[i]);
            CHECK(adjusted[i] <= std::min(1.0, static_cast<double>(m) * p[i]));
            long double largest = 0; // of all that are no larger, each times the number that are not before it
            for (std::size_t j = 0; j < m; ++j) {
                if (p[j] > p[i]) { continue; }
                const auto before = std::count_if(p.begin(), p.end(), [&](double x) { return x < p[j]; });
                largest = std::max(largest, static_cast<long double>(p[j]) *
                                                static_cast<long double>(m - static_cast<std::size_t>(before)));
                if (p[j] < p[i]) { CHECK(adjusted[j] <= adjusted[i]); }
                if (p[j] == p[i]) { CHECK(adjusted[j] == adjusted[i]); }
            }
            CHECK(close(adjusted[i], std::min(1.0L, largest), 1e-15L));
        }
        std::vector<std::size_t> order(m);
        std::iota(order.begin(), order.end(), std::size_t{0});
        shuffle(random, order);
        Column mixed(m);
        for (std::size_t i = 0; i < m; ++i) { mixed[i] = p[order[i]]; }
        const Column mixed_adjusted = logitstat::holm_adjusted(mixed);
        for (std::size_t i = 0; i < m; ++i) { CHECK(mixed_adjusted[i] == adjusted[order[i]]); }
    }
}

TEST_CASE("quantiles: rise with p, follow the values, and mirror") {
    Random random(2);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        const Column x = some_values(random, some_size(random));
        Column p(20);
        for (double& at : p) { at = random.pick({0.0, 0.5, 1.0, random.unit(), random.unit()}); }
        std::sort(p.begin(), p.end());
        for (const auto rule : {quantile_rule::floor_index, quantile_rule::linear, quantile_rule::linear_float}) {
            const Column q = logitstat::quantiles(x, p, rule);
            CHECK(std::is_sorted(q.begin(), q.end()));
            CHECK(q.front() >= *std::min_element(x.begin(), x.end()));
            CHECK(q.back() <= *std::max_element(x.begin(), x.end()));
            Column other = x;
            shuffle(random, other);
            CHECK(logitstat::quantiles(other, p, rule) == q);
            for (double& value : other) { value = 4 * value - 8; } // exact
            const Column affine = logitstat::quantiles(other, p, rule);
            for (std::size_t j = 0; j < p.size(); ++j) { CHECK(close(affine[j], 4 * q[j] - 8, 1e-14L)); }
        }
        const std::array<double, 5> half{0.0, 0.25, 0.5, 0.75, 1.0}; // 1 - p is exact
        Column negative = x;
        for (double& value : negative) { value = -value; }
        const Column q = logitstat::quantiles(x, half, quantile_rule::linear),
                     mirrored = logitstat::quantiles(negative, half, quantile_rule::linear);
        for (std::size_t j = 0; j < 5; ++j) { CHECK(close(mirrored[j], -q[4 - j], 1e-14L)); }
    }
}

TEST_CASE("standard errors: blind to a shift and a sign, in the unit of the values, and never past what adds up") {
    Random random(3);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        const Column x = some_values(random, some_size(random));
        const std::size_t n = x.size();
        const auto clusters = some_clusters(random, n);
        const logitstat::HacOptions hac{.lag = n > 1 ? std::optional(random.below(std::min<std::size_t>(n, 20)))
                                                     : std::nullopt,
                                        .stop_at_chunk_borders = random.chance(0.5)};
        const auto se = logitstat::standard_errors(x, clusters, hac);
        Column moved = x, back(x.rbegin(), x.rend());
        for (double& value : moved) { value = 5 - 2 * value; }
        const auto twice = logitstat::standard_errors(moved, clusters, hac);
        const auto same = [](std::optional<double> a, std::optional<double> b) { return close(a, b, 1e-10L); };
        const auto doubled = [](std::optional<double> a) { return a ? std::optional(2 * *a) : a; };
        CHECK(same(twice.iid, doubled(se.iid)));
        CHECK(same(twice.clustered, doubled(se.clustered)));
        CHECK(same(twice.hac, doubled(se.hac)));
        if (!se.hac || std::abs(*se.hac - *se.iid) > 1e-9 * *se.iid) { CHECK(twice.preferred() == se.preferred()); }
        // Read backwards, every pair of positions is as far apart as before.
        std::vector<std::size_t> mirrored;
        for (auto b = clusters.rbegin(); b != clusters.rend(); ++b) { mirrored.push_back(n - *b); }
        const auto reverse = logitstat::standard_errors(back, mirrored, hac);
        CHECK(same(reverse.iid, se.iid));
        CHECK(same(reverse.clustered, se.clustered));
        CHECK(same(reverse.hac, se.hac));
        if (n > 1) {
            CHECK(same(logitstat::hac_se(x, 0, clusters), se.iid));
            // Whole runs of equal weight: with as many lags as there are, Bartlett's sum goes to the squared sum of a
            // run, which is that of the clusters; without a border it is the sum of all deviations, 0.
            const auto all_lags = logitstat::hac_se(x, 1'000'000'000, clusters);
            const auto g = static_cast<double>(clusters.size() - 1), size = static_cast<double>(n);
            if (se.clustered) {
                CHECK(close(*all_lags * *all_lags * (g / (g - 1)), *se.clustered * *se.clustered * (size / (size - 1)),
                            1e-6L));
            }
        }
    }
}

TEST_CASE("root mean square: blind to signs, in the unit of the values, and no less than the mean") {
    Random random(4);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        const Column x = some_values(random, some_size(random));
        const auto clusters = some_clusters(random, x.size());
        const auto rms = logitstat::root_mean_square(x, clusters).value();
        Column other = x;
        for (double& value : other) { value *= random.pick({-2.0, 2.0}); }
        const auto twice = logitstat::root_mean_square(other, clusters).value();
        CHECK(twice.value == 2 * rms.value);
        for (auto error : {&logitstat::StandardErrors::iid, &logitstat::StandardErrors::clustered,
                           &logitstat::StandardErrors::hac}) {
            const std::optional<double> a = rms.se.*error, b = twice.se.*error;
            CHECK(b == (a ? std::optional(2 * *a) : a));
        }
        // mean^2 + variance, by the other accumulator
        const auto moments = logitstat::moments_of(std::span<const double>(x));
        const long double mean = moments.mean, variance = moments.m2 / static_cast<double>(moments.n);
        CHECK(close(rms.value, std::sqrt(mean * mean + variance), 1e-13L));
        CHECK(rms.value >= std::abs(moments.mean) * (1 - 1e-14));
    }
}

TEST_CASE("correlation: the same from either side, blind to unit and origin, and turned by a sign") {
    Random random(5);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        const std::size_t n = some_size(random);
        const Column x = some_values(random, n);
        Column y = some_values(random, n), z = y;
        for (std::size_t i = 0; i < n; ++i) { y[i] += random.chance(0.5) ? x[i] : 0; }
        for (std::size_t i = 0; i < n; ++i) { z[i] = 7 - 4 * y[i]; }
        const auto r = [](const Column& a, const Column& b) {
            return logitstat::correlation(std::span<const double>(a), std::span<const double>(b));
        };
        const auto xy = r(x, y), yx = r(y, x), xz = r(x, z), xx = r(x, x);
        CHECK(xy == yx);
        REQUIRE(xy.has_value() == xz.has_value());
        if (xy) {
            CHECK(std::abs(*xy) <= 1);
            CHECK(close(*xz, -*xy, 1e-10L));
            CHECK(close(*xx, 1, 1e-12L));
        }
        const bool constant = n < 2 || std::equal(x.begin() + 1, x.end(), x.begin());
        CHECK(xx.has_value() == !constant);
    }
}

TEST_CASE("a distribution: in the unit of its values, whatever their order but for errors along the text") {
    Random random(6);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        Column x = some_values(random, some_size(random));
        const auto clusters = some_clusters(random, x.size());
        std::int64_t infinite = 0;
        for (double& value : x) {
            if (random.chance(0.05)) {
                value = random.pick({1, -1}) * std::numeric_limits<double>::infinity();
                ++infinite;
            }
        }
        const auto d = logitstat::distribution(x, clusters);
        Column moved = x;
        for (double& value : moved) { value = -4 * value + 16; }
        const auto e = logitstat::distribution(moved, clusters);
        REQUIRE(d.has_value() == (infinite < static_cast<std::int64_t>(x.size())));
        REQUIRE(e.has_value() == d.has_value());
        if (!d) { continue; }
        CHECK(d->infinite == infinite);
        CHECK(e->infinite == infinite);
        CHECK(close(e->mean, 16 - 4 * d->mean, 1e-13L));
        CHECK(e->min == 16 - 4 * d->max);
        CHECK(e->max == 16 - 4 * d->min);
        CHECK(x[d->min_index] == d->min);
        CHECK(x[d->max_index] == d->max);
        CHECK(moved[e->min_index] == e->min);
        CHECK(std::find(x.begin(), x.end(), d->max) == x.begin() + static_cast<std::ptrdiff_t>(d->max_index));
        CHECK(std::find(x.begin(), x.end(), d->min) == x.begin() + static_cast<std::ptrdiff_t>(d->min_index));
        CHECK(close(e->se.iid, d->se.iid ? std::optional(4 * *d->se.iid) : std::nullopt, 1e-10L));
        REQUIRE(e->interval.has_value() == d->interval.has_value());
        if (d->interval) {
            CHECK(close(*e->interval, {16 - 4 * d->interval->hi, 16 - 4 * d->interval->lo}, 1e-10L));
            CHECK(d->interval->lo <= d->mean);
            CHECK(d->interval->hi >= d->mean);
        }
        const auto& p = logitstat::Distribution::probabilities;
        for (std::size_t j = 0; j < p.size(); ++j) {
            CHECK(close(e->quantiles[j], 16 - 4 * d->quantiles[p.size() - 1 - j], 1e-9L)); // p are symmetric, rounded
            CHECK(d->quantile(p[j]) == d->quantiles[j]);
            CHECK(d->quantiles[j] >= d->min);
            CHECK(d->quantiles[j] <= d->max);
        }
        CHECK(std::is_sorted(d->quantiles.begin(), d->quantiles.end()));
        shuffle(random, moved);
        const auto mixed = logitstat::distribution(moved, clusters).value();
        CHECK(mixed.quantiles == e->quantiles);
        CHECK(mixed.min == e->min);
        CHECK(mixed.max == e->max);
        CHECK(close(mixed.mean, e->mean, 1e-13L));
        CHECK(close(mixed.se.iid, e->se.iid, 1e-10L));
    }
}

TEST_CASE("bootstrap of a ratio: the same draws in another unit, shifted, or upside down") {
    Random random(7);
    for (int round = 0; round < 60; ++round) {
        CAPTURE(round);
        const std::size_t groups = 2 + random.below(40);
        Column a(groups), b(groups), shifted(groups);
        for (std::size_t c = 0; c < groups; ++c) {
            b[c] = static_cast<double>(1 + random.below(64));
            a[c] = static_cast<double>(1 + random.below(static_cast<std::size_t>(b[c])));
            shifted[c] = a[c] + 2 * b[c];
        }
        const confidence_level level(random.pick({0.5, 0.75})); // their tails are exact, so that 1 - tail is, too
        const logitstat::BootstrapOptions options{.replicates = 101, .seed = static_cast<std::uint32_t>(round)};
        const auto draw = [&](const Column& x, const Column& y, const confidence_level& at) {
            return logitstat::bootstrap_ratio(x, y, at, options).value();
        };
        const Interval interval = draw(a, b, level);
        CHECK(interval.lo <= interval.hi);
        CHECK(interval.lo > 0);
        CHECK(interval.hi <= 1);
        CHECK(draw(shifted, b, level) != interval);
        CHECK(close(draw(shifted, b, level), scaled(interval, 1, 2), 1e-14L));
        Column fourfold = a;
        for (double& x : fourfold) { x *= 4; }
        CHECK(draw(fourfold, b, level) == scaled(interval, 4));
        CHECK(draw(b, b, level) == Interval{1, 1});
        const Interval wider = draw(a, b, confidence_level(0.9));
        CHECK(wider.lo <= interval.lo);
        CHECK(wider.hi >= interval.hi);
        // 101 replicates at level 0.5: the tails are replicates 25 and 75 themselves, of b / a those of 1 / ratio.
        const Interval quartiles = draw(a, b, confidence_level(0.5)), upside_down = draw(b, a, confidence_level(0.5));
        CHECK(close(upside_down, {1 / quartiles.hi, 1 / quartiles.lo}, 1e-14L));
    }
}

TEST_CASE(
    "Korn-Graubard: whatever the order of the chunks, from either side, and the design effect by its definition") {
    Random random(8);
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        const std::size_t groups = 1 + random.below(12);
        std::vector<std::int64_t> k(groups), n(groups), rest(groups);
        const double alike = random.pick({0.0, 0.5, 1.0});
        for (std::size_t c = 0; c < groups; ++c) {
            n[c] = static_cast<std::int64_t>(random.below(30));
            k[c] = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(n[c]) + 1));
            if (random.chance(alike)) { k[c] = random.chance(0.5) ? n[c] : 0; }
            rest[c] = n[c] - k[c];
        }
        const confidence_level level(random.pick({0.8, 0.95}));
        const auto result = logitstat::korn_graubard(k, n, level);
        const auto same = [&](const auto& other, long double tolerance) {
            CHECK(close(other.design_effect, result.design_effect, tolerance));
            CHECK(close(other.effective_size, result.effective_size, tolerance));
        };
        const auto mirrored = logitstat::korn_graubard(rest, n, level);
        same(mirrored, 1e-11L);
        CHECK(close(mirrored.interval, {1 - result.interval.hi, 1 - result.interval.lo}, 1e-10L));
        std::vector<std::int64_t> k_mixed, n_mixed;
        std::vector<std::size_t> order(groups);
        std::iota(order.begin(), order.end(), std::size_t{0});
        shuffle(random, order);
        for (const std::size_t c : order) {
            k_mixed.push_back(k[c]);
            n_mixed.push_back(n[c]);
        }
        const auto mixed = logitstat::korn_graubard(k_mixed, n_mixed, level);
        same(mixed, 1e-12L);
        CHECK(close(mixed.interval, result.interval, 1e-11L));

        const auto total = std::accumulate(n.begin(), n.end(), std::int64_t{0}),
                   hits = std::accumulate(k.begin(), k.end(), std::int64_t{0});
        const auto counted = std::count_if(n.begin(), n.end(), [](auto size) { return size > 0; });
        if (hits == 0 || hits == total || counted < 2) {
            CHECK(result.design_effect == 1);
            CHECK(close(result.interval, logitstat::clopper_pearson(hits, total, level), 1e-13L));
            continue;
        }
        // The variance of the rate by the clustered standard error of the 0/1 column, over that of independent ones.
        Column column;
        std::vector<std::size_t> clusters{0};
        for (std::size_t c = 0; c < groups; ++c) {
            column.insert(column.end(), static_cast<std::size_t>(k[c]), 1.0);
            column.insert(column.end(), static_cast<std::size_t>(rest[c]), 0.0);
            if (n[c] > 0) { clusters.push_back(column.size()); }
        }
        const double se = logitstat::clustered_se(column, clusters).value();
        const double p = static_cast<double>(hits) / static_cast<double>(total);
        CHECK(close(result.design_effect, se * se * static_cast<double>(total) / (p * (1 - p)), 1e-11L));
    }
}

} // namespace test_columns

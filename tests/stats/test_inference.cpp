#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <boost/math/distributions/students_t.hpp>
#include <doctest/doctest.h>

#include "logitstat/compare.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/noise_floor.hpp"
#include "stats/close.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_inference {

// That compare() composes the statistics of certainty rightly: what it hands to them is counted here by plain loops,
// and on the trigram pair every figure is that of R.

using namespace logitstat;
using oracle::Pair;
using oracle::Random;
using oracle::random_pair;

namespace {

using Counts = std::vector<std::int64_t>;
using Sums = std::vector<double>;

/// A random pair cut into exactly `chunks` chunks of uneven size. It needs as many positions.
Pair pair_in_chunks(Random& random, std::size_t n, std::size_t chunks) {
    Pair pair = random_pair(random, {.n = n});
    std::set<std::size_t> starts{0};
    while (starts.size() < chunks) { starts.insert(random.below(n)); }
    std::int32_t chunk = -1, pos = 0;
    for (std::size_t i = 0; i < n; ++i, ++pos) {
        if (starts.contains(i)) {
            chunk += 1 + static_cast<std::int32_t>(random.below(3)); // numbers may be left out
            pos = 0;
        }
        pair.reference[i].chunk = pair.candidate[i].chunk = chunk;
        pair.reference[i].pos = pair.candidate[i].pos = pos;
    }
    return pair;
}

Comparison compared(const Pair& pair, const CompareOptions& options) {
    return compare(oracle::to_trace<double>(pair.reference, pair.reference_k),
                   oracle::to_trace<double>(pair.candidate, pair.candidate_k), options);
}

/// Sums over each chunk number, in ascending order.
template <class Value> auto by_chunk(const Pair& pair, Value value) {
    std::map<std::int32_t, decltype(value(std::size_t{0}))> sums;
    for (std::size_t i = 0; i < pair.size(); ++i) { sums[pair.reference[i].chunk] += value(i); }
    std::vector<decltype(value(std::size_t{0}))> list;
    for (const auto& [chunk, sum] : sums) { list.push_back(sum); }
    return list;
}
Counts count_by_chunk(const Pair& pair, const std::function<bool(std::size_t)>& condition) {
    return by_chunk(pair, [&](std::size_t i) { return std::int64_t{condition(i)}; });
}
Sums to_double(const auto& values) {
    Sums list;
    for (const auto& x : values) { list.push_back(static_cast<double>(x)); }
    return list;
}

bool same(const ClusteredProportion& a, const ClusteredProportion& b) {
    return a.design_effect == b.design_effect && a.effective_size == b.effective_size && a.interval == b.interval &&
           a.upper_bound == b.upper_bound;
}
bool close(const std::optional<Interval>& a, const std::optional<Interval>& b, long double tolerance = 1e-11L) {
    return a && b ? oracle::close(a->lo, b->lo, tolerance) && oracle::close(a->hi, b->hi, tolerance) : !a && !b;
}

/// Standard errors of a mean, each by its definition, in long double.
struct Errors {
    long double iid = 0, clustered = 0, hac = 0, mean = 0;

    Errors(const Pair& pair, const std::vector<long double>& x, std::size_t lag, bool stop_at_borders) {
        const auto n = static_cast<long double>(x.size());
        const oracle::MeanVariance moments(x);
        mean = moments.mean;
        iid = std::sqrt(moments.variance / n);
        const auto sums = by_chunk(pair, [&](std::size_t i) { return x[i] - mean; });
        long double squares = 0, products = 0;
        for (const long double sum : sums) { squares += sum * sum; }
        const auto groups = static_cast<long double>(sums.size());
        clustered = std::sqrt(groups / (groups - 1) * squares) / n;
        for (std::size_t i = 0; i < x.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) {
                const std::size_t apart = i < j ? j - i : i - j;
                if (apart > lag || (stop_at_borders && pair.reference[i].chunk != pair.reference[j].chunk)) {
                    continue;
                }
                products += (1 - static_cast<long double>(apart) / static_cast<long double>(lag + 1)) * (x[i] - mean) *
                            (x[j] - mean);
            }
        }
        hac = std::sqrt(std::max(0.0L, products) * n / (n - 1)) / n;
    }
};

void check_errors(const StandardErrors& se, const Errors& expected, std::size_t chunks) {
    CHECK(oracle::close(se.iid, std::optional(expected.iid), 1e-12L));
    CHECK(oracle::close(se.hac, std::optional(expected.hac), 1e-9L));
    CHECK(se.clusters == chunks);
    CHECK(se.clustered.has_value() == (chunks > 1));
    if (chunks > 1) { CHECK(oracle::close(*se.clustered, expected.clustered, 1e-11L)); }
}

/// Step of a type with `digits` significant bits at x, and x rounded to it, by arithmetic and not by bits.
struct Format {
    storage_type type;
    int digits, least_exponent;
    double step(double x) const {
        return std::ldexp(1.0, std::max(x == 0 ? least_exponent : std::ilogb(x), least_exponent) - digits + 1);
    }
    double rounded(double x) const { return std::nearbyint(x / step(x)) * step(x); }
    double ulps(const oracle::Row& row) const {
        const double top = rounded(row.logits[0]);
        return (top - rounded(row.logits[1])) / step(top);
    }
    bool holds(const Pair& pair) const {
        int telling = 0; // logits so large that six decimals show the type's steps
        for (const oracle::Row& row : pair.reference) {
            for (std::size_t j = 0; j < 2; ++j) {
                telling += step(row.logits[j]) > 5.000001e-6 ? 1 : 0;
                if (std::abs(row.logits[j] - rounded(row.logits[j])) > 0.5000001e-6) { return false; }
            }
        }
        return telling >= 8;
    }
};
constexpr std::array<Format, 3> formats{
    {{storage_type::bfloat16, 8, -126}, {storage_type::float16, 11, -14}, {storage_type::float32, 24, -126}}};

} // namespace

// ---- chunks as clusters --------------------------------------------------------------------------------------------

TEST_CASE("clustered rates and bootstraps are those of the counts in each chunk") {
    Random random(7);
    int drawn = 0, clustered = 0;
    for (int round = 0; round < 250; ++round) {
        CAPTURE(round);
        const std::size_t chunks = random.pick<std::size_t>({1, 2, 3, 8, 29, 30, 31, 45});
        const Pair pair = pair_in_chunks(random, std::max<std::size_t>(2, chunks) + random.below(200), chunks);
        const double t = random.pick({0.0, 0.0625, 0.5, 1.0, 2.0, 1e9});
        const confidence_level level(random.pick({0.8, 0.95, 0.99}));
        const BootstrapOptions bootstrap{random.pick<std::size_t>({50, 200}), random.pick<std::uint32_t>({1, 2, 77})};
        const Comparison c = compared(pair, {.decided_gap = t, .confidence = level, .bootstrap = bootstrap});

        const Counts disagree = count_by_chunk(pair, [&](std::size_t i) { return pair.differs(i); });
        const Counts size = count_by_chunk(pair, [](std::size_t) { return true; });
        const Counts judged = count_by_chunk(pair, [&](std::size_t i) { return pair.gap(i) >= t; });
        const Counts wrong = count_by_chunk(pair, [&](std::size_t i) { return pair.gap(i) >= t && pair.differs(i); });
        REQUIRE(size.size() == chunks);
        CHECK(c.chunks == chunks);
        CHECK(same(c.disagreements_clustered, korn_graubard(disagree, size, level)));
        CHECK(same(c.decided_clustered, korn_graubard(wrong, judged, level)));
        clustered += c.disagreements_clustered.design_effect > 1 ? 1 : 0;

        if (chunks < 30) {
            CHECK_FALSE(c.decided_bootstrap);
            CHECK_FALSE(c.ratio_bootstrap);
            continue;
        }
        if (pair.mismatches(t) == 0 || pair.mismatches(t) == pair.decided(t)) { // every draw would be the same
            CHECK_FALSE(c.decided_bootstrap);
        } else {
            CHECK(c.decided_bootstrap == bootstrap_ratio(to_double(wrong), to_double(judged), level, bootstrap));
        }
        const Comparison undrawn = compared(pair, {.decided_gap = t, .bootstrap = {.replicates = 0}});
        CHECK_FALSE(undrawn.decided_bootstrap);
        CHECK_FALSE(undrawn.ratio_bootstrap);
        const auto d = pair.nll_differences();
        const Sums shift = to_double(by_chunk(pair, [&](std::size_t i) { return d[i]; }));
        const Interval mean = bootstrap_ratio(shift, to_double(size), level, bootstrap).value();
        CHECK(close(c.ratio_bootstrap, Interval{std::exp(mean.lo), std::exp(mean.hi)}));
        drawn += c.decided_bootstrap ? 1 : 0;
    }
    CHECK(drawn > 20);
    CHECK(clustered > 20);
}

TEST_CASE("positions that are left out are left out of the chunks' counts too") {
    Random random(8);
    Pair pair = pair_in_chunks(random, 120, 31);
    Pair kept = pair;
    for (auto* rows : {&kept.reference, &kept.candidate}) { rows->erase(rows->begin() + 40, rows->begin() + 43); }
    for (std::size_t i = 40; i < 43; ++i) { pair.candidate[i].nll = std::nan(""); }
    const Comparison c = compared(pair, {.decided_gap = 0.5, .worst = 1000, .non_finite = non_finite_policy::skip});
    const Comparison expected = compared(kept, {.decided_gap = 0.5});
    CHECK(c.skipped_non_finite == 3);
    CHECK(c.chunks == expected.chunks);
    CHECK(same(c.disagreements_clustered, expected.disagreements_clustered));
    CHECK(same(c.decided_clustered, expected.decided_clustered));
    CHECK(c.decided_bootstrap == expected.decided_bootstrap);
    CHECK(c.ratio_bootstrap == expected.ratio_bootstrap);
    CHECK(c.nll_difference.p == expected.nll_difference.p);
    for (const Disagreement& at : c.worst) { // the ulps are those of the position that the index names
        CHECK(at.ulps == Format(formats[static_cast<std::size_t>(c.storage)]).ulps(pair.reference[at.index]));
    }
}

// ---- standard errors, tests and intervals --------------------------------------------------------------------------

TEST_CASE("errors, t, p and intervals of the NLLs and of their difference") {
    Random random(9);
    for (int round = 0; round < 120; ++round) {
        CAPTURE(round);
        const std::size_t chunks = random.pick<std::size_t>({1, 2, 8, 29, 30, 31});
        const Pair pair = pair_in_chunks(random, std::max<std::size_t>(3, chunks) + random.below(120), chunks);
        const std::size_t n = pair.size();
        const HacOptions hac{.lag = random.chance(0.5) ? std::optional(random.below(std::min<std::size_t>(n, 12)))
                                                       : std::nullopt,
                             .stop_at_chunk_borders = random.chance(0.5)};
        const std::size_t lag = std::min(
            n - 1, hac.lag.value_or(static_cast<std::size_t>(4 * std::pow(static_cast<double>(n) / 100, 2.0 / 9))));
        const confidence_level level(random.pick({0.8, 0.95, 0.99}));
        const Comparison c = compared(pair, {.confidence = level, .hac = hac});
        const auto errors_of = [&](const std::vector<long double>& x) {
            return Errors(pair, x, lag, hac.stop_at_chunk_borders);
        };
        const Errors a = errors_of(oracle::nlls(pair.reference)), b = errors_of(oracle::nlls(pair.candidate)),
                     d = errors_of(pair.nll_differences());
        check_errors(c.reference_perplexity.nll_se, a, chunks);
        check_errors(c.candidate_perplexity.nll_se, b, chunks);
        check_errors(c.nll_difference.se, d, chunks);
        CHECK(c.nll_difference.se.lag == lag);
        CHECK(c.reference_perplexity.nll_se.lag == lag);

        const bool many = chunks >= 30;
        const double df = static_cast<double>(many ? chunks : n) - 1;
        const auto used = [&](const Errors& e) { return many ? e.clustered : std::max(e.hac, e.iid); };
        const dependence few = d.hac < d.iid ? dependence::iid : dependence::hac;
        if (many || std::abs(d.hac - d.iid) > 1e-9L) { // else rounding may decide, and it does not matter
            CHECK(c.nll_difference.se.preferred() == (many ? dependence::clustered : few));
        }
        CHECK(c.nll_difference.se.df() == df);
        const boost::math::students_t student(df);
        const double reach = boost::math::quantile(student, (1 + level.value()) / 2);
        const auto around = [&](const Errors& e) {
            const auto mean = static_cast<double>(e.mean);
            const auto half = reach * static_cast<double>(used(e));
            return Interval{mean - half, mean + half};
        };
        const auto exp_of = [](const Interval& log) { return Interval{std::exp(log.lo), std::exp(log.hi)}; };
        CHECK(close(c.reference_perplexity.interval, exp_of(around(a)), 1e-9L));
        CHECK(close(c.candidate_perplexity.interval, exp_of(around(b)), 1e-9L));
        CHECK(close(c.nll_difference.interval, around(d), 1e-9L));
        CHECK(close(c.nll_difference.ratio_interval, exp_of(*c.nll_difference.interval), 1e-15L));
        const auto se = static_cast<double>(used(d)), mean = static_cast<double>(d.mean);
        if (se > 1e-9) { // else all differences are equal, or there are none
            CHECK(oracle::close(c.nll_difference.t, std::optional(mean / se), 1e-8L));
            CHECK(oracle::close(c.nll_difference.p, std::optional(2 * boost::math::cdf(student, -std::abs(mean / se))),
                                1e-8L));
        } else if (pair.identical_data()) {
            CHECK(c.nll_difference.p == 1.0);
        }
    }
}

TEST_CASE("the lag and the chunk borders reach every autocorrelation-consistent error") {
    Random random(10);
    const Pair pair = pair_in_chunks(random, 90, 12);
    const auto errors = [&](const HacOptions& hac) {
        const Comparison c = compared(pair, {.hac = hac});
        return std::array{c.reference_perplexity.nll_se, c.candidate_perplexity.nll_se, c.nll_difference.se};
    };
    const auto usual = errors({}), longer = errors({.lag = 9}), none = errors({.lag = 0}),
               apart = errors({.stop_at_chunk_borders = true});
    for (std::size_t i = 0; i < usual.size(); ++i) {
        CHECK(usual[i].lag == 3);
        CHECK(longer[i].lag == 9);
        CHECK(oracle::close(none[i].hac, none[i].iid, 1e-13L));
        CHECK(longer[i].hac != usual[i].hac);
        CHECK(apart[i].hac != usual[i].hac);
        for (const auto& other : {longer, none, apart}) {
            CHECK(other[i].iid == usual[i].iid);
            CHECK(other[i].clustered == usual[i].clustered);
        }
    }
}

TEST_CASE("the confidence level reaches every interval and bound") {
    Random random(11);
    Comparison narrow, wide;
    do { // a pair that has all of them
        const Pair pair = pair_in_chunks(random, 200, 35);
        narrow = compared(pair, {.decided_gap = 0.5, .confidence = confidence_level(0.5)});
        wide = compared(pair, {.decided_gap = 0.5, .confidence = confidence_level(0.99)});
    } while (wide.decided.mismatches == 0 || wide.decided.mismatches == wide.decided.positions);
    CHECK(narrow.confidence.value() == 0.5);
    CHECK(wide.confidence.value() == 0.99);
    const auto intervals = [](const Comparison& c) {
        return std::vector<std::optional<Interval>>{c.disagreements_clustered.interval,
                                                    c.decided_clustered.interval,
                                                    c.decided_bootstrap,
                                                    c.ratio_bootstrap,
                                                    c.reference_perplexity.interval,
                                                    c.candidate_perplexity.interval,
                                                    c.nll_difference.interval,
                                                    c.nll_difference.ratio_interval,
                                                    c.rate(c.decided).interval,
                                                    Interval{0, c.rate(c.decided).upper_bound},
                                                    Interval{0, c.decided_clustered.upper_bound},
                                                    Interval{0, c.disagreements_clustered.upper_bound}};
    };
    for (std::size_t i = 0; i < intervals(wide).size(); ++i) {
        CAPTURE(i);
        const auto inner = intervals(narrow)[i], outer = intervals(wide)[i];
        REQUIRE((inner && outer));
        CHECK((i > 8 ? inner->lo == outer->lo : inner->lo > outer->lo)); // the last three are bounds
        CHECK(inner->hi < outer->hi);
    }
    CHECK(wide.rate(wide.decided).interval ==
          clopper_pearson(wide.decided.mismatches, wide.decided.positions, confidence_level(0.99)));
}

TEST_CASE("the rules and their confidence reach the verdict, and are kept") {
    Random random(12);
    Pair pair;
    do { pair = random_pair(random, {.n = 200}); } while (pair.mismatches(1) < 2 || pair.decided(1) < 50);
    const std::int64_t wrong = pair.mismatches(1), judged = pair.decided(1);
    const auto verdict = [&](const VerdictRules& rules, double level = 0.95) {
        const Comparison c = compared(pair, {.decided_gap = 1, .rules = rules, .confidence = confidence_level(level)});
        CHECK(c.rules.max_mismatches == rules.max_mismatches);
        CHECK(c.rules.min_decided == rules.min_decided);
        CHECK(c.rules.max_rate == rules.max_rate);
        return c.verdict;
    };
    CHECK(verdict({}) == Verdict::fail);
    CHECK(verdict({.max_mismatches = wrong - 1}) == Verdict::fail);
    CHECK(verdict({.max_mismatches = wrong}) == Verdict::pass);
    CHECK(verdict({.max_mismatches = wrong, .min_decided = judged}) == Verdict::pass);
    CHECK(verdict({.max_mismatches = wrong, .min_decided = judged + 1}) == Verdict::inconclusive);
    const double at_90 = proportion_upper_bound(wrong, judged, confidence_level(0.9));
    CHECK(verdict({.max_mismatches = wrong, .max_rate = at_90 + 1e-9}, 0.9) == Verdict::pass);
    CHECK(verdict({.max_mismatches = wrong, .max_rate = at_90}, 0.9) == Verdict::inconclusive); // must be excluded
    CHECK(verdict({.max_mismatches = wrong, .max_rate = at_90 + 1e-9}, 0.95) == Verdict::inconclusive);
    CHECK_THROWS_AS(verdict({.max_mismatches = -1}), std::invalid_argument);
}

// ---- steps of the storage type -------------------------------------------------------------------------------------

TEST_CASE("the sweep in steps of a type, stated or inferred") {
    Random random(13);
    std::map<storage_type, int> inferred;
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        const Pair pair = random_pair(random);
        const std::vector<double> thresholds{0, 1, 2, 4, 0.5, 2, 100};
        const auto check = [&](const Comparison& c, const Format& format) {
            CHECK(c.storage == format.type);
            REQUIRE(c.ulp_sweep.size() == thresholds.size());
            for (std::size_t j = 0; j < thresholds.size(); ++j) {
                CHECK(c.ulp_sweep[j].threshold == thresholds[j]);
                CHECK(c.ulp_sweep[j].positions ==
                      pair.count([&](std::size_t i) { return format.ulps(pair.reference[i]) >= thresholds[j]; }));
                CHECK(c.ulp_sweep[j].mismatches == pair.count([&](std::size_t i) {
                    return pair.differs(i) && format.ulps(pair.reference[i]) >= thresholds[j];
                }));
            }
            const auto worst = pair.worst();
            CHECK(c.largest_gap.has_value() == !worst.empty());
            if (c.largest_gap) { CHECK(c.largest_gap->ulps == format.ulps(pair.reference[worst[0]])); }
            REQUIRE(c.worst.size() == std::min<std::size_t>(worst.size(), 3));
            for (std::size_t i = 0; i < c.worst.size(); ++i) {
                CHECK(c.worst[i].ulps == format.ulps(pair.reference[worst[i]]));
            }
        };
        for (const Format& format : formats) {
            const Comparison c = compared(pair, {.ulps = thresholds, .storage = format.type, .worst = 3});
            CHECK_FALSE(c.storage_inferred);
            check(c, format);
        }
        const Comparison c = compared(pair, {.ulps = thresholds, .worst = 3});
        CHECK(c.storage_inferred);
        const Format narrowest = formats[0].holds(pair) ? formats[0] : formats[1].holds(pair) ? formats[1] : formats[2];
        check(c, narrowest);
        ++inferred[narrowest.type];
    }
    CHECK(inferred.size() == 3);
    for (const auto& [type, count] : inferred) { CHECK(count > 5); }
}

TEST_CASE("the largest gap has its steps even when no disagreement is listed; the default sweep is 1, 2, 4") {
    Random random(14);
    Pair pair;
    do { pair = random_pair(random); } while (pair.disagreements() == 0);
    const Comparison c = compared(pair, {});
    CHECK(c.worst.empty());
    REQUIRE(c.largest_gap);
    CHECK(c.largest_gap->ulps.has_value());
    REQUIRE(c.ulp_sweep.size() == 3);
    for (std::size_t j = 0; j < 3; ++j) { CHECK(c.ulp_sweep[j].threshold == std::array{1.0, 2.0, 4.0}[j]); }
    CHECK(compared(pair, {.ulps = {}}).ulp_sweep.empty());
}

// ---- accuracy ------------------------------------------------------------------------------------------------------

TEST_CASE("McNemar's table") {
    Random random(15);
    for (int round = 0; round < 200; ++round) {
        const Pair pair = random_pair(random);
        const McNemar table = compared(pair, {}).mcnemar;
        const auto cell = [&](bool reference_right, bool candidate_right) {
            return pair.count([&](std::size_t i) {
                return (pair.reference[i].ids[0] == pair.reference[i].target) == reference_right &&
                       (pair.candidate[i].ids[0] == pair.candidate[i].target) == candidate_right;
            });
        };
        CHECK(table.both == cell(true, true));
        CHECK(table.only_reference == cell(true, false));
        CHECK(table.only_candidate == cell(false, true));
        CHECK(table.neither == cell(false, false));
        CHECK(table.p == sign_test_p(table.only_reference, table.only_candidate));
    }
}

// ---- noise floor ---------------------------------------------------------------------------------------------------

TEST_CASE("the noise floor: every figure, beyond it or within") {
    const auto with = [](double scale) { // every figure has a value of its own
        Comparison c;
        c.positions = 1000;
        c.disagreements = static_cast<std::int64_t>(scale * 10);
        c.decided = {2, 100, static_cast<std::int64_t>(scale * 4)};
        c.largest_gap = Disagreement{};
        c.largest_gap->gap = scale * 0.5;
        c.logit_delta.p50 = scale * 0.0625;
        c.logit_delta.p90 = 77; // no headline
        c.logit_delta.p99 = scale * 0.25;
        c.logit_delta.max = scale * 0.375;
        c.nll_difference.mean = scale * 0.001953125;
        c.nll_difference.largest = scale * 3;
        c.nll_difference.perplexity_percent = scale * 0.1875;
        return c;
    };
    const std::vector<std::pair<std::string, double>> unit{{"top-1 disagreement rate", 0.01},
                                                           {"decided mismatch rate", 0.04},
                                                           {"largest gap at a disagreement", 0.5},
                                                           {"logit delta p50", 0.0625},
                                                           {"logit delta p99", 0.25},
                                                           {"logit delta max", 0.375},
                                                           {"mean NLL difference", 0.001953125},
                                                           {"largest NLL difference", 3},
                                                           {"perplexity change in percent", 0.1875}};
    const auto check = [&](double candidate, double rerun, bool beyond) {
        const auto figures = noise_floor(with(candidate), with(rerun));
        REQUIRE(figures.size() == unit.size());
        for (std::size_t i = 0; i < unit.size(); ++i) {
            CAPTURE(unit[i].first);
            CHECK(figures[i].name == unit[i].first);
            CHECK(oracle::close(figures[i].candidate, std::optional(candidate * unit[i].second), 1e-15L));
            CHECK(oracle::close(figures[i].floor, std::optional(rerun * unit[i].second), 1e-15L));
            CHECK(figures[i].beyond == beyond);
        }
    };
    check(2, 1, true);
    check(1, 2, false);
    check(1, 1, false); // as large as the noise is not beyond it
    check(1, 0, true);
    check(0, 0, false);

    // One figure above the floor, the others on it: only that one is beyond.
    for (std::size_t i = 0; i < unit.size(); ++i) {
        Comparison one = with(1);
        switch (i) {
        case 0: ++one.disagreements; break;
        case 1: ++one.decided.mismatches; break;
        case 2: one.largest_gap->gap += 1; break;
        case 3: *one.logit_delta.p50 += 1; break;
        case 4: *one.logit_delta.p99 += 1; break;
        case 5: *one.logit_delta.max += 1; break;
        case 6: one.nll_difference.mean += 1; break;
        case 7: one.nll_difference.largest += 1; break;
        default: one.nll_difference.perplexity_percent += 1; break;
        }
        const auto figures = noise_floor(one, with(1));
        for (std::size_t j = 0; j < unit.size(); ++j) { CHECK(figures[j].beyond == (i == j)); }
    }
}

TEST_CASE("the noise floor compares sizes, whatever their signs") {
    const auto beyond = [](double candidate, double rerun) {
        Comparison a, b;
        a.positions = b.positions = 1;
        a.nll_difference.mean = candidate;
        b.nll_difference.mean = rerun;
        const auto figures = noise_floor(a, b);
        CHECK(figures[6].candidate == candidate); // shown as they are
        CHECK(figures[6].floor == rerun);
        return figures[6].beyond;
    };
    CHECK(beyond(-2, 1));
    CHECK(beyond(2, -1));
    CHECK_FALSE(beyond(1, -2));
    CHECK_FALSE(beyond(-1, 2));
    CHECK_FALSE(beyond(1, -1));
}

TEST_CASE("the noise floor of figures that do not exist") {
    Comparison candidate, rerun;
    candidate.positions = rerun.positions = 10;
    candidate.largest_gap = Disagreement{};
    candidate.largest_gap->gap = 0; // a tie, and the rerun had no disagreement at all
    candidate.decided = {2, 5, 0};
    rerun.logit_delta.p50 = 0.5;
    const auto figures = noise_floor(candidate, rerun);
    CHECK(figures[1].candidate == 0.0); // a rate of 0 where the rerun has no rate
    CHECK_FALSE(figures[1].floor);
    CHECK(figures[1].beyond);
    CHECK(figures[2].candidate == 0.0);
    CHECK_FALSE(figures[2].floor);
    CHECK(figures[2].beyond);
    CHECK_FALSE(figures[3].candidate); // nothing is never beyond anything
    CHECK(figures[3].floor == 0.5);
    CHECK_FALSE(figures[3].beyond);
    CHECK_FALSE(figures[4].candidate);
    CHECK_FALSE(figures[4].floor);
    CHECK_FALSE(figures[4].beyond);
}

// ---- the trigram pair, against R -----------------------------------------------------------------------------------

TEST_CASE("the trigram pair: errors, tests and intervals are R's") {
    // R 4.2, sandwich 3.0, in tests/data:
    //   library(sandwich); library(survey)
    //   first <- function(s, j) sapply(strsplit(s, ","), function(v) as.numeric(v[j]))
    //   read <- function(f) setNames(read.table(f, sep="\t"), c("chunk","pos","target","nll","ids","logits"))
    //   a <- read("trigram_float32.tsv"); b <- read("trigram_int8.tsv"); d <- b$nll - a$nll; n <- length(d)
    const Comparison c =
        compare(read_trace(TEST_DATA "/trigram_float32.tsv"), read_trace(TEST_DATA "/trigram_int8.tsv"));
    REQUIRE(c.positions == 320);
    REQUIRE(c.chunks == 8);

    // m <- lm(x ~ 1) for x of d, a$nll, b$nll:
    //   sqrt(c(vcovHC(m, type="HC1"), vcovCL(m, cluster=a$chunk, type="HC0", cadjust=TRUE),
    //          NeweyWest(m, lag=floor(4*(n/100)^(2/9)), prewhite=FALSE, adjust=TRUE)))
    // statsmodels 0.13: OLS(x, ones(n)).fit(cov_type="HAC", cov_kwds={"maxlags": 5, "use_correction": True}).bse, and
    // cov_type="cluster" without correction times sqrt(8/7), agree in 13 digits.
    const auto check = [](const StandardErrors& se, double iid, double clustered, double hac) {
        CHECK(se.lag == 5);
        CHECK(expected::close(se.iid, iid, 1e-12));
        CHECK(expected::close(se.clustered, clustered, 1e-12));
        CHECK(expected::close(se.hac, hac, 1e-12));
    };
    check(c.nll_difference.se, 0.00207804519738569, 0.00241028718668495, 0.0023333108721027);
    check(c.reference_perplexity.nll_se, 0.136773036755869, 0.231547988705023, 0.162264550536175);
    check(c.candidate_perplexity.nll_se, 0.136626159537952, 0.22977447216179, 0.161065508075856);

    // se <- that of NeweyWest; mean(d); mean(d)/se; 2*pt(-abs(mean(d)/se), n-1); mean(d) + c(-1,1)*qt(.975, n-1)*se;
    // exp of the mean and of the interval
    const NllDifference& d = c.nll_difference;
    CHECK(expected::close(d.mean, -0.00573448437499998, 1e-12));
    CHECK(expected::close(d.t, -2.45765981874171, 1e-12));
    CHECK(expected::close(d.p, 0.0145161394478336, 1e-11));
    REQUIRE((d.interval && d.ratio_interval));
    CHECK(expected::close(d.interval->lo, -0.0103251064202428, 1e-12));
    CHECK(expected::close(d.interval->hi, -0.0011438623297572, 1e-11)); // a difference of two terms four times as large
    CHECK(expected::close(d.perplexity_ratio, 0.994281926396435, 1e-13));
    CHECK(expected::close(d.ratio_interval->lo, 0.989728014507441, 1e-13));
    CHECK(expected::close(d.ratio_interval->hi, 0.998856791631387, 1e-13));

    // exp(mean(x)); exp(mean(x))*sd(x)/sqrt(n); exp(mean(x) + c(-1,1)*qt(.975, n-1)*se), x of a$nll, b$nll
    const auto check_perplexity = [](const Perplexity& p, double value, double se, double lo, double hi) {
        CHECK(expected::close(p.value, value, 1e-12));
        CHECK(expected::close(p.se, se, 1e-12));
        REQUIRE(p.interval);
        CHECK(expected::close(p.interval->lo, lo, 1e-12));
        CHECK(expected::close(p.interval->hi, hi, 1e-12));
    };
    check_perplexity(c.reference_perplexity, 62.1567873941194, 8.50137256688264, 45.1692316330203, 85.5331401372217);
    check_perplexity(c.candidate_perplexity, 61.8013703088386, 8.44368387947942, 45.0170219931808, 84.8436703038411);

    // binom.test(sum(d>0), sum(d!=0))$p.value; scipy.stats.binomtest(126, 320).pvalue agrees. cor(a$nll, b$nll)
    CHECK(d.higher == 126);
    CHECK(d.lower == 194);
    CHECK(expected::close(d.sign_test_p, 0.000171053755169855, 1e-12));
    CHECK(expected::close(d.correlation, 0.999885033694018, 1e-13));

    // ra <- first(a$ids,1)==a$target; rb <- first(b$ids,1)==b$target; table(ra, rb)
    // binom.test(sum(ra&!rb), sum(ra!=rb))$p.value
    CHECK(c.mcnemar.both == 62);
    CHECK(c.mcnemar.only_reference == 2);
    CHECK(c.mcnemar.only_candidate == 5);
    CHECK(c.mcnemar.neither == 251);
    CHECK(expected::close(c.mcnemar.p, 0.453125, 1e-13));

    // y <- first(a$ids,1)!=first(b$ids,1); g <- first(a$logits,1)-first(a$logits,2); k <- sum(y&g>=t); m <- sum(g>=t)
    // binom.test(k, m)$conf.int; binom.test(k, m, alternative="less")$conf.int[2]
    const auto check_rate = [&](double t, std::int64_t k, std::int64_t m, double lo, double hi, double bound) {
        CAPTURE(t);
        const DecidedCount count = compare(read_trace(TEST_DATA "/trigram_float32.tsv"),
                                           read_trace(TEST_DATA "/trigram_int8.tsv"), {.decided_gap = t})
                                       .decided;
        CHECK(count == DecidedCount{t, m, k});
        const Proportion rate = c.rate(count);
        CHECK(expected::close(rate.interval.lo, lo, 1e-12));
        CHECK(expected::close(rate.interval.hi, hi, 1e-12));
        CHECK(expected::close(rate.upper_bound, bound, 1e-12));
    };
    check_rate(0, 45, 320, 0.104457067453169, 0.183607457070785, 0.176642036552251);
    check_rate(0.01, 16, 283, 0.032657569960737, 0.090190721496392, 0.0846061912339475);
    check_rate(0.02, 15, 282, 0.0300729569061527, 0.0862145970998767, 0.0807255394569093);
    check_rate(0.5, 0, 190, 0, 0.0192278947533278, 0.0156433633423071);
    check_rate(2, 0, 76, 0, 0.0473787538669307, 0.0386507667257255);

    // s <- svydesign(ids=~chunk, weights=~1, data=data.frame(chunk=a$chunk, y=as.numeric(y))); q <- mean(y)
    // deff <- vcov(svymean(~y, s))[1]/(q*(1-q)/n); m <- n/deff*(qt(.025, n-1)/qt(.025, degf(s)))^2
    // confint(svyciprop(~I(y==1), s, method="beta")); qbeta(.95, m*q+1, m*(1-q))
    CHECK(expected::close(c.disagreements_clustered.design_effect, 1.11930735930736, 1e-12));
    CHECK(expected::close(c.disagreements_clustered.effective_size, 197.91294756215, 1e-12));
    CHECK(expected::close(c.disagreements_clustered.interval.lo, 0.0953964591214682, 1e-12));
    CHECK(expected::close(c.disagreements_clustered.interval.hi, 0.196984701212174, 1e-12));
    CHECK(expected::close(c.disagreements_clustered.upper_bound, 0.187848004130804, 1e-12));
}

} // namespace test_inference

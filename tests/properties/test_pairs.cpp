#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/compare.hpp"
#include "logitstat/trace/concatenate.hpp"
#include "properties/transforms.hpp"

namespace test_pairs {

// What must hold between the figures of a pair and those of a pair that says the same, or a known part more. The
// figures themselves are checked against the definitions in tests/stats; README.md says which property is of which
// header.

using logitstat::CompareOptions;
using logitstat::Comparison;
using logitstat::Interval;
using logitstat::Verdict;
using oracle::close;
using oracle::describe;
using properties::chunk_runs;
using properties::close;
using properties::compared;
using properties::Pair;
using properties::Random;
using properties::Row;
using properties::Rows;
using properties::Traces;

namespace {

/// Runs `check(random, pair)` for many pairs.
template <class Real> void for_pairs(std::uint64_t first_seed, std::uint64_t count, auto check) {
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Pair pair = properties::pair_of_any_shape(random, sizeof(Real) == 4);
        check(random, pair);
    }
}

CompareOptions some_options(Random& random, const Pair& pair) {
    return {.decided_gap = random.pick({0.0, 0.5, 2.0}),
            .thresholds = oracle::random_thresholds(random, pair),
            .worst = random.pick<std::size_t>({0, 3, 1000}),
            .bootstrap = {.replicates = 64},
            .step_curve = random.chance(0.5)};
}

/// The parts that do not depend on rounding: all else is set to nothing.
Comparison only_counts(Comparison c) {
    c.reference_perplexity = c.candidate_perplexity = {};
    c.logit_delta.mean_signed.reset();
    const auto d = c.nll_difference;
    c.nll_difference = {};
    c.nll_difference.higher = d.higher;
    c.nll_difference.lower = d.lower;
    c.nll_difference.equal = d.equal;
    c.nll_difference.largest = d.largest;
    return c;
}

void check_same_counts(const Comparison& a, const Comparison& b) {
    const auto counts = [](const Comparison& c) { return describe(only_counts(properties::without_names(c, false))); };
    CHECK((counts(a) == counts(b))); // the texts are long
    CHECK(a.ulp_sweep == b.ulp_sweep);
    CHECK(a.storage == b.storage);
    CHECK(a.mcnemar.both == b.mcnemar.both);
    CHECK(a.mcnemar.only_reference == b.mcnemar.only_reference);
    CHECK(a.mcnemar.only_candidate == b.mcnemar.only_candidate);
    CHECK(a.mcnemar.neither == b.mcnemar.neither);
    CHECK(a.mcnemar.p == b.mcnemar.p);
    CHECK(a.nll_difference.sign_test_p == b.nll_difference.sign_test_p);
}

/// Errors of two means that are the same but for rounding; `with_lags`: the autocorrelation-consistent one as well.
void check_same_errors(const logitstat::StandardErrors& a, const logitstat::StandardErrors& b, bool with_lags) {
    CHECK(a.n == b.n);
    CHECK(a.clusters == b.clusters);
    CHECK(a.lag == b.lag);
    CHECK(close(a.iid, b.iid, 1e-10L));
    CHECK(close(a.clustered, b.clustered, 1e-10L));
    if (with_lags) { CHECK(close(a.hac, b.hac, 1e-10L)); }
}

std::optional<double> scaled(std::optional<double> x, double factor) {
    return x ? std::optional(*x * factor) : std::nullopt;
}

double square_root(double x) { return std::sqrt(x); }

} // namespace

TEST_CASE_TEMPLATE("positions of a chunk, and chunks, in another order: only errors that look along the text change",
                   Real, double, float) {
    for_pairs<Real>(1, 120, [](Random& random, const Pair& pair) {
        const CompareOptions options = some_options(random, pair);
        const Comparison a = compared<Real>(pair, options),
                         b = compared<Real>(properties::shuffled_in_chunks(random, pair), options);
        check_same_counts(a, b);
        CHECK(close(a.disagreements_clustered, b.disagreements_clustered, 1e-9L));
        CHECK(close(a.decided_clustered, b.decided_clustered, 1e-9L));
        check_same_errors(a.nll_difference.se, b.nll_difference.se, false);
        check_same_errors(a.reference_perplexity.nll_se, b.reference_perplexity.nll_se, false);
        check_same_errors(a.perplexity_difference->se, b.perplexity_difference->se, false);
        CHECK(close(a.nll_difference.mean, b.nll_difference.mean, 1e-13L));
        CHECK(close(a.perplexity_difference->value, b.perplexity_difference->value, 1e-11L));
        CHECK(close(a.nll_difference.correlation, b.nll_difference.correlation, 1e-10L));
        CHECK(close(a.logit_delta.mean_signed, b.logit_delta.mean_signed, 1e-13L));
        if (a.chunks >= logitstat::many_clusters) { // by the clustered error, which knows no order
            CHECK(close(a.nll_difference.interval, b.nll_difference.interval, 1e-9L));
            CHECK(close(a.reference_perplexity.interval, b.reference_perplexity.interval, 1e-9L));
        }
    });
}

TEST_CASE_TEMPLATE("swapped arms: what is paired turns round, what is common stays", Real, double, float) {
    for_pairs<Real>(200, 120, [](Random&, const Pair& pair) {
        const Comparison a = compared<Real>(pair, {.bootstrap = {.replicates = 0}}),
                         b = compared<Real>(properties::swapped(pair), {.bootstrap = {.replicates = 0}});
        CHECK(a.disagreements == b.disagreements);
        CHECK(close(a.disagreements_clustered, b.disagreements_clustered, 0));
        CHECK(a.identical_data == b.identical_data);
        CHECK((a.verdict == Verdict::identical) == (b.verdict == Verdict::identical));
        CHECK(a.mcnemar.only_reference == b.mcnemar.only_candidate);
        CHECK(a.mcnemar.only_candidate == b.mcnemar.only_reference);
        CHECK(a.mcnemar.both == b.mcnemar.both);
        CHECK(a.mcnemar.neither == b.mcnemar.neither);
        CHECK(a.mcnemar.p == b.mcnemar.p);
        const auto &d = a.nll_difference, &e = b.nll_difference;
        CHECK(d.mean == -e.mean);
        CHECK(d.largest == -e.largest);
        CHECK(d.largest_index == e.largest_index);
        CHECK(d.higher == e.lower);
        CHECK(d.lower == e.higher);
        CHECK(d.equal == e.equal);
        CHECK(d.sign_test_p == e.sign_test_p);
        CHECK(d.p == e.p);
        CHECK(d.t == scaled(e.t, -1));
        check_same_errors(d.se, e.se, true);
        if (d.interval) { CHECK(close(*d.interval, Interval{-e.interval->hi, -e.interval->lo}, 1e-14L)); }
        CHECK(close(d.perplexity_ratio * e.perplexity_ratio, 1, 1e-13L));
        CHECK(close((1 + d.perplexity_percent / 100) * e.perplexity_ratio, 1, 1e-12L));
        CHECK(close(d.correlation, e.correlation, 1e-14L));
        CHECK(a.perplexity_difference->value == -b.perplexity_difference->value);
        check_same_errors(a.perplexity_difference->se, b.perplexity_difference->se, true);
    });
}

TEST_CASE_TEMPLATE("tokens under other numbers: the same figures", Real, double, float) {
    for_pairs<Real>(400, 80, [](Random& random, const Pair& pair) {
        const CompareOptions options = some_options(random, pair);
        const Comparison a = compared<Real>(pair, options),
                         b = compared<Real>(properties::renamed(random, pair), options);
        CHECK((describe(properties::without_names(a)) == describe(properties::without_names(b))));
        check_same_counts(a, b);
        CHECK(a.decided_bootstrap == b.decided_bootstrap);
        CHECK(a.nll_difference.interval == b.nll_difference.interval);
        CHECK(a.verdict == b.verdict);
    });
}

TEST_CASE("a constant added to a row's logits moves its logit delta and nothing else") {
    for_pairs<double>(500, 80, [](Random& random, Pair pair) {
        properties::for_both(pair, [](Rows& rows) {
            for (Row& row : rows) {
                for (double& x : row.logits) { x = std::round(x * 64) / 64; } // so that no sum below is rounded
            }
        });
        const CompareOptions options{.thresholds = oracle::random_thresholds(random, pair), .step_curve = true};
        Pair moved = pair;
        std::vector<double> deltas; // what those of the pair become
        for (std::size_t i = 0; i < pair.size(); ++i) {
            const auto constant = [&] { return static_cast<double>(random.below(4096)) / 64 - 32; };
            const double to_reference = constant(), to_candidate = constant();
            for (double& x : moved.reference[i].logits) { x += to_reference; }
            for (double& x : moved.candidate[i].logits) { x += to_candidate; }
            if (const std::size_t rank = pair.rank(i); rank > 0) {
                deltas.push_back(pair.candidate[i].logits[rank - 1] - pair.reference[i].logits[0] + to_candidate -
                                 to_reference);
            }
        }
        Comparison a = compared<double>(pair, options), b = compared<double>(moved, options);
        CHECK(logitstat::logit_deltas(Traces<double>(moved).reference, Traces<double>(moved).candidate) == deltas);
        a.logit_delta = b.logit_delta = {};
        a.identical_data = b.identical_data = false; // the logits are not the same any more
        a.verdict = b.verdict = Verdict::pass;
        CHECK((describe(a) == describe(b)));
        CHECK(a.mcnemar.p == b.mcnemar.p);
    });
}

TEST_CASE("logits in another unit: gaps in steps of their type stay as they are, logit deltas scale") {
    for_pairs<float>(600, 80, [](Random& random, const Pair& pair) {
        Pair doubled = pair;
        const double factor = random.pick({0.5, 2.0, 4.0});
        properties::for_both(doubled, [&](Rows& rows) {
            for (Row& row : rows) {
                for (double& x : row.logits) { x *= factor; }
            }
        });
        const auto type = random.pick({logitstat::storage_type::float32, logitstat::storage_type::bfloat16});
        const Traces<float> a(pair), b(doubled);
        const auto before = logitstat::gaps_in_ulps(a.reference, type),
                   after = logitstat::gaps_in_ulps(b.reference, type);
        for (std::size_t i = 0; i < pair.size(); ++i) { // the spacing at 0 has no magnitude to scale with
            if (pair.reference[i].logits[0] != 0) { CHECK(before[i] == after[i]); }
        }
        const auto x = logitstat::logit_deltas(a.reference, a.candidate),
                   y = logitstat::logit_deltas(b.reference, b.candidate);
        REQUIRE(x.size() == y.size());
        for (std::size_t i = 0; i < x.size(); ++i) { CHECK(y[i] == x[i] * factor); }
    });
}

TEST_CASE_TEMPLATE("any split into runs of chunks: counts add up, worst disagreements are the worst of the parts", Real,
                   double, float) {
    for_pairs<Real>(700, 100, [](Random& random, const Pair& pair) {
        const CompareOptions options{.thresholds = {0, 0.5, 1, 2},
                                     .storage = logitstat::storage_type::bfloat16,
                                     .worst = 1000,
                                     .bootstrap = {.replicates = 0},
                                     .step_curve = true};
        const Traces<Real> whole(pair);
        const Comparison all = whole.compared(options);
        std::vector<logitstat::TraceView<Real>> references, candidates;
        std::vector<logitstat::Trace<Real>> pieces; // kept alive for the views
        pieces.reserve(2 * pair.size());
        Comparison sum;
        sum.sweep.resize(4);
        sum.ulp_sweep.resize(3);
        std::map<std::size_t, std::int64_t> ranks;
        std::vector<logitstat::Disagreement> worst;
        logitstat::Moments nll, difference;
        const std::vector<double> beside{0, 0.125, 0.5, 1.03, 7, 1e9};
        std::vector<std::pair<std::int64_t, std::int64_t>> curve(beside.size());
        std::size_t first = 0;
        for (const auto& run : chunk_runs(pair)) {
            if (run.second != pair.size() && random.chance(0.6)) { continue; } // this chunk goes into the next part
            std::vector<std::size_t> part(run.second - first);
            std::iota(part.begin(), part.end(), first);
            pieces.push_back(logitstat::subset(whole.reference, part));
            const auto& reference = pieces.back();
            pieces.push_back(logitstat::subset(whole.candidate, part));
            const auto& candidate = pieces.back();
            references.push_back(reference.view());
            candidates.push_back(candidate.view());
            const Comparison c = logitstat::compare(reference, candidate, options);
            sum.positions += c.positions;
            sum.chunks += c.chunks;
            sum.disagreements += c.disagreements;
            for (std::size_t j = 0; j < 4; ++j) {
                sum.sweep[j].positions += c.sweep[j].positions;
                sum.sweep[j].mismatches += c.sweep[j].mismatches;
            }
            for (std::size_t j = 0; j < 3; ++j) {
                sum.ulp_sweep[j].positions += c.ulp_sweep[j].positions;
                sum.ulp_sweep[j].mismatches += c.ulp_sweep[j].mismatches;
            }
            sum.hard_ties += c.hard_ties;
            sum.candidate_ties += c.candidate_ties;
            sum.logit_delta.count += c.logit_delta.count;
            sum.logit_delta.max = std::max(sum.logit_delta.max, c.logit_delta.max); // nothing is below any
            sum.reference_accuracy.correct += c.reference_accuracy.correct;
            sum.candidate_accuracy.correct += c.candidate_accuracy.correct;
            sum.mcnemar.both += c.mcnemar.both;
            sum.mcnemar.neither += c.mcnemar.neither;
            sum.mcnemar.only_reference += c.mcnemar.only_reference;
            sum.nll_difference.higher += c.nll_difference.higher;
            sum.nll_difference.lower += c.nll_difference.lower;
            for (const auto& [rank, count] : c.ranks) { ranks[rank.value_or(0)] += count; }
            for (logitstat::Disagreement at : c.worst) {
                at.index += first;
                worst.push_back(at);
            }
            for (std::size_t j = 0; j < beside.size(); ++j) {
                curve[j].first += c.curve->at(beside[j]).positions;
                curve[j].second += c.curve->at(beside[j]).mismatches;
            }
            nll.merge(logitstat::moments_of(reference.view().nll));
            const auto d = logitstat::nll_differences(reference, candidate);
            difference.merge(logitstat::moments_of(std::span<const double>(d)));
            first = run.second;
        }
        for (std::size_t j = 0; j < beside.size(); ++j) {
            CHECK(all.curve->at(beside[j]).positions == curve[j].first);
            CHECK(all.curve->at(beside[j]).mismatches == curve[j].second);
        }
        CHECK(all.positions == sum.positions);
        CHECK(all.chunks == sum.chunks);
        CHECK(all.disagreements == sum.disagreements);
        for (std::size_t j = 0; j < 4; ++j) {
            CHECK(all.sweep[j].positions == sum.sweep[j].positions);
            CHECK(all.sweep[j].mismatches == sum.sweep[j].mismatches);
        }
        for (std::size_t j = 0; j < 3; ++j) {
            CHECK(all.ulp_sweep[j].positions == sum.ulp_sweep[j].positions);
            CHECK(all.ulp_sweep[j].mismatches == sum.ulp_sweep[j].mismatches);
        }
        CHECK(all.hard_ties == sum.hard_ties);
        CHECK(all.candidate_ties == sum.candidate_ties);
        CHECK(all.logit_delta.count == sum.logit_delta.count);
        CHECK(all.logit_delta.max == sum.logit_delta.max);
        CHECK(all.reference_accuracy.correct == sum.reference_accuracy.correct);
        CHECK(all.candidate_accuracy.correct == sum.candidate_accuracy.correct);
        CHECK(all.mcnemar.both == sum.mcnemar.both);
        CHECK(all.mcnemar.neither == sum.mcnemar.neither);
        CHECK(all.mcnemar.only_reference == sum.mcnemar.only_reference);
        CHECK(all.nll_difference.higher == sum.nll_difference.higher);
        CHECK(all.nll_difference.lower == sum.nll_difference.lower);
        for (const auto& [rank, count] : all.ranks) { CHECK(ranks[rank.value_or(0)] == count); }
        CHECK(ranks.size() == all.ranks.size());
        std::stable_sort(worst.begin(), worst.end(), [](const auto& a, const auto& b) { return a.gap > b.gap; });
        REQUIRE(worst.size() == all.worst.size());
        for (std::size_t j = 0; j < worst.size(); ++j) {
            CHECK(worst[j].index == all.worst[j].index);
            CHECK(worst[j].gap == all.worst[j].gap);
            CHECK(worst[j].ulps == all.worst[j].ulps);
        }
        CHECK(close(nll.mean, all.reference_perplexity.mean_nll, 1e-13L));
        CHECK(close(nll.standard_error(), all.reference_perplexity.nll_se.iid, 1e-11L));
        CHECK(close(difference.mean, all.nll_difference.mean, 1e-13L));
        CHECK(close(difference.standard_error(), all.nll_difference.se.iid, 1e-11L));
        // Joined again, the parts are the whole, bit by bit.
        const Comparison joined =
            logitstat::compare(logitstat::concatenate(references), logitstat::concatenate(candidates), options);
        CHECK((describe(joined) == describe(all)));
        CHECK(joined.nll_difference.interval == all.nll_difference.interval);
    });
}

TEST_CASE("more of the same text: counts double, independent errors shrink by the square root, rates stay") {
    for_pairs<double>(900, 80, [](Random& random, const Pair& pair) {
        const std::size_t times = random.pick<std::size_t>({2, 4});
        const auto m = static_cast<double>(times), n = static_cast<double>(pair.size());
        const CompareOptions options{.thresholds = {0, 1}, .bootstrap = {.replicates = 0}, .step_curve = true};
        const Comparison a = compared<double>(pair, options),
                         b = compared<double>(properties::repeated(pair, times), options);
        const auto k = static_cast<std::int64_t>(times);
        CHECK(b.positions == k * a.positions);
        CHECK(b.chunks == times * a.chunks);
        CHECK(b.disagreements == k * a.disagreements);
        CHECK(b.decided.positions == k * a.decided.positions);
        CHECK(b.decided.mismatches == k * a.decided.mismatches);
        CHECK(b.candidate_ties == k * a.candidate_ties);
        CHECK(b.mcnemar.only_candidate == k * a.mcnemar.only_candidate);
        CHECK(b.mcnemar.p <= a.mcnemar.p);
        CHECK(b.nll_difference.sign_test_p <= a.nll_difference.sign_test_p);
        CHECK(b.logit_delta.p50 == a.logit_delta.p50); // floor(p m n) of m equal copies is floor(p n), m a power of 2
        CHECK(b.logit_delta.p90 == a.logit_delta.p90);
        CHECK(b.logit_delta.p99 == a.logit_delta.p99);
        CHECK(b.logit_delta.max == a.logit_delta.max);
        CHECK(close(b.nll_difference.correlation, a.nll_difference.correlation, 1e-10L));
        CHECK(close(b.nll_difference.mean, a.nll_difference.mean, 1e-13L));
        REQUIRE(b.curve->steps.size() == a.curve->steps.size());
        for (std::size_t j = 0; j < a.curve->steps.size(); ++j) {
            CHECK(b.curve->steps[j].threshold == a.curve->steps[j].threshold);
            CHECK(b.curve->steps[j].positions == k * a.curve->steps[j].positions);
            CHECK(b.curve->steps[j].mismatches == k * a.curve->steps[j].mismatches);
        }
        if (n > 1) { // s^2 / n with n - 1 below s^2
            const double factor = square_root((n - 1) / (m * n - 1));
            CHECK(close(b.nll_difference.se.iid, scaled(a.nll_difference.se.iid, factor), 1e-11L));
            CHECK(close(b.reference_perplexity.se, scaled(a.reference_perplexity.se, factor), 1e-11L));
        }
        if (const auto g = static_cast<double>(a.chunks); g > 1) { // G / (G - 1) sum S_c^2 / n^2
            const double factor = square_root((g - 1) / (m * g - 1));
            CHECK(close(b.nll_difference.se.clustered, scaled(a.nll_difference.se.clustered, factor), 1e-11L));
            CHECK(b.disagreements_clustered.upper_bound <= a.disagreements_clustered.upper_bound + 1e-12);
        }
    });
}

TEST_CASE("positions repeated within their chunk: the clustered error knows that nothing was learned") {
    for_pairs<double>(1000, 80, [](Random&, const Pair& pair) {
        const CompareOptions options{.bootstrap = {.replicates = 100}};
        const Comparison a = compared<double>(pair, options),
                         b = compared<double>(properties::doubled_in_chunks(pair), options);
        CHECK(b.chunks == a.chunks);
        CHECK(close(b.nll_difference.se.clustered, a.nll_difference.se.clustered, 1e-11L));
        CHECK(close(b.reference_perplexity.nll_se.clustered, a.reference_perplexity.nll_se.clustered, 1e-11L));
        CHECK(close(b.ratio_bootstrap, a.ratio_bootstrap, 1e-13L));
        CHECK(b.decided_bootstrap == a.decided_bootstrap);
        // Twice the positions at the same variance: twice the design effect, where the data show one.
        if (a.chunks > 1 && a.disagreements > 0 && a.disagreements < a.positions) {
            CHECK(close(b.disagreements_clustered.design_effect, 2 * a.disagreements_clustered.design_effect, 1e-11L));
        } else {
            CHECK(b.disagreements_clustered.design_effect == 1);
        }
    });
}

TEST_CASE_TEMPLATE("an arm against itself", Real, double, float) {
    for_pairs<Real>(1100, 40, [](Random& random, const Pair& pair) {
        const Traces<Real> traces(pair);
        const Comparison c = logitstat::compare(traces.candidate, traces.candidate, some_options(random, pair));
        CHECK(c.verdict == Verdict::identical);
        CHECK(c.identical_data);
        CHECK(c.disagreements == 0);
        CHECK_FALSE(c.largest_gap);
        CHECK(c.worst.empty());
        CHECK(c.ranks.empty());
        CHECK(c.candidate_ties == 0);
        for (const auto& count : c.sweep) { CHECK(count.mismatches == 0); }
        CHECK(c.logit_delta.count == c.positions);
        CHECK(c.logit_delta.max == 0.0);
        CHECK(c.mcnemar.only_reference == 0);
        CHECK(c.mcnemar.only_candidate == 0);
        CHECK(c.mcnemar.p == 1);
        CHECK(c.nll_difference.equal == c.positions);
        CHECK(c.nll_difference.mean == 0);
        CHECK(c.nll_difference.sign_test_p == 1);
        CHECK(c.nll_difference.perplexity_ratio == 1);
        CHECK(c.perplexity_difference->value == 0);
        if (c.positions > 1) {
            CHECK(c.nll_difference.p == 1.0);
            CHECK(c.nll_difference.t == 0.0);
            CHECK(c.nll_difference.interval == Interval{0, 0});
            CHECK(c.nll_difference.ratio_interval == Interval{1, 1});
        }
        CHECK_FALSE(c.decided_bootstrap);
        if (c.ratio_bootstrap) { CHECK(*c.ratio_bootstrap == Interval{1, 1}); }
        if (c.nll_difference.correlation) { CHECK(close(*c.nll_difference.correlation, 1, 1e-12L)); }
    });
}

TEST_CASE_TEMPLATE("the sweeps never rise with the threshold, and begin with everything", Real, double, float) {
    for_pairs<Real>(1200, 80, [](Random& random, const Pair& pair) {
        std::vector<double> thresholds = oracle::random_thresholds(random, pair);
        thresholds.push_back(0);
        std::sort(thresholds.begin(), thresholds.end());
        const Comparison c = compared<Real>(pair, {.thresholds = thresholds, .ulps = thresholds, .step_curve = true});
        for (const auto* sweep : {&c.sweep, &c.ulp_sweep, &c.curve->steps}) {
            CHECK(sweep->front().positions == c.positions);
            CHECK(sweep->front().mismatches == c.disagreements);
            for (std::size_t j = 0; j < sweep->size(); ++j) {
                const auto& here = (*sweep)[j];
                CHECK(here.mismatches >= 0);
                CHECK(here.mismatches <= here.positions);
                if (j > 0) {
                    CHECK(here.positions <= (*sweep)[j - 1].positions);
                    CHECK(here.mismatches <= (*sweep)[j - 1].mismatches);
                }
                const auto rate = c.rate(here);
                CHECK(rate.interval.lo <= rate.rate.value_or(0));
                CHECK(rate.interval.hi >= rate.rate.value_or(1));
            }
        }
        for (std::size_t j = 0; j < thresholds.size(); ++j) { CHECK(c.curve->at(thresholds[j]) == c.sweep[j]); }
        for (std::size_t j = 1; j < c.curve->steps.size(); ++j) {
            CHECK(c.curve->steps[j].positions < c.curve->steps[j - 1].positions); // each step is a gap that occurs
        }
    });
}

TEST_CASE_TEMPLATE("bounds that every pair keeps", Real, double, float) {
    const auto in_unit = [](double p) { return p >= 0 && p <= 1; };
    for_pairs<Real>(1300, 120, [&](Random& random, const Pair& pair) {
        const Comparison c = compared<Real>(pair, some_options(random, pair));
        CHECK(c.mcnemar.both + c.mcnemar.only_reference + c.mcnemar.only_candidate + c.mcnemar.neither == c.positions);
        CHECK(c.mcnemar.both + c.mcnemar.only_reference == c.reference_accuracy.correct);
        CHECK(c.mcnemar.both + c.mcnemar.only_candidate == c.candidate_accuracy.correct);
        CHECK(c.mcnemar.only_reference + c.mcnemar.only_candidate <= c.disagreements);
        CHECK(in_unit(c.mcnemar.p));
        CHECK(in_unit(c.nll_difference.sign_test_p));
        CHECK(in_unit(c.reference_accuracy.rate().value()));
        std::int64_t ranked = 0;
        for (const auto& [rank, count] : c.ranks) {
            CHECK(count > 0);
            CHECK(rank.value_or(2) >= 2); // the first is agreement
            CHECK(rank.value_or(2) <= c.candidate_k);
            ranked += count;
        }
        CHECK(ranked == c.disagreements);
        CHECK(c.candidate_ties <= c.disagreements);
        CHECK(c.logit_delta.count >= c.positions - c.disagreements);
        CHECK(
            std::is_sorted(c.worst.begin(), c.worst.end(), [](const auto& a, const auto& b) { return a.gap > b.gap; }));
        if (c.logit_delta.count > 0) {
            CHECK(*c.logit_delta.p50 <= *c.logit_delta.p90);
            CHECK(*c.logit_delta.p90 <= *c.logit_delta.p99);
            CHECK(*c.logit_delta.p99 <= *c.logit_delta.max);
            CHECK(std::abs(*c.logit_delta.mean_signed) <= *c.logit_delta.max * (1 + 1e-14));
        }
        const auto rate = c.disagreement_rate();
        CHECK(c.disagreements_clustered.interval.lo <= rate);
        CHECK(c.disagreements_clustered.interval.hi >= rate);
        CHECK(c.disagreements_clustered.effective_size <= static_cast<double>(c.positions));
        const auto& d = c.nll_difference;
        CHECK(d.higher + d.lower + d.equal == c.positions);
        CHECK(std::abs(d.mean) <= std::abs(d.largest) * (1 + 1e-14));
        if (d.correlation) { CHECK(std::abs(*d.correlation) <= 1); }
        CHECK(d.p.has_value() == d.se.value().has_value());
        if (d.p) {
            CHECK(in_unit(*d.p));
            CHECK(d.interval->lo <= d.mean);
            CHECK(d.interval->hi >= d.mean);
            CHECK(d.ratio_interval->lo <= d.perplexity_ratio);
            CHECK(d.ratio_interval->hi >= d.perplexity_ratio);
            // A test at 5 % rejects 0 exactly when the interval of 95 % leaves it out.
            if (std::abs(*d.p - 0.05) > 1e-9) { CHECK((*d.p < 0.05) == (d.interval->lo > 0 || d.interval->hi < 0)); }
        }
        for (const auto* arm : {&c.reference_perplexity, &c.candidate_perplexity}) {
            CHECK(arm->value >= 1); // no NLL here is below 0
            if (arm->interval) {
                CHECK(arm->interval->lo > 0);
                CHECK(arm->interval->lo <= arm->value);
                CHECK(arm->interval->hi >= arm->value);
            }
        }
        CHECK(close(d.perplexity_ratio, c.candidate_perplexity.value / c.reference_perplexity.value, 1e-12L));
        CHECK(
            close(c.perplexity_difference->value, c.candidate_perplexity.value - c.reference_perplexity.value, 1e-12L));
        if (c.decided_bootstrap) {
            CHECK(c.decided_bootstrap->lo >= 0);
            CHECK(c.decided_bootstrap->hi <= 1);
            CHECK(c.decided_bootstrap->lo <= c.decided_bootstrap->hi);
        }
    });
}

TEST_CASE("the verdict says what its counts say, and more evidence or leave never turns it into a fail") {
    for_pairs<double>(1500, 200, [](Random& random, const Pair& pair) {
        CompareOptions options{.decided_gap = random.pick({0.0, 0.25, 1.0, 1e9}), .bootstrap = {.replicates = 0}};
        options.rules.max_mismatches = random.pick<std::int64_t>({0, 1, 5, 1000});
        options.rules.min_decided = random.pick<std::int64_t>({0, 1, 2, 20, 1000});
        if (random.chance(0.4)) { options.rules.max_rate = random.pick({0.01, 0.2, 0.5, 1.0}); }
        const Comparison c = compared<double>(pair, options);
        const auto& rules = options.rules;
        const auto bound =
            logitstat::proportion_upper_bound(c.decided.mismatches, c.decided.positions, options.confidence);
        switch (c.verdict) {
        case Verdict::identical:
            CHECK(c.disagreements == 0);
            CHECK(c.decided.mismatches == 0);
            break;
        case Verdict::fail:
            CHECK(c.decided.mismatches > rules.max_mismatches);
            CHECK(c.disagreements > 0);
            break;
        case Verdict::pass:
            CHECK(c.disagreements > 0);
            CHECK(c.decided.mismatches <= rules.max_mismatches);
            CHECK(c.decided.positions > 0);
            CHECK(c.decided.positions >= rules.min_decided);
            if (rules.max_rate) { CHECK(bound < *rules.max_rate); }
            break;
        case Verdict::inconclusive:
            CHECK(c.decided.mismatches <= rules.max_mismatches);
            CHECK((c.decided.positions == 0 || c.decided.positions < rules.min_decided ||
                   bound >= rules.max_rate.value_or(2)));
            CHECK_FALSE(c.identical_data);
            break;
        }
        CHECK((logitstat::exit_code(c.verdict) == 0) ==
              (c.verdict == Verdict::identical || c.verdict == Verdict::pass));
        options.rules.max_mismatches = c.positions;
        CHECK(compared<double>(pair, options).verdict != Verdict::fail);
        options.rules = {.max_mismatches = rules.max_mismatches};
        options.rules.min_decided = c.decided.positions + 1; // more than there are
        const Verdict starved = compared<double>(pair, options).verdict;
        CHECK(starved != Verdict::pass);
        CHECK((starved == Verdict::fail) == (c.decided.mismatches > rules.max_mismatches && !c.identical_data));
    });
}

} // namespace test_pairs

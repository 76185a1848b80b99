#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/compare.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_oracle {

// Every figure of thousands of random pairs against the oracle: from compare(), and from each statistic called alone.

using logitstat::CompareOptions;
using logitstat::Comparison;
using oracle::close;
using oracle::Pair;
using oracle::Random;

namespace {

void check_count(const logitstat::DecidedCount& count, double threshold, const Pair& pair) {
    CAPTURE(threshold);
    CHECK(count.threshold == threshold);
    CHECK(count.positions == pair.decided(threshold));
    CHECK(count.mismatches == pair.mismatches(threshold));
    CHECK(count.rate().has_value() == (count.positions > 0));
    if (count.rate()) { CHECK(close(*count.rate() * static_cast<double>(count.positions), count.mismatches, 1e-12L)); }
}

void check_disagreement(const logitstat::Disagreement& d, std::size_t i, const Pair& pair) {
    CHECK(d.index == i);
    CHECK(d.chunk == pair.reference[i].chunk);
    CHECK(d.pos == pair.reference[i].pos);
    CHECK(d.target == pair.reference[i].target);
    CHECK(d.reference_token == pair.reference[i].ids[0]);
    CHECK(d.candidate_token == pair.candidate[i].ids[0]);
    CHECK(d.gap == pair.gap(i));
    CHECK(d.rank.value_or(0) == pair.rank(i));
}

void check_curve(const logitstat::StepCurve& curve, const Pair& pair) {
    std::set<double> gaps;
    for (std::size_t i = 0; i < pair.size(); ++i) { gaps.insert(pair.gap(i)); }
    REQUIRE(curve.steps.size() == gaps.size());
    double before = 0;
    std::size_t j = 0;
    for (const double gap : gaps) {
        check_count(curve.steps[j++], gap, pair);
        for (const double t : {gap, std::nextafter(gap, 1e300), (before + gap) / 2}) {
            check_count(curve.at(t), t, pair);
        }
        before = gap;
    }
    check_count(curve.at(0.0), 0.0, pair);
    check_count(curve.at(before + 1), before + 1, pair);
    CHECK(curve.at(std::nextafter(before, 1e300)).positions == 0);
}

void check_worst(const Comparison& c, const Pair& pair, std::size_t limit) {
    const std::vector<std::size_t> worst = pair.worst();
    REQUIRE(c.largest_gap.has_value() == !worst.empty());
    if (!worst.empty()) {
        check_disagreement(*c.largest_gap, worst.front(), pair);
        CHECK(pair.mismatches(c.largest_gap->gap) > 0);
        CHECK(pair.mismatches(std::nextafter(c.largest_gap->gap, 1e300)) == 0);
    }
    REQUIRE(c.worst.size() == std::min(limit, worst.size()));
    for (std::size_t j = 0; j < c.worst.size(); ++j) { check_disagreement(c.worst[j], worst[j], pair); }
}

void check_ranks(const std::vector<logitstat::RankCount>& ranks, const Pair& pair) {
    auto expected = pair.ranks();
    std::vector<logitstat::RankCount> ordered;
    for (const auto& [rank, count] : expected) {
        if (rank != 0) { ordered.push_back({rank, count}); }
    }
    if (expected.contains(0)) { ordered.push_back({std::nullopt, expected[0]}); }
    CHECK(ranks == ordered);
}

void check_logit_delta(const logitstat::LogitDelta& delta, const Pair& pair, logitstat::quantile_rule rule) {
    std::vector<long double> list = pair.deltas();
    CHECK(delta.count == static_cast<std::int64_t>(list.size()));
    REQUIRE(delta.p50.has_value() == !list.empty());
    REQUIRE(delta.mean_signed.has_value() == !list.empty());
    if (list.empty()) { return; }
    CHECK(close(*delta.mean_signed, oracle::MeanVariance(list).mean, 1e-13L));
    for (long double& x : list) { x = std::fabs(x); }
    CHECK(close(delta.p50.value(), oracle::quantile(list, 0.5, rule), 1e-13L));
    CHECK(close(delta.p90.value(), oracle::quantile(list, 0.9, rule), 1e-13L));
    CHECK(close(delta.p99.value(), oracle::quantile(list, 0.99, rule), 1e-13L));
    CHECK(close(delta.max.value(), oracle::quantile(list, 1, rule), 1e-13L));
}

void check_perplexity(const logitstat::Perplexity& perplexity, const oracle::Rows& rows) {
    const std::vector<long double> nll = oracle::nlls(rows);
    const oracle::MeanVariance moments(nll);
    CHECK(perplexity.nll_se.n == nll.size());
    CHECK(close(perplexity.mean_nll, moments.mean, 5e-14L));
    CHECK(close(perplexity.value, std::exp(moments.mean), 1e-13L));
    auto se = oracle::standard_error(nll);
    CHECK(close(perplexity.nll_se.iid, se, 1e-13L));
    if (se) { *se *= std::exp(moments.mean); }
    CHECK(close(perplexity.se, se, 1e-12L));
}

void check_nll_difference(const logitstat::NllDifference& d, const Pair& pair) {
    const std::vector<long double> list = pair.nll_differences();
    const long double mean = oracle::MeanVariance(list).mean;
    const auto se = oracle::standard_error(list);
    CHECK(d.se.n == list.size());
    CHECK(close(d.mean, mean, 5e-14L));
    CHECK(close(d.se.iid, se, 1e-13L));
    std::size_t largest = 0, higher = 0, lower = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        higher += list[i] > 0;
        lower += list[i] < 0;
        if (std::fabs(list[i]) > std::fabs(list[largest])) { largest = i; }
    }
    CHECK(d.higher == static_cast<std::int64_t>(higher));
    CHECK(d.lower == static_cast<std::int64_t>(lower));
    CHECK(d.equal == static_cast<std::int64_t>(list.size() - higher - lower));
    CHECK(close(std::abs(d.largest), std::fabs(list[largest]), 1e-15L));
    CHECK(d.largest_index == largest);
    std::optional<long double> t;
    if (higher + lower == 0 && se) { t = 0; }
    if (se && *se > 0) { t = mean / *se; }
    CHECK(close(d.t_iid(), t, 1e-11L));
    CHECK(close(d.perplexity_ratio, std::exp(mean), 1e-13L));
    CHECK(close(d.perplexity_percent, 100 * std::expm1(mean), 1e-12L));
}

void check(const Comparison& c, const Pair& pair, const CompareOptions& options) {
    CHECK(c.positions == static_cast<std::int64_t>(pair.size()));
    CHECK(c.skipped_non_finite == 0);
    CHECK(c.chunks == pair.chunks());
    CHECK(c.reference_k == pair.reference_k);
    CHECK(c.candidate_k == pair.candidate_k);
    CHECK(c.disagreements == pair.disagreements());
    CHECK(close(c.disagreement_rate() * static_cast<double>(pair.size()), pair.disagreements(), 1e-12L));
    check_count(c.decided, options.decided_gap, pair);
    REQUIRE(c.sweep.size() == options.thresholds.size());
    for (std::size_t j = 0; j < c.sweep.size(); ++j) { check_count(c.sweep[j], options.thresholds[j], pair); }
    check_worst(c, pair, options.worst);
    check_ranks(c.ranks, pair);
    CHECK(c.hard_ties == pair.hard_ties());
    CHECK(c.candidate_ties == pair.candidate_ties());
    check_logit_delta(c.logit_delta, pair, options.quantiles.value_or(logitstat::quantile_rule::floor_index));
    check_perplexity(c.reference_perplexity, pair.reference);
    check_perplexity(c.candidate_perplexity, pair.candidate);
    check_nll_difference(c.nll_difference, pair);
    CHECK(c.reference_accuracy.correct == pair.correct(pair.reference));
    CHECK(c.candidate_accuracy.correct == pair.correct(pair.candidate));
    CHECK(c.reference_accuracy.positions == static_cast<std::int64_t>(pair.size()));
    CHECK(c.candidate_accuracy.positions == static_cast<std::int64_t>(pair.size()));
    REQUIRE(c.curve.has_value() == options.step_curve);
    if (c.curve) { check_curve(*c.curve, pair); }
    CHECK(c.verdict == pair.verdict(options.decided_gap));
    CHECK(c.identical_data == pair.identical_data());
}

/// The same figures from each statistic called alone, on views.
template <class R, class C>
Comparison one_by_one(logitstat::TraceView<R> reference, logitstat::TraceView<C> candidate,
                      const CompareOptions& options) {
    Comparison c;
    c.positions = static_cast<std::int64_t>(reference.size());
    c.chunks = logitstat::cluster_boundaries(reference.chunk).size() - 1;
    c.reference_k = reference.k;
    c.candidate_k = candidate.k;
    c.disagreements = logitstat::count_disagreements(reference, candidate);
    c.decided = logitstat::decided_mismatches(reference, candidate, options.decided_gap);
    c.sweep = logitstat::threshold_sweep(reference, candidate, options.thresholds);
    const auto differ = logitstat::disagreement_positions(reference, candidate);
    c.worst = logitstat::worst_disagreements(reference, candidate, differ, options.worst);
    const auto first = logitstat::worst_disagreements(reference, candidate, differ, 1);
    if (!first.empty()) { c.largest_gap = first.front(); }
    c.ranks = logitstat::rank_distribution(reference, candidate, differ);
    c.hard_ties = logitstat::count_hard_ties(reference);
    c.candidate_ties = logitstat::count_candidate_ties(reference, candidate, differ);
    c.logit_delta = logitstat::logit_delta(reference, candidate, options.quantiles.value());
    c.reference_perplexity = logitstat::perplexity(reference).value();
    c.candidate_perplexity = logitstat::perplexity(candidate).value();
    c.nll_difference = logitstat::nll_difference(reference, candidate).value();
    c.reference_accuracy = logitstat::accuracy(reference);
    c.candidate_accuracy = logitstat::accuracy(candidate);
    if (options.step_curve) { c.curve = logitstat::step_curve(reference, candidate); }
    c.identical_data = logitstat::detail::same_data(reference, candidate);
    c.verdict = logitstat::verdict_of(c.disagreements, c.decided, c.identical_data);
    return c;
}

template <class R, class C>
void check_lists(const logitstat::Trace<R>& reference, const logitstat::Trace<C>& candidate, const Pair& pair) {
    const auto differs = logitstat::disagreements(reference, candidate);
    const auto gaps = logitstat::gaps(reference);
    const auto d = logitstat::nll_differences(reference, candidate);
    REQUIRE(differs.size() == pair.size());
    REQUIRE(gaps.size() == pair.size());
    REQUIRE(d.size() == pair.size());
    std::vector<std::size_t> positions;
    bool same = true;
    for (std::size_t i = 0; i < pair.size(); ++i) {
        same = same && differs[i] == (pair.differs(i) ? 1 : 0) && gaps[i] == pair.gap(i) &&
               d[i] == pair.candidate[i].nll - pair.reference[i].nll &&
               logitstat::rank_of(candidate, i, pair.reference[i].ids[0]).value_or(0) == pair.rank(i);
        if (pair.differs(i)) { positions.push_back(i); }
    }
    CHECK(same);
    CHECK(logitstat::disagreement_positions(reference, candidate) == positions);
    const auto deltas = logitstat::logit_deltas(reference, candidate);
    const auto expected = pair.deltas();
    REQUIRE(deltas.size() == expected.size());
    for (std::size_t i = 0; i < deltas.size(); ++i) { same = same && close(deltas[i], expected[i], 1e-15L); }
    CHECK(same);
}

template <class R, class C> void check_random_pairs(std::uint64_t first_seed, std::uint64_t count) {
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Pair pair =
            oracle::random_pair(random, {.reference_float = sizeof(R) == 4, .candidate_float = sizeof(C) == 4});
        const double a_gap = pair.gap(random.below(pair.size()));
        const CompareOptions options{.decided_gap = random.pick({0.0, 0.1, 1.0, 2.0, 1e9, a_gap}),
                                     .thresholds = oracle::random_thresholds(random, pair),
                                     .worst = random.pick<std::size_t>({0, 1, 3, 10, 5000}),
                                     .quantiles = random.chance(0.5) ? logitstat::quantile_rule::floor_index
                                                                     : logitstat::quantile_rule::linear,
                                     .step_curve = random.chance(0.2)};
        const auto reference = oracle::to_trace<R>(pair.reference, pair.reference_k);
        const auto candidate = oracle::to_trace<C>(pair.candidate, pair.candidate_k);
        const Comparison all = logitstat::compare(reference, candidate, options);
        check(all, pair, options);
        CHECK(oracle::describe(one_by_one(reference.view(), candidate.view(), options)) == oracle::describe(all));
        check_lists(reference, candidate, pair);
    }
}

} // namespace

TEST_CASE("double against double") { check_random_pairs<double, double>(1, 1000); }
TEST_CASE("float against float") { check_random_pairs<float, float>(100'001, 500); }
TEST_CASE("float against double") { check_random_pairs<float, double>(200'001, 400); }
TEST_CASE("double against float") { check_random_pairs<double, float>(300'001, 400); }

TEST_CASE("the random pairs reach every case that the statistics tell apart") {
    std::int64_t candidate_ties = 0, hard_ties = 0, beyond = 0, deep = 0, without_disagreement = 0, identical = 0;
    std::int64_t shared_largest = 0, no_delta = 0, verdicts[4] = {};
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        Random random(seed);
        const Pair pair = oracle::random_pair(random);
        const auto worst = pair.worst();
        candidate_ties += pair.candidate_ties() > 0;
        hard_ties += pair.hard_ties() > 0;
        beyond += pair.ranks().contains(0);
        deep += pair.ranks().contains(5);
        without_disagreement += worst.empty();
        identical += pair.identical_data();
        shared_largest += worst.size() > 1 && pair.gap(worst[0]) == pair.gap(worst[1]);
        no_delta += pair.deltas().empty();
        ++verdicts[static_cast<int>(pair.verdict(2.0))];
    }
    for (const std::int64_t seen : {candidate_ties, hard_ties, beyond, deep, without_disagreement, identical,
                                    shared_largest, verdicts[0], verdicts[1], verdicts[2], verdicts[3]}) {
        CHECK(seen >= 10);
    }
    CHECK(no_delta >= 1);
}

} // namespace test_oracle

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/capture/trace_builder.hpp"
#include "logitstat/compare_logits.hpp"
#include "logitstat/report/logits_json.hpp"
#include "logitstat/report/logits_markdown.hpp"
#include "logitstat/report/logits_text.hpp"

namespace test_compare_logits {

using logitstat::AnyRows;
using logitstat::compare_logits;
using logitstat::CompareLogitsOptions;
using logitstat::Interval;
using logitstat::LogitsComparison;
using logitstat::LogitsPositions;
using logitstat::LogitsView;
using logitstat::not_comparable;
using logitstat::PairColumns;
using logitstat::score_pairs;
using logitstat::token_id;
using testing::contains;
using testing::message_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

/// n rows of V logits of type T, kept with the view of them.
template <class T> struct Logits {
    std::size_t n, vocabulary;
    std::vector<T> values;

    Logits(std::size_t rows, std::size_t tokens, std::uint32_t seed, double width = 3)
        : n(rows), vocabulary(tokens), values(rows * tokens) {
        std::mt19937 random(seed);
        std::normal_distribution<double> bell(0, width);
        for (T& x : values) { x = static_cast<T>(static_cast<float>(bell(random))); }
    }
    LogitsView<T> view() const { return {values, n, vocabulary}; }
    T& at(std::size_t row, std::size_t token) { return values[row * vocabulary + token]; }
    long double exact(std::size_t row, std::size_t token) const {
        return static_cast<long double>(static_cast<double>(values[row * vocabulary + token]));
    }
};

LogitsPositions some_positions(std::size_t n, std::size_t vocabulary, std::size_t rows_per_chunk) {
    LogitsPositions positions;
    for (std::size_t i = 0; i < n; ++i) { positions.target.push_back(static_cast<token_id>(i * 7 % vocabulary)); }
    logitstat::set_chunks(positions, n, rows_per_chunk);
    return positions;
}

/// ln softmax of a row, in long double.
std::vector<long double> log_softmax(const auto& logits, std::size_t row) {
    std::vector<long double> x(logits.vocabulary);
    for (std::size_t t = 0; t < x.size(); ++t) { x[t] = logits.exact(row, t); }
    const long double max = *std::ranges::max_element(x);
    long double sum = 0;
    for (const long double z : x) { sum += std::exp(z - max); }
    for (long double& z : x) { z -= max + std::log(sum); }
    return x;
}

std::vector<std::size_t> descending(const auto& logits, std::size_t row) {
    std::vector<std::size_t> order(logits.vocabulary);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](auto a, auto b) { return logits.exact(row, a) > logits.exact(row, b); });
    return order;
}

void check_near(double got, long double expected, double tolerance) {
    CAPTURE(got);
    CAPTURE(static_cast<double>(expected));
    CHECK(std::abs(static_cast<long double>(got) - expected) <= static_cast<long double>(tolerance)); // false for NaN
}

template <class R, class C> void check_columns(double tolerance) {
    constexpr std::size_t n = 23, vocabulary = 100, k = 8;
    const Logits<R> a(n, vocabulary, 1);
    Logits<C> b(n, vocabulary, 2, 0.5);
    for (std::size_t i = 0; i < b.values.size(); ++i) {
        b.values[i] = static_cast<C>(static_cast<float>(a.values[i]) + static_cast<float>(b.values[i]) + 1.5f);
    }
    const auto positions = some_positions(n, vocabulary, 10);
    const PairColumns columns = score_pairs(a.view(), b.view(), positions, {.top_k = k, .rows_at_once = 4});
    REQUIRE(columns.size() == n);
    CHECK(columns.defects.empty());
    CHECK_FALSE(columns.equal_logits);
    CHECK(columns.vocabulary == vocabulary);
    for (std::size_t i = 0; i < n; ++i) {
        CAPTURE(i);
        const auto p = log_softmax(a, i), q = log_softmax(b, i);
        long double kl = 0, reverse = 0, js = 0, variation = 0, shift = 0, squares = 0, largest = 0;
        for (std::size_t t = 0; t < vocabulary; ++t) {
            const long double m = std::log((std::exp(p[t]) + std::exp(q[t])) / 2), d = b.exact(i, t) - a.exact(i, t);
            kl += std::exp(p[t]) * (p[t] - q[t]);
            reverse += std::exp(q[t]) * (q[t] - p[t]);
            js += (std::exp(p[t]) * (p[t] - m) + std::exp(q[t]) * (q[t] - m)) / 2;
            variation += std::abs(std::exp(p[t]) - std::exp(q[t])) / 2;
            shift += d / vocabulary;
            largest = std::max(largest, std::abs(d));
        }
        for (std::size_t t = 0; t < vocabulary; ++t) {
            const long double d = b.exact(i, t) - a.exact(i, t) - shift;
            squares += d * d / vocabulary;
        }
        check_near(columns.kl[i], kl, tolerance);
        check_near(columns.reverse_kl[i], reverse, tolerance);
        check_near(columns.jensen_shannon[i], js, tolerance);
        check_near(columns.total_variation[i], variation, tolerance);
        check_near(columns.logit_shift[i], shift, 1e-5);
        check_near(columns.logit_rms[i], std::sqrt(squares), 1e-5);
        check_near(columns.logit_max[i], largest, 1e-5);
        const auto target = static_cast<std::size_t>(positions.target[i]);
        check_near(columns.reference.nll[i], -p[target], tolerance);
        check_near(columns.candidate.nll[i], -q[target], tolerance);
        check_near(columns.delta_p[i], std::exp(q[target]) - std::exp(p[target]), tolerance);
        const auto ours = descending(a, i), theirs = descending(b, i);
        const auto place = std::ranges::find(theirs, ours[0]) - theirs.begin();
        CHECK(columns.rank[i] == place + 1);
        check_near(columns.landed_delta[i], b.exact(i, ours[0]) - a.exact(i, ours[0]), 0);
        check_near(columns.landed_gap[i], b.exact(i, theirs[0]) - b.exact(i, ours[0]), 0);
        std::size_t shared = 0;
        for (std::size_t j = 0; j < k; ++j) {
            shared += static_cast<std::size_t>(std::count(theirs.begin(), theirs.begin() + k, ours[j]));
            CHECK(columns.reference.view().ids(j)[i] == static_cast<token_id>(ours[j]));
            CHECK(columns.candidate.view().ids(j)[i] == static_cast<token_id>(theirs[j]));
            CHECK(columns.candidate.view().logits(j)[i] == static_cast<double>(b.exact(i, theirs[j])));
        }
        CHECK(columns.top_shared[i] == static_cast<double>(shared) / k);
    }
}

/// Everything that a comparison says, as one text.
std::string all_of(const LogitsComparison& c) { return logitstat::json_report(c); }

struct Pair {
    Logits<float> a{60, 50, 3}, b{60, 50, 3};
    LogitsPositions positions = some_positions(60, 50, 20);
    Pair() {
        const Logits<float> noise(60, 50, 4, 0.3);
        for (std::size_t i = 0; i < b.values.size(); ++i) { b.values[i] += noise.values[i]; }
        for (std::size_t i = 0; i < 60; ++i) { positions.target[i] = static_cast<token_id>(descending(a, i)[4]); }
    }
    LogitsComparison compare(const CompareLogitsOptions& options = {}) const {
        return compare_logits(a.view(), b.view(), positions, options);
    }
};

/// Rows of log-probabilities, as a .kld file has.
struct LogProbabilities {
    using value_type = float;
    static constexpr bool holds_log_probabilities = true;
    LogitsView<float> view;
    std::size_t size() const { return view.size(); }
    std::size_t vocabulary() const { return view.vocabulary(); }
    std::span<const float> row(std::size_t i) const { return view.row(i); }
};

/// Rows of which some cannot be read.
struct BrokenRows {
    using value_type = float;
    const Logits<float>* logits;
    std::size_t size() const { return logits->n; }
    std::size_t vocabulary() const { return logits->vocabulary; }
    std::span<const float> row(std::size_t i) const {
        if (i == 41 || i == 17) { throw logitstat::parse_error("file", "row " + std::to_string(i) + " is torn"); }
        return logits->view().row(i);
    }
};

} // namespace

TEST_CASE("the columns of a pair of arms, by the definitions in long double") {
    check_columns<float, float>(2e-6);
    check_columns<double, double>(1e-12);
    check_columns<Eigen::half, Eigen::bfloat16>(2e-6);
    check_columns<float, double>(1e-12);
    check_columns<Eigen::bfloat16, float>(2e-6);
}

TEST_CASE("statistics of traces are those of traces, but for ranks and deltas, which are of the whole vocabulary") {
    const Pair pair;
    const LogitsComparison full = pair.compare();
    logitstat::TraceBuilder<double> a(8), b(8);
    for (std::size_t i = 0; i < 60; ++i) {
        const auto &chunk = pair.positions.chunk[i], &pos = pair.positions.pos[i], &target = pair.positions.target[i];
        a.record(chunk, pos, target, pair.a.view().row(i));
        b.record(chunk, pos, target, pair.b.view().row(i));
    }
    const auto traces = logitstat::compare(a.trace(), b.trace(), {.quantiles = logitstat::quantile_rule::linear});
    CHECK(full.disagreements == traces.disagreements);
    REQUIRE(full.disagreements > 3);
    CHECK(full.sweep == traces.sweep);
    CHECK(full.decided == traces.decided);
    CHECK(full.verdict == traces.verdict);
    CHECK(full.chunks == 3);
    CHECK(full.nll_difference.mean == traces.nll_difference.mean);
    CHECK(full.nll_difference.se.clustered == traces.nll_difference.se.clustered);
    CHECK(full.reference_perplexity.value == traces.reference_perplexity.value);
    CHECK(full.mcnemar.p == traces.mcnemar.p);
    CHECK(full.candidate_ties == traces.candidate_ties);
    CHECK(full.largest_gap->index == traces.largest_gap->index);
    CHECK(full.logit_delta.count == 60); // traces lose the ranks beyond their eighth
    CHECK(full.ranks.size() >= traces.ranks.size());
    std::int64_t ranked = 0;
    for (const auto& [rank, count] : full.ranks) {
        CHECK(rank.has_value());
        ranked += count;
    }
    CHECK(ranked == full.disagreements);
    CHECK(full.vocabulary == 50);
    CHECK(full.reference_k == 8);
    CHECK(full.kl->mean > 0);
    CHECK(full.topk_overlap->mean < 1);
}

TEST_CASE("a rank beyond the top k is known") {
    Pair pair;
    for (std::size_t t = 0; t < 50; ++t) {
        pair.a.at(33, t) = t == 7 ? 100 : static_cast<float>(t % 7);
        pair.b.at(33, t) = t == 7 ? -100 : static_cast<float>(t % 7);
    }
    const LogitsComparison c = pair.compare({.compare = {.worst = 3}, .top_k = 2});
    CHECK(c.largest_gap->index == 33);
    CHECK(c.largest_gap->rank == std::optional<std::size_t>(50));
    CHECK(c.worst.front().rank == std::optional<std::size_t>(50));
    CHECK(c.ranks.back() == logitstat::RankCount{50, 1});
    CHECK(contains(logitstat::text_report(c), "rank 33 to 50"));
}

TEST_CASE("neither threads nor the stretches of a walk can be seen in the result") {
    const Pair pair;
    const std::string alone = all_of(compare_logits<logitstat::serial>(pair.a.view(), pair.b.view(), pair.positions));
    for (const std::size_t threads : {0u, 1u, 2u, 3u, 8u}) {
        CHECK((all_of(pair.compare({.threads = threads})) == alone));
        for (const std::size_t rows : {1u, 7u, 59u, 60u, 1000u}) {
            std::vector<std::size_t> seen;
            const auto columns = score_pairs(
                pair.a.view(), pair.b.view(), pair.positions,
                {.threads = threads, .rows_at_once = rows, .on_rows = [&](std::size_t done) { seen.push_back(done); }});
            CHECK((all_of(logitstat::summarize(columns, {})) == alone));
            CHECK(seen.back() == 60);
            CHECK(seen.size() == (60 + rows - 1) / rows);
            CHECK(std::ranges::is_sorted(seen));
        }
    }
}

TEST_CASE("of rows that cannot be read, the first is told") {
    const Pair pair;
    for (const std::size_t threads : {1u, 4u}) {
        const auto message = message_of<logitstat::parse_error>(
            [&] { compare_logits(pair.a.view(), BrokenRows{&pair.b}, pair.positions, {.threads = threads}); });
        CHECK(contains(message, "row 17 is torn"));
    }
}

TEST_CASE("a row without figures is refused by name, or left out and counted") {
    const auto spoil = [](const std::function<void(Pair&)>& change) {
        Pair pair;
        change(pair);
        return pair;
    };
    const auto refusal = [](const Pair& pair) { return message_of<std::invalid_argument>([&] { pair.compare(); }); };
    const Pair good;
    const auto at_12 = static_cast<std::size_t>(good.positions.target[12]);
    const std::vector<std::pair<Pair, std::string>> cases{
        {spoil([](Pair& p) { p.a.at(12, 49) = static_cast<float>(not_a_number); }),
         "reference: row 12 (chunk 0, pos 12): the logit of token 49 is NaN"},
        {spoil([](Pair& p) { p.b.at(12, 0) = static_cast<float>(infinity); }),
         "candidate: row 12 (chunk 0, pos 12): the logit of token 0 is +infinity"},
        {spoil([&](Pair& p) { p.b.at(12, at_12) = static_cast<float>(-infinity); }),
         "candidate: row 12 (chunk 0, pos 12): the logit of the target, token " + std::to_string(at_12) +
             ", is -infinity (probability 0)"},
        {spoil([&](Pair& p) {
             for (std::size_t t = 0; t < 50; ++t) {
                 if (t >= 6 && t != at_12) { p.a.at(12, t) = static_cast<float>(-infinity); }
             }
         }),
         "reference: row 12 (chunk 0, pos 12): only " + std::to_string(at_12 < 6 ? 6 : 7) +
             " logits are finite, the best 8 are asked for"}};
    // What is left when the row is not there at all.
    Pair rest = good;
    rest.a.values.erase(rest.a.values.begin() + 12 * 50, rest.a.values.begin() + 13 * 50);
    rest.b.values.erase(rest.b.values.begin() + 12 * 50, rest.b.values.begin() + 13 * 50);
    rest.a.n = rest.b.n = 59;
    for (auto* column : {&rest.positions.target, &rest.positions.chunk, &rest.positions.pos}) {
        column->erase(column->begin() + 12);
    }
    const LogitsComparison expected = rest.compare();
    for (const auto& [pair, message] : cases) {
        CHECK(refusal(pair) == message);
        const LogitsComparison c =
            pair.compare({.compare = {.worst = 100, .non_finite = logitstat::non_finite_policy::skip}});
        CHECK(c.positions == 59);
        CHECK(c.skipped_non_finite == 1);
        CHECK(c.reference_non_finite + c.candidate_non_finite == 1);
        CHECK(c.warnings.size() == static_cast<std::size_t>(c.candidate_non_finite));
        CHECK(c.kl->mean == expected.kl->mean);
        CHECK(c.delta_p_rms->value == expected.delta_p_rms->value);
        CHECK(c.ranks == expected.ranks);
        CHECK(c.nll_difference.mean == expected.nll_difference.mean);
        const auto restored = [](std::size_t i) { return i + (i >= 12); }; // indices are of all rows
        CHECK(c.kl->max_index == restored(expected.kl->max_index));
        CHECK(c.delta_p->min_index == restored(expected.delta_p->min_index));
        CHECK(c.largest_gap->index == restored(expected.largest_gap->index));
        CHECK(c.worst.back().index == restored(c.worst.back().index - (c.worst.back().index > 12)));
    }
    const Pair& in_candidate = cases[1].first;
    CHECK_THROWS_AS(
        in_candidate.compare({.compare = {.non_finite = logitstat::non_finite_policy::skip, .strict = true}}),
        not_comparable);
    // Columns that were read up to a defect say so.
    const auto stopped =
        score_pairs(in_candidate.a.view(), in_candidate.b.view(), in_candidate.positions, {.rows_at_once = 5});
    CHECK_FALSE(stopped.complete);
    CHECK(contains(message_of<std::invalid_argument>([&] {
                       logitstat::summarize(stopped, {},
                                            {.compare = {.non_finite = logitstat::non_finite_policy::skip}});
                   }),
                   "not all rows were read"));
    Pair none = good;
    std::ranges::fill(none.a.values, static_cast<float>(not_a_number));
    CHECK(contains(message_of<std::invalid_argument>(
                       [&] { none.compare({.compare = {.non_finite = logitstat::non_finite_policy::skip}}); }),
                   "no position is finite in both arms"));
}

TEST_CASE("a token that the candidate rules out makes KL infinite: counted, not averaged") {
    Pair pair;
    const auto last = [&](std::size_t row) { return descending(pair.a, row)[49]; };
    const std::size_t in_both = last(9);
    pair.b.at(5, last(5)) = static_cast<float>(-infinity);
    pair.b.at(9, in_both) = static_cast<float>(-infinity);
    pair.a.at(9, in_both) = static_cast<float>(-infinity); // probability 0 in both is no difference
    pair.a.at(30, last(30)) = static_cast<float>(-infinity);
    const LogitsComparison c = pair.compare();
    CHECK(c.kl->infinite == 1);
    CHECK(c.reverse_kl->infinite == 1);
    CHECK(c.jensen_shannon->infinite == 0);
    CHECK(logitstat::simd::is_finite(c.kl->mean));
    CHECK(c.kl->se.n == 59);
    CHECK(c.total_variation->se.n == 60);
    const std::string text = logitstat::text_report(c);
    CHECK(contains(text, "KL(P || Q) is infinite at 1 position"));
    CHECK(contains(text, "KL(Q || P) is infinite at 1 position"));
    CHECK_FALSE(contains(text, "inf "));
    CHECK(contains(logitstat::markdown_report(c), "infinite at 1 position"));
    REQUIRE(c.warnings.size() == 1);
    CHECK(contains(c.warnings[0], "KL is infinite at 1 position: the candidate rules out"));
    CHECK_THROWS_AS(pair.compare({.compare = {.strict = true}}), not_comparable);
    // Ruled out is the reference's own choice: its logit has no finite delta.
    pair.b.at(14, descending(pair.a, 14)[0]) = static_cast<float>(-infinity);
    const LogitsComparison worse = pair.compare();
    CHECK(worse.logit_delta.count == c.logit_delta.count - 1);
    CHECK(logitstat::simd::is_finite(worse.logit_delta.max.value()));
    CHECK(worse.ranks.back().rank == std::optional<std::size_t>(50));
}

TEST_CASE("censored targets: figures with and without them") {
    Pair pair;
    pair.positions.censored.assign(60, 0);
    for (const std::size_t i : {3u, 21u, 22u, 59u}) { pair.positions.censored[i] = 1; }
    const LogitsComparison c = pair.compare();
    CHECK(c.censored_targets == 4);
    CHECK(c.positions == 60);
    REQUIRE(c.without_censored != nullptr);
    const LogitsComparison& without = *c.without_censored;
    CHECK(without.positions == 56);
    CHECK(without.censored_targets == 0);
    std::vector<std::size_t> known;
    for (std::size_t i = 0; i < 60; ++i) {
        if (pair.positions.censored[i] == 0) { known.push_back(i); }
    }
    const auto columns = score_pairs(pair.a.view(), pair.b.view(), pair.positions);
    const LogitsComparison expected = logitstat::summarize(subset(columns, known), {});
    CHECK(without.kl->mean == expected.kl->mean);
    CHECK(without.reference_perplexity.value == expected.reference_perplexity.value);
    CHECK(without.delta_p->max_index == known[expected.delta_p->max_index]);
    CHECK(without.nll_difference.largest_index == known[expected.nll_difference.largest_index]);
    CHECK(contains(logitstat::text_report(c), "of 4 targets the NLL is at least what is stored"));
    CHECK(contains(logitstat::markdown_report(c), "| censored targets | 4 |"));

    CHECK_THROWS_AS(logitstat::summarize(columns, std::vector<std::uint8_t>(59), {}), std::invalid_argument);
    pair.positions.censored.assign(60, 1);
    const LogitsComparison all = pair.compare();
    CHECK(all.censored_targets == 60);
    CHECK(all.without_censored == nullptr);
    CHECK(contains(logitstat::text_report(all), "there is no other position"));
}

TEST_CASE("without targets there are divergences and agreement, and nothing that needs targets") {
    Pair pair;
    const LogitsComparison with = pair.compare();
    pair.positions.target.clear();
    const LogitsComparison c = pair.compare();
    CHECK_FALSE(c.has_targets);
    CHECK(c.kl->mean == with.kl->mean);
    CHECK(c.sweep == with.sweep);
    CHECK(c.verdict == with.verdict);
    CHECK_FALSE(c.delta_p);
    CHECK_FALSE(c.delta_p_rms);
    const auto json = to_json(c);
    for (const char* key : {"perplexity", "nll_difference", "accuracy", "mcnemar", "delta_p", "delta_p_rms"}) {
        CAPTURE(key);
        CHECK(json.at(key).is_null());
    }
    for (const std::string& report : {logitstat::text_report(c), logitstat::markdown_report(c)}) {
        CHECK_FALSE(contains(report, "perplexity ratio"));
        CHECK_FALSE(contains(report, "Accuracy"));
        CHECK_FALSE(contains(report, "accuracy |"));
        CHECK_FALSE(contains(report, "NLL difference at"));
    }
    // No chunks either: one.
    const LogitsComparison bare = compare_logits(pair.a.view(), pair.b.view(), {});
    CHECK(bare.chunks == 1);
    CHECK(bare.kl->mean == with.kl->mean);
}

TEST_CASE("a limit of KL: the interval of its mean decides") {
    Pair pair;
    const Interval interval = pair.compare().kl->interval.value();
    const auto with = [&](double most) {
        return pair.compare({.compare = {.rules = {.max_mismatches = 60, .max_kl = most}}});
    };
    CHECK(with(interval.hi).verdict == logitstat::Verdict::pass);
    CHECK(with(interval.hi - 1e-6).verdict == logitstat::Verdict::inconclusive);
    CHECK(with(interval.lo).verdict == logitstat::Verdict::inconclusive);
    const LogitsComparison above = with(interval.lo - 1e-6);
    CHECK(above.verdict == logitstat::Verdict::fail);
    CHECK(above.token_verdict == logitstat::Verdict::pass);
    CHECK(above.rules.max_kl == interval.lo - 1e-6);
    CHECK(contains(logitstat::text_report(above), "is above the limit of "));
    CHECK(compare_logits(pair.a.view(), pair.a.view(), pair.positions, {.compare = {.rules = {.max_kl = 0}}}).verdict ==
          logitstat::Verdict::identical);
    CHECK_THROWS_AS(pair.compare({.compare = {.rules = {.max_kl = -1}}}), std::invalid_argument);
    // A censored NLL is at least what is stored: of the candidate it makes the increase too small, of the reference too
    // large.
    Logits<float> worse = pair.a; // a rise that is beyond doubt
    for (std::size_t i = 0; i < 60; ++i) {
        worse.at(i, static_cast<std::size_t>(pair.positions.target[i])) -= i % 2 == 0 ? 1.0f : 2.0f;
    }
    CompareLogitsOptions rises;
    const auto rise = [&](double most, std::uint8_t mark) {
        rises.compare.rules = {.max_mismatches = 60, .max_perplexity_increase = most};
        logitstat::LogitsPositions positions = pair.positions;
        positions.censored.assign(60, 0);
        positions.censored[5] = mark;
        return compare_logits(pair.a.view(), worse.view(), positions, rises).limits.at(0).verdict;
    };
    using logitstat::Verdict;
    const Interval nll = compare_logits(pair.a.view(), worse.view(), pair.positions).nll_difference.interval.value();
    REQUIRE(nll.lo > 0);
    const double below = std::expm1(nll.lo) / 2, above_all = 2 * std::expm1(nll.hi);
    CHECK(rise(above_all, 0) == Verdict::pass);
    CHECK(rise(above_all, logitstat::censored_in_reference) == Verdict::pass);
    CHECK(rise(above_all, logitstat::censored_in_candidate) == Verdict::inconclusive);
    CHECK(rise(above_all, logitstat::censored_somewhere) == Verdict::inconclusive);
    CHECK(rise(below, 0) == Verdict::fail);
    CHECK(rise(below, logitstat::censored_in_reference) == Verdict::inconclusive);
    CHECK(rise(below, logitstat::censored_in_candidate) == Verdict::fail);
    // One position where it is infinite makes the mean infinite.
    pair.b.at(5, descending(pair.a, 5)[49]) = static_cast<float>(-infinity);
    const LogitsComparison infinite = with(1e9);
    CHECK(infinite.verdict == logitstat::Verdict::fail);
    CHECK(logitstat::to_json(infinite)["limits"][0]["estimate"].is_null());
    CHECK(contains(logitstat::text_report(infinite), "mean KL(P || Q) infinite is above the limit of"));
    // Perplexity has no meaning without targets.
    CompareLogitsOptions options;
    options.compare.rules.max_perplexity_increase = 1;
    CHECK_THROWS_AS(compare_logits(pair.a.view(), pair.b.view(), {}, options), std::invalid_argument);
}

TEST_CASE("equal logits are identical, and equal best tokens are not enough") {
    Pair pair;
    const LogitsComparison same = compare_logits(pair.a.view(), pair.a.view(), pair.positions);
    CHECK(same.identical_data);
    CHECK(same.verdict == logitstat::Verdict::identical);
    CHECK(same.kl->max == 0);
    CHECK(same.nll_difference.p == 1.0);
    CHECK(same.topk_overlap->min == 1);
    // A token far down in a row whose target is elsewhere.
    Logits<float> tail = pair.a;
    const auto order = descending(tail, 40);
    tail.at(40, order[45]) -= 1e-3f;
    const LogitsComparison c = compare_logits(pair.a.view(), tail.view(), pair.positions);
    CHECK_FALSE(c.identical_data);
    CHECK(c.verdict == logitstat::Verdict::identical);
    CHECK(c.kl->max_index == 40);
    CHECK(c.kl->max > 0);
}

TEST_CASE("a constant added to all logits of a row changes nothing but the raw logits") {
    Pair pair;
    const LogitsComparison before = pair.compare();
    for (std::size_t t = 0; t < 50; ++t) { pair.b.at(8, t) += 256; }
    const LogitsComparison c = pair.compare();
    CHECK(c.disagreements == before.disagreements);
    CHECK(c.kl->mean == doctest::Approx(before.kl->mean).epsilon(1e-4));
    CHECK(c.logit_rms->mean == doctest::Approx(before.logit_rms->mean).epsilon(1e-4));
    CHECK(c.nll_difference.mean == doctest::Approx(before.nll_difference.mean).epsilon(1e-4));
    CHECK(c.logit_max > 250);
}

TEST_CASE("arms that do not fit each other, and positions that do not fit them") {
    const Pair pair;
    const Logits<float> narrow(60, 49, 1), shorter(59, 50, 1), one(60, 1, 1), none(0, 50, 1);
    const auto refused = [&](const auto& a, const auto& b, const LogitsPositions& positions) {
        return message_of<not_comparable>([&] { compare_logits(a.view(), b.view(), positions); });
    };
    CHECK(refused(pair.a, narrow, {}) ==
          "not comparable: vocabularies of different sizes: the reference has 50, the candidate 49 tokens");
    CHECK(refused(pair.a, shorter, {}) ==
          "not comparable: different numbers of rows: the reference has 60, the candidate 59");
    const auto bad = [&](const auto& a, LogitsPositions positions, CompareLogitsOptions options = {}) {
        return message_of<std::invalid_argument>([&] { compare_logits(a.view(), a.view(), positions, options); });
    };
    CHECK(contains(bad(one, {}), "a vocabulary of 1: at least 2"));
    CHECK(contains(bad(none, {}), "no rows"));
    CHECK(contains(bad(pair.a, {}, {.top_k = 1}), "the best 1 of a vocabulary of 50"));
    auto positions = pair.positions;
    positions.target.pop_back();
    CHECK(contains(bad(pair.a, positions), "59 targets for 60 rows"));
    positions = pair.positions;
    positions.target[7] = 50;
    CHECK(contains(bad(pair.a, positions), "target 50 at position 7 is no token of a vocabulary of 50"));
    positions.target[7] = -1;
    CHECK(contains(bad(pair.a, positions), "target -1 at position 7"));
    positions = pair.positions;
    positions.chunk.clear();
    CHECK(contains(bad(pair.a, positions), "chunk numbers without positions"));
    positions.pos.clear();
    positions.censored.assign(3, 0);
    CHECK(contains(bad(pair.a, positions), "3 marks of censored targets"));
    CHECK_THROWS_AS(logitstat::set_chunks(positions, 5, 0), std::invalid_argument);
    // A top k above the vocabulary is all of it.
    const Logits<float> tiny(60, 5, 1);
    const auto all = compare_logits(tiny.view(), tiny.view(), {});
    CHECK(all.reference_k == 5);
}

TEST_CASE("conventions: terms left out, probabilities as they are, floats") {
    const Pair pair;
    const auto columns = [&](logitstat::KlConventions kl) {
        return score_pairs(pair.a.view(), pair.b.view(), pair.positions, {.kl = kl});
    };
    const PairColumns plain = columns({}), skipping = columns({.skip_below = -4.0}),
                      all = columns({.skip_below = -1e9}), floats = columns({.single_precision = true});
    for (std::size_t i = 0; i < 60; ++i) {
        const auto p = log_softmax(pair.a, i), q = log_softmax(pair.b, i);
        long double kl = 0;
        for (std::size_t t = 0; t < 50; ++t) {
            if (p[t] > -4.0L) { kl += std::exp(p[t]) * (p[t] - q[t]); }
        }
        check_near(skipping.kl[i], kl, 1e-12);
        check_near(all.kl[i], static_cast<long double>(plain.kl[i]), 2e-6);
        check_near(floats.kl[i], static_cast<long double>(plain.kl[i]), 1e-5);
        CHECK(floats.reference.nll[i] == static_cast<double>(static_cast<float>(floats.reference.nll[i])));
        check_near(floats.reference.nll[i], static_cast<long double>(plain.reference.nll[i]), 1e-5);
    }
    CHECK(skipping.reverse_kl == plain.reverse_kl);
    const auto c = pair.compare({.kl = logitstat::KlConventions::llama_cpp()});
    CHECK(contains(logitstat::text_report(c),
                   "terms with ln P of at most -16 left out, log-probabilities of .kld files "
                   "as stored, not normalized, figures of a row rounded to float"));
    CHECK(to_json(c).at("conventions").at("kl_skip_below") == -16.0);
    CHECK_FALSE(contains(logitstat::text_report(pair.compare()), "conventions"));
}

TEST_CASE("log-probabilities against raw logits: the delta is of log-probabilities") {
    const Pair pair;
    Logits<float> log_p = pair.a;
    for (std::size_t i = 0; i < 60; ++i) {
        const auto exact = log_softmax(pair.a, i);
        for (std::size_t t = 0; t < 50; ++t) { log_p.at(i, t) = static_cast<float>(exact[t]); }
    }
    const auto columns = score_pairs(LogProbabilities{log_p.view()}, pair.b.view(), pair.positions);
    for (std::size_t i = 0; i < 60; ++i) {
        const auto p = log_softmax(pair.a, i), q = log_softmax(pair.b, i);
        const auto best = descending(pair.a, i)[0];
        check_near(columns.landed_delta[i], q[best] - p[best], 3e-6);
    }
}

TEST_CASE("quantiles of full logits are linear, whatever else is asked for") {
    const Pair pair;
    const auto plain = pair.compare(), asking = pair.compare({.compare = {.decided_gap = 1.0}});
    CHECK(asking.kl->quantiles == plain.kl->quantiles);
    CHECK(asking.logit_delta.p50 == plain.logit_delta.p50);
    const auto floor = pair.compare({.compare = {.quantiles = logitstat::quantile_rule::floor_index}});
    CHECK(floor.kl->quantile(0.99) == floor.kl->max); // 0.99 * 60 is 59.4
    CHECK(plain.kl->quantile(0.99) < plain.kl->max);
}

TEST_CASE(
    "an NLL beyond the type that it is computed in is a defect, not a position that only some figures leave out") {
    Logits<double> a(12, 20, 1), b(12, 20, 2);
    LogitsPositions positions = some_positions(12, 20, 6);
    const auto target = static_cast<std::size_t>(positions.target[3]);
    a.at(3, (target + 1) % 20) = 1.7e308;
    a.at(3, target) = -1.7e308;
    CHECK(message_of<std::invalid_argument>([&] { compare_logits(a.view(), b.view(), positions); }) ==
          "reference: row 3 (chunk 0, pos 3): its NLL is beyond the range of double");
    const logitstat::CompareOptions skip{.non_finite = logitstat::non_finite_policy::skip};
    const auto c = compare_logits(a.view(), b.view(), positions, {.compare = skip});
    CHECK(c.positions == 11);
    CHECK(c.skipped_non_finite == 1);
    CHECK(c.reference_non_finite == 1);
    CHECK(c.candidate_non_finite == 0);
    CHECK(c.logit_delta.count == 11);
    CHECK(c.kl->se.n == 11);
    std::int64_t ranked = 0;
    for (const auto& at : c.ranks) { ranked += at.count; }
    CHECK(ranked == c.disagreements);
    // The same where float is asked for, and double would do.
    Logits<float> wide(12, 20, 1);
    const Logits<float> other(12, 20, 2);
    wide.at(3, (target + 1) % 20) = 3.4e38f;
    wide.at(3, target) = -3.4e38f;
    CHECK(compare_logits(wide.view(), other.view(), positions).positions == 12);
    const auto conventional = compare_logits(wide.view(), other.view(), positions,
                                             {.compare = skip, .kl = logitstat::KlConventions::llama_cpp()});
    CHECK(conventional.positions == 11);
    CHECK(conventional.kl->se.n == 11);
    CHECK(contains(message_of<std::invalid_argument>([&] {
                       compare_logits(wide.view(), other.view(), positions, {.kl = {.single_precision = true}});
                   }),
                   "row 3 (chunk 0, pos 3): its NLL is beyond the range of float"));
    Logits<double> huge = b; // every figure of the row leaves float, no NLL need to
    for (std::size_t t = 0; t < 20; ++t) { huge.at(5, t) *= 1e300; }
    const auto kept =
        compare_logits(b.view(), huge.view(), positions, {.compare = skip, .kl = {.single_precision = true}});
    CHECK(kept.positions == 11);
}

TEST_CASE("a lag of all positions is none too many for those that a figure is left with") {
    Pair pair;
    for (std::size_t i = 0; i < 57; ++i) { pair.b.at(i, descending(pair.a, i)[49]) = static_cast<float>(-infinity); }
    pair.positions.censored.assign(60, 1);
    for (const std::size_t i : {1u, 30u, 59u}) { pair.positions.censored[i] = 0; }
    const auto c = pair.compare({.compare = {.hac = {.lag = 40}}});
    CHECK(c.kl->infinite == 57);
    CHECK(c.kl->se.n == 3);
    CHECK(c.without_censored->positions == 3);
    CHECK(c.total_variation->se.lag == 40);
    CHECK_THROWS_AS(pair.compare({.compare = {.hac = {.lag = 60}}}), std::invalid_argument);
}

TEST_CASE("more rows than positions can be numbered are refused before anything is kept of them") {
    struct ManyRows {
        using value_type = float;
        std::size_t size() const { return 3'000'000'000; }
        std::size_t vocabulary() const { return 2; }
        std::span<const float> row(std::size_t) const { return {}; }
    };
    CHECK(contains(message_of<std::invalid_argument>([] { compare_logits(ManyRows(), ManyRows()); }),
                   "3000000000 rows are more than positions can be numbered"));
}

TEST_CASE("the overlap of many best tokens") {
    const Pair pair;
    const Logits<float> a(3, 200, 1), b(3, 200, 2);
    const auto columns = score_pairs(a.view(), b.view(), {}, {.top_k = 150});
    for (std::size_t i = 0; i < 3; ++i) {
        const auto ours = descending(a, i), theirs = descending(b, i);
        double shared = 0;
        for (std::size_t j = 0; j < 150; ++j) {
            shared += static_cast<double>(std::count(theirs.begin(), theirs.begin() + 150, ours[j]));
        }
        CHECK(columns.top_shared[i] == shared / 150);
    }
}

TEST_CASE("the first tokens of rows that are padded") {
    const Pair pair;
    Logits<double> padded(60, 53, 9);
    for (std::size_t i = 0; i < 60; ++i) {
        for (std::size_t t = 0; t < 50; ++t) { padded.at(i, t) = static_cast<double>(pair.b.exact(i, t)); }
        padded.at(i, 51) = 1e30; // padding is not looked at
        padded.at(i, 52) = not_a_number;
    }
    const auto c = compare_logits(pair.a.view(), padded.view(), pair.positions, {.vocabulary = 50});
    CHECK(c.vocabulary == 50);
    CHECK(c.kl->mean == doctest::Approx(pair.compare().kl->mean).epsilon(1e-6));
    CHECK(c.ranks == pair.compare().ranks);
    CHECK(contains(message_of<std::invalid_argument>(
                       [&] { compare_logits(pair.a.view(), padded.view(), pair.positions, {.vocabulary = 51}); }),
                   "the first 51 tokens of a vocabulary of 50"));
}

TEST_CASE("a perplexity worse than guessing is a warning: these may not be the targets") {
    Pair pair;
    CHECK(pair.compare().warnings.empty());
    for (std::size_t i = 0; i < 60; ++i) {
        pair.positions.target[i] = static_cast<token_id>(descending(pair.a, i)[45]);
    }
    REQUIRE(pair.compare().warnings.size() == 1);
    CHECK(contains(pair.compare().warnings[0], "worse than guessing"));
    const auto made = logitstat::positions_of(pair.positions.target, 20);
    CHECK(made.target == pair.positions.target);
    CHECK(made.chunk == pair.positions.chunk);
    CHECK(made.pos == pair.positions.pos);
}

TEST_CASE("figures that every pair has, in the JSON of one") {
    const auto json = to_json(Pair().compare());
    for (const char* key : {"kl", "reverse_kl", "js", "total_variation", "delta_p", "topk_overlap", "logit_rms"}) {
        CAPTURE(key);
        for (const char* figure :
             {"mean", "se", "min", "p01", "p05", "p10", "p50", "p90", "p95", "p99", "p999", "max", "max_index"}) {
            CAPTURE(figure);
            CHECK_FALSE(json.at(key).at(figure).is_null());
        }
    }
    CHECK(json.at("delta_p_rms").at("value").is_number());
    CHECK(json.at("delta_p_rms").at("se").at("iid").is_number());
    CHECK(json.at("censored_targets") == 0);
    CHECK(json.at("without_censored").is_null());
    CHECK(json.at("positions") == 60);
}

} // namespace test_compare_logits

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/capture/trace_builder.hpp"
#include "logitstat/compare_logits.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_logits {

// What must hold between the figures of full logits and those of logits that say the same. The figures of a row are
// checked against the definitions in tests/logits and tests/simd.

using logitstat::compare_logits;
using logitstat::CompareLogitsOptions;
using logitstat::Distribution;
using logitstat::LogitsComparison;
using logitstat::LogitsPositions;
using logitstat::LogitsView;
using logitstat::PairColumns;
using logitstat::token_id;
using oracle::close;
using oracle::Random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Rows of two arms of any two types: near each other or not, some tokens ruled out, of a vocabulary that no register
/// divides.
template <class R, class C> struct Rows {
    std::size_t n, vocabulary;
    std::vector<R> a;
    std::vector<C> b;
    LogitsPositions positions;

    explicit Rows(Random& random, std::size_t rows = 0)
        : n(rows > 0 ? rows : random.pick<std::size_t>({1, 2, 7, 40})),
          vocabulary(random.pick<std::size_t>({2, 3, 17, 64, 65, 300})), a(n * vocabulary), b(n * vocabulary) {
        const double noise = random.pick({0.0, 0.02, 0.5, 8.0}), ruled_out = random.pick({0.0, 0.0, 0.1});
        std::vector<std::int32_t> chunk(n), pos(n);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t target = random.below(vocabulary);
            for (std::size_t t = 0; t < vocabulary; ++t) {
                const double x = random.unit() * 20 - 10, y = x + noise * (random.unit() - 0.5);
                const auto allowed = [&] { return t == target || t < 2 || !random.chance(ruled_out); }; // the best two
                a[i * vocabulary + t] = static_cast<R>(static_cast<float>(allowed() ? x : -infinity));
                b[i * vocabulary + t] = static_cast<C>(static_cast<float>(allowed() ? y : -infinity));
            }
            positions.target.push_back(static_cast<token_id>(target));
            positions.chunk.push_back(static_cast<std::int32_t>(i / 5));
            positions.pos.push_back(static_cast<std::int32_t>(i % 5));
        }
    }
    LogitsView<R> reference() const { return {a, n, vocabulary}; }
    LogitsView<C> candidate() const { return {b, n, vocabulary}; }
    std::size_t top_k() const { return 2; }
    CompareLogitsOptions options() const { return {.compare = {.bootstrap = {.replicates = 0}}, .top_k = top_k()}; }
    LogitsComparison compared() const { return compare_logits(reference(), candidate(), positions, options()); }
};

bool same_spread(const std::optional<Distribution>& a, const std::optional<Distribution>& b, long double tolerance) {
    if (!a || !b) { return !a && !b; }
    bool same = a->infinite == b->infinite && close(a->mean, b->mean, tolerance) && close(a->min, b->min, tolerance) &&
                close(a->max, b->max, tolerance) && a->se.n == b->se.n && close(a->se.iid, b->se.iid, tolerance) &&
                close(a->se.clustered, b->se.clustered, tolerance) && close(a->se.hac, b->se.hac, tolerance);
    for (std::size_t j = 0; j < a->quantiles.size(); ++j) {
        same = same && close(a->quantiles[j], b->quantiles[j], tolerance);
    }
    return same;
}

/// All that does not name tokens.
void check_same(const LogitsComparison& a, const LogitsComparison& b, long double tolerance) {
    for (auto figure : {&LogitsComparison::kl, &LogitsComparison::reverse_kl, &LogitsComparison::jensen_shannon,
                        &LogitsComparison::total_variation, &LogitsComparison::logit_rms, &LogitsComparison::delta_p,
                        &LogitsComparison::topk_overlap}) {
        CHECK(same_spread(a.*figure, b.*figure, tolerance));
    }
    CHECK(oracle::close(a.logit_max, b.logit_max, tolerance));
    CHECK(a.disagreements == b.disagreements);
    CHECK(a.sweep == b.sweep);
    if (a.logit_delta.count == a.positions) {
        CHECK(a.ranks == b.ranks);
    } // a choice that is ruled out ties with others
    CHECK(a.verdict == b.verdict);
    CHECK(a.hard_ties == b.hard_ties);
    CHECK(a.candidate_ties == b.candidate_ties);
    CHECK(a.logit_delta.count == b.logit_delta.count);
    CHECK(a.logit_delta.max == b.logit_delta.max);
    CHECK(a.mcnemar.only_reference == b.mcnemar.only_reference);
    CHECK(a.mcnemar.only_candidate == b.mcnemar.only_candidate);
    CHECK(a.identical_data == b.identical_data);
    CHECK(close(a.nll_difference.mean, b.nll_difference.mean, tolerance));
    CHECK(close(a.reference_perplexity.mean_nll, b.reference_perplexity.mean_nll, tolerance));
    CHECK(close(a.candidate_perplexity.mean_nll, b.candidate_perplexity.mean_nll, tolerance));
}

template <class R, class C> void for_rows(std::uint64_t first_seed, std::uint64_t count, auto check) {
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        check(random, Rows<R, C>(random));
    }
}

} // namespace

TEST_CASE("tokens under other numbers: the same figures, but for rounding") {
    const auto check = [](Random& random, const auto& rows) {
        std::vector<std::size_t> name(rows.vocabulary);
        std::iota(name.begin(), name.end(), std::size_t{0});
        for (std::size_t t = name.size(); t > 1; --t) { std::swap(name[t - 1], name[random.below(t)]); }
        auto renamed = rows;
        for (std::size_t i = 0; i < rows.n; ++i) {
            for (std::size_t t = 0; t < rows.vocabulary; ++t) {
                renamed.a[i * rows.vocabulary + name[t]] = rows.a[i * rows.vocabulary + t];
                renamed.b[i * rows.vocabulary + name[t]] = rows.b[i * rows.vocabulary + t];
            }
            renamed.positions.target[i] =
                static_cast<token_id>(name[static_cast<std::size_t>(rows.positions.target[i])]);
        }
        check_same(rows.compared(), renamed.compared(), 4e-6L);
    };
    for_rows<double, double>(1, 25, check);
    for_rows<float, float>(100, 25, check);
}

TEST_CASE("padding: columns that are left out, rows apart in memory and tokens of probability 0 change nothing") {
    const auto check = [](Random& random, const auto& rows) {
        const LogitsComparison plain = rows.compared();
        const std::size_t v = rows.vocabulary, wide = v + 1 + random.below(70);
        auto garbage = rows, zero = rows;
        const auto widen = [&](const auto& from, auto& to, double padding) {
            using T = std::remove_cvref_t<decltype(from[0])>;
            to.assign(rows.n * wide, static_cast<T>(static_cast<float>(padding)));
            for (std::size_t i = 0; i < rows.n; ++i) {
                std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i * v), v,
                            to.begin() + static_cast<std::ptrdiff_t>(i * wide));
            }
        };
        widen(rows.a, garbage.a, 1e30);
        widen(rows.b, garbage.b, std::nan(""));
        widen(rows.a, zero.a, -infinity);
        widen(rows.b, zero.b, -infinity);
        garbage.vocabulary = zero.vocabulary = wide;
        auto options = rows.options();
        options.vocabulary = v;
        check_same(compare_logits(garbage.reference(), garbage.candidate(), rows.positions, options), plain, 0);
        const LogitsView apart(std::span(std::as_const(garbage.a)), rows.n, v, wide);
        const LogitsView also_apart(std::span(std::as_const(garbage.b)), rows.n, v, wide);
        check_same(compare_logits(apart, also_apart, rows.positions, rows.options()), plain, 0);
        LogitsComparison ruled_out = zero.compared();
        ruled_out.logit_rms = plain.logit_rms; // over the tokens that both arms allow: the same
        check_same(ruled_out, plain, 4e-6L);
    };
    for_rows<double, double>(200, 20, check);
    for_rows<float, float>(300, 20, check);
}

TEST_CASE("swapped arms: KL becomes its reverse, what is symmetric stays, signs turn") {
    const auto check = [](Random&, const auto& rows) {
        const LogitsComparison a = rows.compared(),
                               b = compare_logits(rows.candidate(), rows.reference(), rows.positions, rows.options());
        CHECK(same_spread(a.kl, b.reverse_kl, 4e-6L));
        CHECK(same_spread(a.reverse_kl, b.kl, 4e-6L));
        CHECK(same_spread(a.jensen_shannon, b.jensen_shannon, 4e-6L));
        CHECK(same_spread(a.total_variation, b.total_variation, 4e-6L));
        CHECK(same_spread(a.logit_rms, b.logit_rms, 4e-6L));
        CHECK(same_spread(a.topk_overlap, b.topk_overlap, 1e-15L));
        CHECK(a.logit_max == b.logit_max);
        CHECK(close(a.delta_p->mean, -b.delta_p->mean, 4e-6L));
        CHECK(close(a.delta_p->max, -b.delta_p->min, 4e-6L));
        CHECK(close(a.delta_p_rms->value, b.delta_p_rms->value, 4e-6L));
        CHECK(a.disagreements == b.disagreements);
        CHECK(a.identical_data == b.identical_data);
        CHECK(a.mcnemar.only_reference == b.mcnemar.only_candidate);
        CHECK(close(a.nll_difference.mean, -b.nll_difference.mean, 1e-12L));
    };
    for_rows<double, double>(400, 30, check);
    for_rows<float, float>(500, 30, check);
    for_rows<Eigen::half, float>(600, 20, check);
}

TEST_CASE("bounds: of each divergence, and between them") {
    const auto check = [](Random&, const auto& rows) {
        constexpr double rounding = 2e-6;
        const PairColumns c =
            logitstat::score_pairs(rows.reference(), rows.candidate(), rows.positions, {.top_k = rows.top_k()});
        for (std::size_t i = 0; i < rows.n; ++i) {
            CAPTURE(i);
            const double kl = c.kl[i], reverse = c.reverse_kl[i], js = c.jensen_shannon[i], tv = c.total_variation[i];
            CHECK(kl >= 0);
            CHECK(reverse >= 0);
            CHECK(js >= 0);
            CHECK(js <= std::numbers::ln2);
            CHECK(tv >= 0);
            CHECK(tv <= 1);
            CHECK(tv * tv <= kl / 2 + rounding); // Pinsker
            CHECK(tv * tv <= reverse / 2 + rounding);
            CHECK(js <= (kl + reverse) / 4 + rounding);     // by convexity of KL in its second argument
            CHECK(js <= tv * std::numbers::ln2 + rounding); // Lin 1991
            CHECK(js >= tv * tv / 2 - rounding);            // Pinsker to the mixture, which is tv / 2 from either
            CHECK(std::abs(c.delta_p[i]) <= tv + rounding);
            // The log-probabilities of P and Q are at most 2 max |d| apart, where no token is ruled out by one alone.
            if (std::isfinite(kl) && std::isfinite(reverse)) { CHECK(kl <= 2 * c.logit_max[i] + rounding); }
            CHECK(c.logit_rms[i] <= c.logit_max[i] + rounding);
            CHECK(std::abs(c.logit_shift[i]) <= c.logit_max[i] + rounding);
            CHECK(c.rank[i] >= 1);
            CHECK(c.rank[i] <= static_cast<std::int64_t>(rows.vocabulary));
            CHECK((c.rank[i] == 1) == (c.reference.view().ids(0)[i] == c.candidate.view().ids(0)[i]));
            CHECK(c.landed_gap[i] >= 0);
            CHECK(c.top_shared[i] >= 0);
            CHECK(c.top_shared[i] <= 1);
        }
    };
    for_rows<double, double>(700, 40, check);
    for_rows<float, Eigen::bfloat16>(800, 40, check);
}

TEST_CASE("equal arms: every divergence is 0, whatever the logits") {
    for_rows<float, float>(900, 20, [](Random&, auto rows) {
        rows.b = rows.a;
        const LogitsComparison c = rows.compared();
        CHECK(c.identical_data);
        CHECK(c.verdict == logitstat::Verdict::identical);
        for (auto figure :
             {&LogitsComparison::kl, &LogitsComparison::reverse_kl, &LogitsComparison::jensen_shannon,
              &LogitsComparison::total_variation, &LogitsComparison::logit_rms, &LogitsComparison::delta_p}) {
            CHECK((c.*figure)->infinite == 0);
            CHECK((c.*figure)->min == 0);
            CHECK((c.*figure)->max == 0);
        }
        CHECK(c.topk_overlap->min == 1);
        CHECK(c.logit_max == 0);
        CHECK(c.delta_p_rms->value == 0);
    });
}

TEST_CASE("a constant added to the logits of a row of either arm: only raw logit differences see it") {
    for_rows<double, double>(1000, 30, [](Random& random, auto rows) {
        for (auto* logits : {&rows.a, &rows.b}) {
            for (double& x : *logits) { x = std::round(x * 1024) / 1024; } // sums below are exact
        }
        auto moved = rows;
        for (auto* logits : {&moved.a, &moved.b}) {
            for (std::size_t i = 0; i < rows.n; ++i) {
                const double constant = static_cast<double>(random.below(128)) - 64;
                for (std::size_t t = 0; t < rows.vocabulary; ++t) { (*logits)[i * rows.vocabulary + t] += constant; }
            }
        }
        LogitsComparison a = rows.compared(), b = moved.compared();
        a.logit_max = b.logit_max = 0;
        a.logit_delta = b.logit_delta = {};
        a.identical_data = b.identical_data = false;
        a.verdict = b.verdict = logitstat::Verdict::pass;
        check_same(a, b, 1e-12L);
    });
}

TEST_CASE("twice the rows: the same distributions, errors smaller by the square root") {
    for_rows<double, double>(1100, 30, [](Random&, const auto& rows) {
        auto twice = rows;
        twice.n = 2 * rows.n;
        twice.a.insert(twice.a.end(), rows.a.begin(), rows.a.end());
        twice.b.insert(twice.b.end(), rows.b.begin(), rows.b.end());
        for (std::size_t i = 0; i < rows.n; ++i) {
            twice.positions.target.push_back(rows.positions.target[i]);
            twice.positions.chunk.push_back(rows.positions.chunk[i] + 1000);
            twice.positions.pos.push_back(rows.positions.pos[i]);
        }
        const LogitsComparison a = rows.compared(), b = twice.compared();
        const auto n = static_cast<double>(rows.n);
        for (auto figure :
             {&LogitsComparison::kl, &LogitsComparison::jensen_shannon, &LogitsComparison::total_variation,
              &LogitsComparison::logit_rms, &LogitsComparison::delta_p, &LogitsComparison::topk_overlap}) {
            const auto &x = a.*figure, &y = b.*figure;
            REQUIRE(x.has_value() == y.has_value());
            if (!x) { continue; }
            CHECK(y->infinite == 2 * x->infinite);
            CHECK(close(y->mean, x->mean, 1e-13L));
            CHECK(y->min == x->min);
            CHECK(y->max == x->max);
            CHECK(y->min_index == x->min_index);
            CHECK(y->max_index == x->max_index);
            const double m = n - static_cast<double>(x->infinite);
            if (m > 1) { CHECK(close(*y->se.iid, *x->se.iid * std::sqrt((m - 1) / (2 * m - 1)), 1e-12L)); }
        }
        CHECK(b.disagreements == 2 * a.disagreements);
        CHECK(b.logit_max == a.logit_max);
        CHECK(close(b.delta_p_rms->value, a.delta_p_rms->value, 1e-14L));
    });
}

TEST_CASE("traces captured from the rows, of as many candidates as there are tokens, say what the rows say") {
    const auto check = [](Random&, const auto& rows) {
        if (rows.vocabulary > 20) { return; }
        for (std::size_t t = 0; t < rows.a.size(); ++t) {
            if (!std::isfinite(static_cast<double>(rows.a[t])) || !std::isfinite(static_cast<double>(rows.b[t]))) {
                return;
            }
        }
        logitstat::TraceBuilder<double> a(rows.vocabulary), b(rows.vocabulary);
        for (std::size_t i = 0; i < rows.n; ++i) {
            const auto &chunk = rows.positions.chunk[i], &pos = rows.positions.pos[i],
                       &target = rows.positions.target[i];
            a.record(chunk, pos, target, rows.reference().row(i));
            b.record(chunk, pos, target, rows.candidate().row(i));
        }
        auto options = rows.options();
        options.compare.worst = 1000;
        options.compare.quantiles = logitstat::quantile_rule::linear;
        options.top_k = rows.vocabulary;
        const LogitsComparison full = compare_logits(rows.reference(), rows.candidate(), rows.positions, options);
        const auto traces = logitstat::compare(a.trace(), b.trace(), options.compare);
        CHECK(oracle::describe(full) == oracle::describe(traces)); // ranks and deltas too: no token is beyond
        CHECK(full.mcnemar.p == traces.mcnemar.p);
        CHECK(full.nll_difference.interval == traces.nll_difference.interval);
        CHECK(full.ulp_sweep == traces.ulp_sweep);
        CHECK(full.topk_overlap->min == 1); // all tokens are among all tokens
    };
    for_rows<double, double>(1200, 40, check);
    for_rows<Eigen::half, Eigen::half>(1300, 40, check); // ties of every kind
    for_rows<float, float>(1400, 40, check);
}

} // namespace test_logits

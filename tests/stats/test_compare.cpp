#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/compare.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

namespace test_compare {

// Edges of compare() and its relations to itself; the figures of ordinary pairs are in test_oracle.cpp.

using logitstat::compare;
using logitstat::CompareOptions;
using logitstat::Comparison;
using logitstat::non_finite_policy;
using logitstat::Trace;
using logitstat::Verdict;
using oracle::close;
using oracle::describe;
using oracle::Pair;
using oracle::Random;
using oracle::Sizes;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();
constexpr double largest = std::numeric_limits<double>::max();

template <class Real = double> struct Traces {
    Trace<Real> reference, candidate;
    explicit Traces(const Pair& pair)
        : reference(oracle::to_trace<Real>(pair.reference, pair.reference_k)),
          candidate(oracle::to_trace<Real>(pair.candidate, pair.candidate_k)) {}
    Comparison compared(const CompareOptions& options = {}) const { return compare(reference, candidate, options); }
};

Pair small_pair(std::uint64_t seed = 5, std::size_t n = 40, std::size_t k = 4) {
    Random random(seed);
    return oracle::random_pair(random, {.n = n, .k = k});
}

/// What `f` throws, which must be an E.
template <class E> std::string error_of(auto f) {
    try {
        f();
    } catch (const E& error) { return error.what(); }
    FAIL_CHECK("nothing was thrown");
    return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// One position: the reference's two best logits, and the candidate's best token (the reference's is 1).
Pair one_position(double best, double second, std::int32_t candidate_token = 1) {
    Pair pair;
    pair.reference_k = pair.candidate_k = 2;
    pair.reference = {{0, 0, 1, 1.0, {1, 2}, {best, second}}};
    pair.candidate = {{0, 0, 1, 1.0, {candidate_token, 3 - candidate_token}, {0.5, 0.25}}};
    return pair;
}

} // namespace

TEST_CASE_TEMPLATE("a trace compared with itself", Real, float, double) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Pair pair = oracle::random_pair(random, {.reference_float = sizeof(Real) == 4});
        const auto trace = oracle::to_trace<Real>(pair.reference, pair.reference_k);
        const Comparison c = compare(trace, trace, {.worst = 3, .step_curve = true});
        CHECK(c.verdict == Verdict::identical);
        CHECK(c.identical_data);
        CHECK(c.disagreements == 0);
        CHECK(c.disagreement_rate() == 0);
        CHECK(c.decided.mismatches == 0);
        CHECK(!c.largest_gap);
        CHECK(c.worst.empty());
        CHECK(c.ranks.empty());
        CHECK(c.candidate_ties == 0);
        CHECK(c.logit_delta.count == c.positions);
        for (const auto& x :
             {c.logit_delta.p50, c.logit_delta.p90, c.logit_delta.p99, c.logit_delta.max, c.logit_delta.mean_signed,
              std::optional(c.nll_difference.mean), std::optional(c.nll_difference.largest),
              std::optional(c.nll_difference.perplexity_percent)}) {
            CHECK(x == 0.0);
        }
        CHECK(c.nll_difference.perplexity_ratio == 1.0);
        CHECK(c.nll_difference.equal == c.positions);
        const auto zero = c.positions > 1 ? std::optional(0.0) : std::nullopt;
        CHECK(c.nll_difference.se.iid == zero);
        CHECK(c.nll_difference.se.hac == zero);
        CHECK(c.nll_difference.p == (c.positions > 1 ? std::optional(1.0) : std::nullopt));
        CHECK(c.nll_difference.sign_test_p == 1.0);
        CHECK(c.nll_difference.t == zero);
        CHECK(c.reference_perplexity.value == c.candidate_perplexity.value);
        CHECK(!contains(describe(c), "nan"));
    }
}

TEST_CASE("equal tokens with other values are the verdict identical, but not identical data") {
    const Traces<> same(small_pair());
    const auto with = [&](auto change) {
        auto other = same.reference;
        change(other);
        const Comparison c = compare(same.reference, other);
        CHECK(c.verdict == Verdict::identical);
        return c.identical_data;
    };
    CHECK(with([](auto&) {}));
    CHECK(!with([](auto& t) { t.nll.back() += 1e-9; }));
    CHECK(!with([](auto& t) { t.top_logits.back() -= 1e-9; }));
    CHECK(!with([](auto& t) { t.top_ids.back() += 100'000; }));
    CHECK(with([](auto& t) { t.source.path = "elsewhere"; }));
}

TEST_CASE("an added plane is not identical data") {
    const Pair wide = small_pair();
    Pair narrow = wide;
    narrow.candidate_k = 3;
    narrow.candidate = wide.reference;
    for (auto& row : narrow.candidate) { row.ids.resize(3), row.logits.resize(3); }
    const Comparison c = Traces<>(narrow).compared();
    CHECK(c.verdict == Verdict::identical);
    CHECK(!c.identical_data);
    CHECK(c.reference_k == 4);
    CHECK(c.candidate_k == 3);
}

TEST_CASE("one position has no standard error") {
    const Comparison c = Traces<>(one_position(3, 1, 2)).compared({.worst = 5, .step_curve = true});
    CHECK(c.positions == 1);
    CHECK(c.chunks == 1);
    CHECK(c.verdict == Verdict::fail);
    CHECK(c.largest_gap->gap == 2);
    CHECK(c.disagreement_rate() == 1);
    CHECK(!c.reference_perplexity.se);
    CHECK(!c.candidate_perplexity.se);
    CHECK(!c.nll_difference.se.iid);
    CHECK(!c.nll_difference.se.value());
    CHECK(!c.nll_difference.p);
    CHECK(!c.nll_difference.interval);
    CHECK(!c.nll_difference.t);
    CHECK(c.logit_delta.p50 == 2.75);
    CHECK(c.logit_delta.mean_signed == -2.75);
    CHECK(!contains(describe(c), "nan"));
}

TEST_CASE("decided is inclusive") {
    for (const double t : {2.0, 0.1, 0.3, 0x1.000001p0, 5e-324, largest}) {
        CAPTURE(t);
        const Traces<> traces(one_position(t, 0, 2));
        CHECK(traces.compared({.decided_gap = t}).verdict == Verdict::fail);
        const double above = std::nextafter(t, infinity);
        if (above < infinity) { CHECK(traces.compared({.decided_gap = above}).verdict == Verdict::inconclusive); }
        CHECK(traces.compared({.decided_gap = std::nextafter(t, 0.0)}).verdict == Verdict::fail);
    }
}

TEST_CASE("verdicts") {
    using logitstat::verdict_of;
    CHECK(verdict_of(0, {2, 0, 0}, false) == Verdict::identical);
    CHECK(verdict_of(0, {2, 5, 0}, false) == Verdict::identical);
    CHECK(verdict_of(1, {2, 0, 0}, false) == Verdict::inconclusive);
    CHECK(verdict_of(1, {2, 1, 0}, false) == Verdict::pass);
    CHECK(verdict_of(1, {2, 1, 1}, false) == Verdict::fail);
    // allowed mismatches
    CHECK(verdict_of(9, {2, 50, 3}, false, {.max_mismatches = 3}) == Verdict::pass);
    CHECK(verdict_of(9, {2, 50, 4}, false, {.max_mismatches = 3}) == Verdict::fail);
    // evidence asked for: it makes a pass inconclusive, and an agreement that is not equality; a fail stays one
    CHECK(verdict_of(1, {2, 9, 0}, false, {.min_decided = 10}) == Verdict::inconclusive);
    CHECK(verdict_of(1, {2, 10, 0}, false, {.min_decided = 10}) == Verdict::pass);
    CHECK(verdict_of(0, {2, 9, 0}, false, {.min_decided = 10}) == Verdict::inconclusive);
    CHECK(verdict_of(0, {2, 10, 0}, false, {.min_decided = 10}) == Verdict::identical);
    CHECK(verdict_of(0, {2, 0, 0}, true, {.min_decided = 10}) == Verdict::identical);
    CHECK(verdict_of(1, {2, 9, 1}, false, {.min_decided = 10}) == Verdict::fail);
    CHECK(verdict_of(1, {2, 0, 0}, false, {.min_decided = 0}) == Verdict::inconclusive);
    // 0 of 274 excludes 1.088 % at 95 % (R: 1 - 0.05^(1/274) = 0.010873778) and 0.84 % at 90 % (0.0083684)
    const logitstat::confidence_level usual(0.95), loose(0.9);
    CHECK(verdict_of(1, {2, 274, 0}, false, {.max_rate = 0.0109}, usual) == Verdict::pass);
    CHECK(verdict_of(1, {2, 274, 0}, false, {.max_rate = 0.0108}, usual) == Verdict::inconclusive);
    CHECK(verdict_of(1, {2, 274, 0}, false, {.max_rate = 0.0085}, loose) == Verdict::pass);
    CHECK(verdict_of(0, {2, 274, 0}, false, {.max_rate = 0.0108}, usual) == Verdict::inconclusive);
    CHECK(verdict_of(5, {2, 1000, 2}, false, {.max_mismatches = 2, .max_rate = 0.0063}, usual) == // bound 0.62829 %
          Verdict::pass); // R: qbeta(.95, 3, 998)
    CHECK(verdict_of(5, {2, 1000, 2}, false, {.max_mismatches = 2, .max_rate = 0.0062}, usual) ==
          Verdict::inconclusive);
    for (const logitstat::VerdictRules& bad : {logitstat::VerdictRules{.max_mismatches = -1},
                                               {.min_decided = -1},
                                               {.max_rate = 0.0},
                                               {.max_rate = 1.5},
                                               {.max_rate = not_a_number}}) {
        CHECK_THROWS_AS(verdict_of(1, {2, 5, 0}, false, bad), std::invalid_argument);
    }
    CHECK(logitstat::exit_code(Verdict::identical) == 0);
    CHECK(logitstat::exit_code(Verdict::pass) == 0);
    CHECK(logitstat::exit_code(Verdict::fail) == 1);
    CHECK(logitstat::exit_code(Verdict::inconclusive) == 3);
    CHECK(to_string(Verdict::identical) == "identical");
    CHECK(to_string(Verdict::pass) == "pass");
    CHECK(to_string(Verdict::fail) == "fail");
    CHECK(to_string(Verdict::inconclusive) == "inconclusive");
}

TEST_CASE("verdicts at the limits of their rules") {
    using logitstat::verdict_of;
    CHECK(logitstat::VerdictRules{}.max_mismatches == 0);
    CHECK(logitstat::VerdictRules{}.min_decided == 1);
    // Two decided positions asked for are evidence beyond the default, also of arms that agree everywhere.
    CHECK(verdict_of(0, {2, 1, 0}, false, {.min_decided = 2}) == Verdict::inconclusive);
    CHECK(verdict_of(0, {2, 2, 0}, false, {.min_decided = 2}) == Verdict::identical);
    CHECK(verdict_of(0, {2, 0, 0}, false, {.min_decided = 1}) == Verdict::identical);
    // A rate of 1 is excluded by any agreement, and may be asked for; the level is 95 % unless stated.
    CHECK(verdict_of(1, {2, 10, 0}, false, {.max_rate = 1.0}) == Verdict::pass);
    const double bound = 1 - std::pow(0.05, 0.1); // of 0 in 10
    CHECK(verdict_of(1, {2, 10, 0}, false, {.max_rate = bound + 1e-9}) == Verdict::pass);
    CHECK(verdict_of(1, {2, 10, 0}, false, {.max_rate = bound - 1e-9}) == Verdict::inconclusive);
    // What is no verdict must not read as one.
    CHECK(logitstat::exit_code(static_cast<Verdict>(99)) == 2);
    CHECK(to_string(static_cast<Verdict>(99)) == "unknown");
}

TEST_CASE("what compare() does unless told otherwise") {
    const CompareOptions options;
    CHECK(options.decided_gap == 2);
    CHECK(options.thresholds == std::vector<double>{0.5, 1, 2});
    CHECK(options.ulps == std::vector<double>{1, 2, 4});
    CHECK_FALSE(options.storage);
    CHECK(options.confidence.value() == 0.95);
    CHECK(options.worst == 0);
    CHECK_FALSE(options.quantiles);
    CHECK_FALSE(options.hac.lag);
    CHECK_FALSE(options.hac.stop_at_chunk_borders);
    CHECK(options.bootstrap.replicates == 2000);
    CHECK(options.bootstrap.seed == 1);
    CHECK(options.non_finite == non_finite_policy::error);
    CHECK_FALSE(options.step_curve);
    CHECK_FALSE(options.strict);
}

TEST_CASE("rates of nothing do not exist") {
    CHECK(!logitstat::DecidedCount{}.rate());
    CHECK(!logitstat::Accuracy{}.rate());
    CHECK(logitstat::DecidedCount{1, 4, 1}.rate() == 0.25);
    CHECK(logitstat::Accuracy{1, 4}.rate() == 0.25);
}

TEST_CASE_TEMPLATE("non-finite input: an error that names arm, column and position, or left out and counted", Real,
                   float, double) {
    const Pair pair = small_pair(5, 40, 3);
    const Traces<Real> good(pair);
    for (const Real bad :
         {static_cast<Real>(not_a_number), -static_cast<Real>(not_a_number), static_cast<Real>(infinity),
          -static_cast<Real>(infinity), std::numeric_limits<Real>::signaling_NaN()}) {
        for (const bool in_reference : {true, false}) {
            for (std::size_t column = 0; column <= 3; ++column) { // the NLL, then the planes of logits
                for (const std::size_t at : Sizes{0, 17, 39}) {
                    CAPTURE(in_reference);
                    CAPTURE(column);
                    CAPTURE(at);
                    Traces<Real> spoilt = good;
                    auto& arm = in_reference ? spoilt.reference : spoilt.candidate;
                    (column == 0 ? arm.nll[at] : arm.top_logits[(column - 1) * 40 + at]) = bad;
                    const auto message = error_of<std::invalid_argument>([&] { spoilt.compared(); });
                    CHECK(contains(message, in_reference ? "reference" : "candidate"));
                    CHECK(contains(message, "position " + std::to_string(at) + " "));
                    CHECK(contains(message, column == 0 ? "nll" : "logit of rank " + std::to_string(column)));

                    Pair cleaned = pair;
                    cleaned.reference.erase(cleaned.reference.begin() + static_cast<std::ptrdiff_t>(at));
                    cleaned.candidate.erase(cleaned.candidate.begin() + static_cast<std::ptrdiff_t>(at));
                    const Comparison skipped =
                        spoilt.compared({.worst = 4, .non_finite = non_finite_policy::skip, .step_curve = true});
                    CHECK(skipped.skipped_non_finite == 1);
                    Comparison expected = Traces<Real>(cleaned).compared({.worst = 4, .step_curve = true});
                    const auto restore = [&](std::size_t& index) { index += index >= at ? 1 : 0; };
                    if (expected.largest_gap) { restore(expected.largest_gap->index); }
                    for (auto& d : expected.worst) { restore(d.index); }
                    restore(expected.nll_difference.largest_index);
                    CHECK(describe(skipped) == describe(expected));
                }
            }
        }
    }
    CHECK(good.compared({.non_finite = non_finite_policy::skip}).skipped_non_finite == 0);
    CHECK(describe(good.compared({.non_finite = non_finite_policy::skip})) == describe(good.compared()));
}

TEST_CASE("skipping: both arms' bad positions, each counted once, and nothing left is an error") {
    Traces<> traces(small_pair());
    traces.reference.nll[3] = not_a_number;
    traces.candidate.nll[3] = infinity;
    traces.candidate.top_logits[40 + 8] = not_a_number;
    CHECK(traces.compared({.non_finite = non_finite_policy::skip}).skipped_non_finite == 2);
    const Comparison skipped = traces.compared({.non_finite = non_finite_policy::skip});
    CHECK(skipped.reference_non_finite == 1);
    CHECK(skipped.candidate_non_finite == 2);
    // What only the candidate cannot compute is a change of its own: a warning, and with `strict` an error.
    REQUIRE(skipped.warnings.size() == 1);
    CHECK(skipped.warnings[0] == "the candidate has non-finite values at 1 position where the reference has none");
    CHECK_THROWS_AS(traces.compared({.non_finite = non_finite_policy::skip, .strict = true}),
                    logitstat::not_comparable);
    for (double& x : traces.reference.nll) { x = not_a_number; }
    CHECK_THROWS_AS(traces.compared({.non_finite = non_finite_policy::skip}), std::invalid_argument);
}

TEST_CASE("skipping: what is left over never stands for all data, so a verdict still asks for its evidence") {
    Traces<> traces(small_pair());
    traces.candidate = traces.reference;
    CHECK(traces.compared({.rules = {.min_decided = 1000}}).verdict == logitstat::Verdict::identical); // all are equal
    for (std::size_t i = 1; i < traces.candidate.nll.size(); ++i) { traces.candidate.nll[i] = not_a_number; }
    const Comparison one = traces.compared({.non_finite = non_finite_policy::skip});
    CHECK(one.positions == 1);
    CHECK(!one.identical_data);
    CHECK(traces.compared({.rules = {.min_decided = 1000}, .non_finite = non_finite_policy::skip}).verdict ==
          logitstat::Verdict::inconclusive);
}

TEST_CASE("a trace whose file was cut meanwhile gives no result, whichever arm it is") {
    struct Cut : Trace<double> {
        void require_whole() const { throw logitstat::io_error("cut.safetensors", "became shorter"); }
    };
    const auto trace = Traces<>(small_pair()).reference;
    const Cut cut{trace};
    CHECK_NOTHROW(compare(trace, trace));
    CHECK_THROWS_AS(compare(cut, trace), logitstat::io_error);
    CHECK_THROWS_AS(compare(trace, cut), logitstat::io_error);
}

TEST_CASE("no positions are an error of the comparison, and zero for the counts") {
    const auto empty = Trace<double>::with_shape(0, 2);
    CHECK_THROWS_AS(compare(empty, empty), std::invalid_argument);
    CHECK(logitstat::count_disagreements(empty, empty) == 0);
    CHECK(logitstat::gaps(empty).empty());
    CHECK(logitstat::step_curve(empty, empty).steps.empty());
    CHECK(logitstat::step_curve(empty, empty).at(0).positions == 0);
    CHECK(!logitstat::perplexity(empty));
    CHECK(!logitstat::accuracy(empty).rate());
    CHECK(logitstat::logit_delta(empty, empty).count == 0);
}

TEST_CASE("shapes that do not fit") {
    const Traces<> good(small_pair());
    const auto refuses = [&](auto change, const std::string& names) {
        for (const bool in_reference : {true, false}) {
            Traces<> bad = good;
            change(in_reference ? bad.reference : bad.candidate);
            const auto message = error_of<std::invalid_argument>([&] { bad.compared(); });
            CHECK(contains(message, in_reference ? "reference" : "candidate"));
            CHECK(contains(message, names));
        }
    };
    refuses([](auto& t) { t.chunk.pop_back(); }, "chunk");
    refuses([](auto& t) { t.pos.push_back(0); }, "pos");
    refuses([](auto& t) { t.target.clear(); }, "target");
    refuses([](auto& t) { t.top_ids.pop_back(); }, "top_ids");
    refuses([](auto& t) { t.top_logits.push_back(0); }, "top_logits");
    refuses([](auto& t) { t.k = 3; }, "top_ids");
    refuses([](auto& t) { t.k = 1; }, "k is 1");
    refuses([](auto& t) { t.k = 0; }, "k is 0");

    const auto shorter = Trace<double>::with_shape(39, 4);
    CHECK_THROWS_AS(logitstat::count_disagreements(good.reference, shorter), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::disagreements(good.reference, shorter), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::disagreement_positions(good.reference, shorter), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::nll_differences(good.reference, shorter), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::logit_deltas(good.reference, shorter), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::decided_mismatches(good.reference, shorter, 1), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::step_curve(good.reference, shorter), std::invalid_argument);
}

TEST_CASE("other tokens or positions are not comparable, and the first difference is named") {
    const Traces<> good(small_pair());
    const auto refuses = [&](auto change) {
        Traces<> bad = good;
        change(bad.candidate);
        return error_of<logitstat::not_comparable>([&] { bad.compared(); });
    };
    CHECK(contains(refuses([](auto& t) { t.target[7] += 1, t.target[9] += 1; }), "position 7:"));
    CHECK(contains(refuses([](auto& t) { t.pos[0] += 1; }), "position 0:"));
    CHECK(contains(refuses([](auto& t) { t.chunk[39] += 1; }), "position 39:"));
    Pair longer = small_pair();
    longer.candidate.push_back(longer.candidate.back());
    longer.candidate.back().pos = 1234;
    const auto message = error_of<logitstat::not_comparable>([&] { Traces<>(longer).compared(); });
    CHECK(contains(message, "40 positions"));
    CHECK(contains(message, "the reference lacks is"));
    CHECK(contains(message, "pos 1234"));
}

TEST_CASE("thresholds must be finite and not negative") {
    const Traces<> traces(small_pair());
    for (const double bad : {-1.0, -5e-324, not_a_number, -not_a_number, infinity, -infinity}) {
        CHECK_THROWS_AS(traces.compared({.decided_gap = bad}), std::invalid_argument);
        CHECK_THROWS_AS(traces.compared({.thresholds = {1.0, bad}}), std::invalid_argument);
        CHECK_THROWS_AS(logitstat::decided_mismatches(traces.reference, traces.candidate, bad), std::invalid_argument);
        CHECK_THROWS_AS(logitstat::step_curve(traces.reference, traces.candidate).at(bad), std::invalid_argument);
    }
    CHECK(traces.compared({.thresholds = {-0.0}}).sweep.at(0).positions == 40); // -0.0 is 0
    CHECK(traces.compared({.thresholds = {largest}}).sweep.at(0).positions == 0);
}

TEST_CASE("a gap that overflows is an error, not an infinite figure") {
    const Pair pair = one_position(1e308, -1e308);
    const Traces<> traces(pair);
    const auto message = error_of<std::invalid_argument>([&] { traces.compared(); });
    CHECK(contains(message, "position 0"));
    CHECK_THROWS_AS(logitstat::gaps(traces.reference), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::step_curve(traces.reference, traces.candidate), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::decided_mismatches(traces.reference, traces.candidate, 1), std::invalid_argument);
    CHECK(Traces<>(one_position(1e308, 0.9e308)).compared().decided.positions == 1);
    // Floats are widened first: their gap cannot overflow.
    const Traces<float> floats(one_position(std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()));
    CHECK(logitstat::gaps(floats.reference).at(0) == 2.0 * std::numeric_limits<float>::max());
}

TEST_CASE("a logit delta that overflows is an error too") {
    Traces<> traces(one_position(1e308, 0.9e308));
    traces.candidate.top_logits = {-1e308, -1.1e308};
    CHECK_THROWS_AS(traces.compared(), std::invalid_argument);
}

TEST_CASE("logits that do not descend are refused, and the position is named") {
    for (const std::size_t at : Sizes{0, 1, 39}) {
        Traces<> traces(small_pair());
        std::swap(traces.reference.top_logits[at], traces.reference.top_logits[40 + at]);
        traces.reference.top_logits[40 + at] += 1;
        const auto message = error_of<std::invalid_argument>([&] { traces.compared(); });
        CHECK(contains(message, "position " + std::to_string(at) + ":"));
        const std::vector<std::size_t> positions{at};
        CHECK_THROWS_AS(logitstat::worst_disagreements(traces.reference, traces.candidate, positions, 1),
                        std::invalid_argument);
    }
}

TEST_CASE_TEMPLATE("zeros of either sign are a gap of zero, decided at 0", Real, float, double) {
    for (const double best : {0.0, -0.0}) {
        for (const double second : {0.0, -0.0}) {
            const Traces<Real> traces(one_position(best, second, 2));
            const Comparison c =
                traces.compared({.decided_gap = 0, .thresholds = {0.0, -0.0, 5e-324}, .step_curve = true});
            CHECK(c.verdict == Verdict::fail);
            CHECK(c.decided.positions == 1);
            CHECK(c.sweep.at(0).mismatches == 1);
            CHECK(c.sweep.at(1).mismatches == 1);
            CHECK(c.sweep.at(2).positions == 0);
            CHECK(c.hard_ties == 1);
            CHECK(c.curve->steps.size() == 1);
            CHECK(c.curve->at(0).mismatches == 1);
            CHECK(c.largest_gap->gap == 0);
        }
    }
}

TEST_CASE("the order of positions does not matter, except to names and rounding") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Pair pair = oracle::random_pair(random);
        Pair shuffled = pair;
        for (std::size_t i = pair.size(); i > 1; --i) {
            const std::size_t j = random.below(i);
            std::swap(shuffled.reference[i - 1], shuffled.reference[j]);
            std::swap(shuffled.candidate[i - 1], shuffled.candidate[j]);
        }
        const CompareOptions options{.thresholds = oracle::random_thresholds(random, pair), .step_curve = true};
        Comparison a = Traces<>(pair).compared(options), b = Traces<>(shuffled).compared(options);
        CHECK(a.chunks == pair.chunks());
        CHECK(a.largest_gap.has_value() == b.largest_gap.has_value());
        if (a.largest_gap) { CHECK(a.largest_gap->gap == b.largest_gap->gap); }
        for (auto [x, y] : {std::pair(a.reference_perplexity, b.reference_perplexity),
                            std::pair(a.candidate_perplexity, b.candidate_perplexity)}) {
            CHECK(close(x.value, y.value, 1e-13L));
            CHECK(close(x.se, y.se, 1e-13L));
        }
        CHECK(close(a.nll_difference.mean, b.nll_difference.mean, 1e-13L));
        CHECK(close(a.nll_difference.se.iid, b.nll_difference.se.iid, 1e-13L));
        CHECK(close(a.logit_delta.mean_signed, b.logit_delta.mean_signed, 1e-13L));
        CHECK(a.nll_difference.largest == b.nll_difference.largest);
        for (Comparison* c : {&a, &b}) { // all that is left must be the same to the last bit
            c->chunks = 0;
            c->largest_gap.reset();
            c->reference_perplexity = c->candidate_perplexity = {};
            c->logit_delta.mean_signed.reset();
            auto& d = c->nll_difference;
            d.mean = d.perplexity_ratio = d.perplexity_percent = 0;
            d.se = {};
            d.largest_index = 0;
        }
        CHECK(describe(a) == describe(b));
    }
}

TEST_CASE("logits and thresholds in another unit give the same counts") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Pair pair = oracle::random_pair(random);
        Traces<> traces(pair), doubled(pair);
        CompareOptions options{.thresholds = oracle::random_thresholds(random, pair), .worst = 5, .step_curve = true};
        const Comparison a = traces.compared(options);
        for (auto* trace : {&doubled.reference, &doubled.candidate}) {
            for (double& x : trace->top_logits) { x *= 2; }
        }
        for (double& t : options.thresholds) { t *= 2; }
        options.decided_gap *= 2;
        Comparison b = doubled.compared(options);
        b.decided.threshold /= 2;
        for (auto& d : b.sweep) { d.threshold /= 2; }
        for (auto& d : b.curve->steps) { d.threshold /= 2; }
        if (b.largest_gap) { b.largest_gap->gap /= 2; }
        for (auto& d : b.worst) { d.gap /= 2; }
        for (auto* x : {&b.logit_delta.p50, &b.logit_delta.p90, &b.logit_delta.p99, &b.logit_delta.max,
                        &b.logit_delta.mean_signed}) {
            if (*x) { **x /= 2; }
        }
        CHECK(describe(a) == describe(b)); // powers of two scale without rounding
    }
}

TEST_CASE("swapping the arms turns the signed figures round") {
    Random random(3);
    const Pair pair = oracle::random_pair(random, {.n = 500, .k = 5});
    const Traces<> t(pair);
    const Comparison a = t.compared(), b = compare(t.candidate, t.reference);
    CHECK(a.disagreements == b.disagreements);
    CHECK(a.nll_difference.mean == -b.nll_difference.mean);
    CHECK(a.nll_difference.se.iid == b.nll_difference.se.iid);
    CHECK(a.nll_difference.se.hac == b.nll_difference.se.hac);
    CHECK(a.nll_difference.p == b.nll_difference.p);
    CHECK(a.nll_difference.higher == b.nll_difference.lower);
    CHECK(a.reference_accuracy.correct == b.candidate_accuracy.correct);
    CHECK(a.reference_perplexity.value == b.candidate_perplexity.value);
}

TEST_CASE("metadata and warnings are carried, in order; strict makes them an error") {
    Traces<> traces(small_pair());
    traces.reference.source.path = "r.tsv";
    traces.reference.source.skipped = "loading\nloaded\n";
    traces.reference.source.warnings = {"from the reference"};
    traces.reference.source.metadata.add({"chunks", "2", "prefill", "64"});
    traces.reference.source.metadata.add({"model", "one"});
    traces.candidate.source.path = "c.tsv";
    traces.candidate.source.warnings = {"from the candidate"};
    traces.candidate.source.metadata.add({"chunks", "2", "prefill", "1"});
    traces.candidate.source.metadata.add({"model", "another"}); // what users compare: no warning
    const Comparison c = traces.compared();
    CHECK(c.reference.path == "r.tsv");
    CHECK(c.reference.skipped == "loading\nloaded\n");
    CHECK(c.reference.metadata == traces.reference.source.metadata);
    CHECK(c.candidate.path == "c.tsv");
    CHECK(c.candidate.metadata == traces.candidate.source.metadata);
    REQUIRE(c.warnings.size() == 3);
    CHECK(c.warnings[0] == "from the reference");
    CHECK(c.warnings[1] == "from the candidate");
    CHECK(contains(c.warnings[2], "prefill"));
    const auto message = error_of<logitstat::not_comparable>([&] { traces.compared({.strict = true}); });
    for (const auto& warning : c.warnings) { CHECK(contains(message, warning)); }
    CHECK(std::count(message.begin(), message.end(), '\n') == 2);

    // Also where positions are skipped; and a view has no source, so nothing to warn of.
    traces.candidate.nll[0] = not_a_number;
    const Comparison skipped = traces.compared({.non_finite = non_finite_policy::skip});
    CHECK(skipped.reference.path == "r.tsv");
    REQUIRE(skipped.warnings.size() == 4);
    CHECK(std::equal(c.warnings.begin(), c.warnings.end(), skipped.warnings.begin()));
    const Comparison viewed = compare(traces.reference.view(), traces.reference.view(), {.strict = true});
    CHECK(viewed.warnings.empty());
    CHECK(viewed.reference.path.empty());
    CHECK(viewed.verdict == Verdict::identical);
}

TEST_CASE("a type of one's own with real_type and view() is a trace") {
    struct Mine {
        using real_type = float;
        Trace<float> inside;
        logitstat::TraceView<float> view() const { return inside.view(); }
    };
    const Traces<float> traces(one_position(3, 1, 2));
    const Mine reference{traces.reference}, candidate{traces.candidate};
    CHECK(describe(compare(reference, candidate)) == describe(traces.compared()));
}

TEST_CASE("a result that nothing was put into says nothing") {
    const logitstat::Comparison c;
    CHECK(c.positions == 0);
    CHECK(c.skipped_non_finite == 0);
    CHECK(c.reference_non_finite == 0);
    CHECK(c.candidate_non_finite == 0);
    CHECK(c.chunks == 0);
    CHECK(c.reference_k == 0);
    CHECK(c.candidate_k == 0);
    CHECK(c.vocabulary == 0);
    CHECK(c.has_targets);
    CHECK(c.disagreements == 0);
    CHECK(c.storage_inferred);
    CHECK(c.hard_ties == 0);
    CHECK(c.candidate_ties == 0);
    CHECK(c.verdict == Verdict::inconclusive);
    CHECK_FALSE(c.identical_data);
    CHECK(c.decided == logitstat::DecidedCount{0, 0, 0});
    CHECK(c.confidence.value() == 0.95);
    CHECK(c.disagreements_clustered.design_effect == 1);
    CHECK(c.disagreements_clustered.effective_size == 0);
    CHECK(c.disagreements_clustered.interval == logitstat::Interval{0, 1});
    CHECK(c.disagreements_clustered.upper_bound == 1);
    CHECK(c.reference_accuracy.correct == 0);
    CHECK(c.reference_accuracy.positions == 0);
    CHECK(c.mcnemar.both == 0);
    CHECK(c.mcnemar.only_reference == 0);
    CHECK(c.mcnemar.only_candidate == 0);
    CHECK(c.mcnemar.neither == 0);
    CHECK(c.mcnemar.p == 1);
    CHECK(c.logit_delta.count == 0);
    CHECK(c.reference_perplexity.value == 0);
    CHECK(c.reference_perplexity.mean_nll == 0);
    const logitstat::NllDifference& d = c.nll_difference;
    CHECK(d.mean == 0);
    CHECK(d.perplexity_ratio == 1);
    CHECK(d.perplexity_percent == 0);
    CHECK(d.higher == 0);
    CHECK(d.lower == 0);
    CHECK(d.equal == 0);
    CHECK(d.sign_test_p == 1);
    CHECK(d.largest == 0);
    CHECK(d.largest_index == 0);
    CHECK(d.se.n == 0);
    CHECK(d.se.clusters == 0);
    CHECK(d.se.lag == 0);

    const logitstat::Disagreement at;
    CHECK(at.index == 0);
    CHECK(at.chunk == 0);
    CHECK(at.pos == 0);
    CHECK(at.target == 0);
    CHECK(at.reference_token == 0);
    CHECK(at.candidate_token == 0);
    CHECK(at.gap == 0);
    CHECK(logitstat::Interval{} == logitstat::Interval{0, 0});
    CHECK(logitstat::RankCount{} == logitstat::RankCount{std::nullopt, 0});
    CHECK(logitstat::PerplexityDifference{}.value == 0);
    CHECK(logitstat::Proportion{}.k == 0);
    CHECK(logitstat::Proportion{}.n == 0);
    CHECK(logitstat::Proportion{}.interval == logitstat::Interval{0, 1});
    CHECK(logitstat::Proportion{}.upper_bound == 1);
    CHECK_FALSE(logitstat::NoiseFigure{}.beyond);
}

TEST_CASE("a bootstrap of as many chunks as are drawn at most, and of one more") {
    auto trace = Trace<double>::with_shape(logitstat::most_drawn_chunks + 1, 2);
    for (std::size_t i = 0; i < trace.size(); ++i) {
        trace.chunk[i] = static_cast<std::int32_t>(i);
        trace.top_ids[trace.size() + i] = 1;
    }
    const CompareOptions options{.bootstrap = {.replicates = 2}};
    CHECK_FALSE(compare(trace, trace, options).ratio_bootstrap);
    std::vector<std::size_t> but_one(logitstat::most_drawn_chunks);
    std::iota(but_one.begin(), but_one.end(), std::size_t{0});
    const auto fewer = logitstat::subset(trace, but_one);
    CHECK(compare(fewer, fewer, options).ratio_bootstrap == logitstat::Interval{1, 1});
}

TEST_CASE("a position that is not finite in the reference is no news of the candidate") {
    Traces<> traces(small_pair());
    traces.reference.nll[3] = infinity;
    const Comparison c = traces.compared({.non_finite = non_finite_policy::skip});
    CHECK(c.reference_non_finite == 1);
    CHECK(c.candidate_non_finite == 0);
    CHECK(c.warnings.empty());
    for (double& x : traces.reference.nll) { x = infinity; }
    CHECK(error_of<std::invalid_argument>([&] { traces.compared({.non_finite = non_finite_policy::skip}); }) ==
          "no position is finite in both arms");
}

TEST_CASE("what cannot be compared is named by its files, where there are any") {
    Traces<> traces(small_pair());
    traces.candidate.target[7] += 1;
    const auto message = [&] { return error_of<logitstat::not_comparable>([&] { traces.compared(); }); };
    const std::string plain = message();
    CHECK(plain.starts_with("not comparable"));
    traces.candidate.source.path = "c.tsv";
    CHECK(message() == "the reference and c.tsv are " + plain);
    traces.reference.source.path = "r.tsv";
    CHECK(message() == "r.tsv and c.tsv are " + plain);
}

} // namespace test_compare

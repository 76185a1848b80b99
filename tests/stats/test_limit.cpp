#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/compare.hpp"
#include "logitstat/report/json.hpp"
#include "logitstat/report/text.hpp"
#include "logitstat/stats/limit.hpp"

namespace test_limit {

using logitstat::Comparison;
using logitstat::Interval;
using logitstat::Limit;
using logitstat::limit_of;
using logitstat::Trace;
using logitstat::Verdict;
using logitstat::with_limits;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Two arms of one chunk with the same best tokens, the candidate's NLLs higher by what `rise` says.
Comparison compared(const std::vector<double>& rise, const logitstat::VerdictRules& rules) {
    Trace<double> reference;
    reference.k = 2;
    for (std::size_t i = 0; i < rise.size(); ++i) {
        reference.chunk.push_back(0);
        reference.pos.push_back(static_cast<int>(i));
        reference.target.push_back(3);
        reference.nll.push_back(1 + static_cast<double>(i));
        reference.top_ids.insert(reference.top_ids.end(), {3, 4});
        reference.top_logits.insert(reference.top_logits.end(), {9, 1});
    }
    Trace<double> candidate = reference;
    for (std::size_t i = 0; i < rise.size(); ++i) { candidate.nll[i] += rise[i]; }
    return logitstat::compare(reference, candidate, {.rules = rules});
}

} // namespace

TEST_CASE("it is the interval that is held against a limit") {
    CHECK(limit_of("x", 2, 1, Interval{0.5, 1.5}).verdict == Verdict::pass);
    CHECK(limit_of("x", 2, 1, Interval{0.5, 2}).verdict == Verdict::pass); // the limit itself is allowed
    CHECK(limit_of("x", 2, 1, Interval{0.5, 2.5}).verdict == Verdict::inconclusive);
    CHECK(limit_of("x", 2, 3, Interval{1.5, 4.5}).verdict == Verdict::inconclusive);
    CHECK(limit_of("x", 2, 3, Interval{2, 4}).verdict == Verdict::inconclusive);
    CHECK(limit_of("x", 2, 3, Interval{2.25, 4}).verdict == Verdict::fail);
    CHECK(limit_of("x", 2, 3, std::nullopt).verdict == Verdict::inconclusive); // one position says nothing
    CHECK(limit_of("x", 2, std::nullopt, std::nullopt).verdict == Verdict::inconclusive);
    CHECK(limit_of("x", 2, infinity, std::nullopt).verdict == Verdict::fail);
    CHECK(limit_of("x", 2, -infinity, std::nullopt).verdict == Verdict::pass);
    CHECK(limit_of("x", 2, infinity, Interval{-1, infinity}).verdict == Verdict::inconclusive); // only beyond double
    Limit doubted = limit_of("x", 2, 1, Interval{1, 1});
    logitstat::doubt(doubted, Verdict::fail, "no");
    CHECK(doubted.verdict == Verdict::pass);
    CHECK(doubted.caveat == "");
    logitstat::doubt(doubted, Verdict::pass, "yes");
    CHECK(doubted.verdict == Verdict::inconclusive);
    CHECK(doubted.caveat == "yes");
    CHECK(Limit{}.most == 0);
    CHECK(Limit{}.verdict == Verdict::inconclusive);
    CHECK_FALSE(Limit{}.fraction);
    CHECK_FALSE(limit_of("x", 2, 1, std::nullopt).fraction);
    CHECK(limit_of("x", 2, 1, std::nullopt, true).fraction);
    CHECK_THROWS_AS(limit_of("x", infinity, 1, std::nullopt), std::invalid_argument);
    CHECK_THROWS_AS(limit_of("x", std::nan(""), 1, std::nullopt), std::invalid_argument);
}

TEST_CASE("the worst of tokens and limits is the verdict") {
    const Limit pass = limit_of("x", 2, 1, Interval{1, 1}), fail = limit_of("x", 2, 3, Interval{3, 3}),
                unknown = limit_of("x", 2, 1, std::nullopt);
    const auto of = [](Verdict tokens, const std::vector<Limit>& limits, bool identical = false) {
        return with_limits(tokens, limits, identical);
    };
    for (const Verdict tokens : {Verdict::identical, Verdict::pass, Verdict::fail, Verdict::inconclusive}) {
        CHECK(of(tokens, {}) == tokens);
        CHECK(of(tokens, {pass, pass}) == tokens);
        CHECK(of(tokens, {pass, fail, unknown}) == Verdict::fail);
        CHECK(of(tokens, {unknown, pass}) == (tokens == Verdict::fail ? Verdict::fail : Verdict::inconclusive));
    }
    CHECK(of(Verdict::identical, {unknown}, true) == Verdict::identical);
}

TEST_CASE("a limit of the perplexity's increase") {
    // exp(0.125) - 1 = 0.13314845: a rise that does not vary has no error
    const std::vector<double> even(40, 0.125);
    const Comparison above = compared(even, {.max_perplexity_increase = 0.1331});
    CHECK(above.token_verdict == Verdict::identical);
    CHECK(above.verdict == Verdict::fail);
    REQUIRE(above.limits.size() == 1);
    CHECK(*above.limits[0].estimate == doctest::Approx(0.133148453).epsilon(1e-8));
    CHECK(compared(even, {.max_perplexity_increase = 0.1332}).verdict == Verdict::identical);
    CHECK(compared(even, {}).verdict == Verdict::identical);
    CHECK(compared(even, {}).limits.empty());
    // A mean of 0.125 with doubt: half the positions rise by 0.25.
    std::vector<double> uneven(40, 0.0);
    for (std::size_t i = 0; i < uneven.size(); i += 2) { uneven[i] = 0.25; }
    CHECK(compared(uneven, {.max_perplexity_increase = 0.13}).verdict == Verdict::inconclusive);
    CHECK(compared(uneven, {.max_perplexity_increase = 0.14}).verdict == Verdict::inconclusive);
    // R: expm1(0.125 + c(-1, 1) * qt(.975, 39) * 0.125 / sqrt(39)) is 0.088188 to 0.179967, by the iid error, which is
    // the larger one here
    CHECK(compared(uneven, {.max_perplexity_increase = 0.1800}).verdict == Verdict::identical);
    CHECK(compared(uneven, {.max_perplexity_increase = 0.1799}).verdict == Verdict::inconclusive);
    CHECK(compared(uneven, {.max_perplexity_increase = 0.0882}).verdict == Verdict::inconclusive);
    CHECK(compared(uneven, {.max_perplexity_increase = 0.0881}).verdict == Verdict::fail);
    CHECK(compared({0.0, 0.0}, {.max_perplexity_increase = 0}).verdict == Verdict::identical);
    CHECK(compared({0.5}, {.max_perplexity_increase = 9}).verdict == Verdict::inconclusive);
    CHECK_THROWS_AS(compared(even, {.max_perplexity_increase = -0.1}), std::invalid_argument);
    CHECK_THROWS_AS(compared(even, {.max_perplexity_increase = std::nan("")}), std::invalid_argument);
    CHECK_THROWS_AS(compared(even, {.max_kl = 1}), std::invalid_argument); // traces have none
}

TEST_CASE("data without any difference are within every limit, although one position has no interval") {
    const Comparison same = compared({0.0}, {.max_perplexity_increase = 0});
    REQUIRE(same.identical_data);
    CHECK_FALSE(same.nll_difference.interval.has_value());
    REQUIRE(same.limits.size() == 1);
    CHECK(same.limits[0].verdict == Verdict::pass);
    CHECK(same.limits[0].caveat == "");
    CHECK(same.verdict == Verdict::identical);
    CHECK(compared({0.0, 0.1}, {.max_perplexity_increase = 0}).limits[0].verdict != Verdict::pass);
}

TEST_CASE("limits that make no sense are refused by name") {
    for (const double bad : {-1.0, std::nan(""), infinity}) {
        CHECK_THROWS_WITH_AS(logitstat::check_rules({.max_kl = bad}), doctest::Contains("max_kl: "),
                             std::invalid_argument);
        CHECK_THROWS_WITH_AS(logitstat::check_rules({.max_perplexity_increase = bad}),
                             doctest::Contains("max_perplexity_increase: "), std::invalid_argument);
    }
    CHECK_NOTHROW(logitstat::check_rules({.max_perplexity_increase = 0, .max_kl = 0}));
}

TEST_CASE("what only the candidate cannot say proves no pass") {
    Trace<double> reference;
    reference.k = 2;
    for (int i = 0; i < 20; ++i) {
        reference.chunk.push_back(0);
        reference.pos.push_back(i);
        reference.target.push_back(3);
        reference.nll.push_back(1 + i);
        reference.top_ids.insert(reference.top_ids.end(), {3, 4});
        reference.top_logits.insert(reference.top_logits.end(), {9, 1});
    }
    Trace<double> candidate = reference;
    candidate.nll[7] = infinity;
    const auto verdict = [&](double most) {
        return logitstat::compare(
            reference, candidate,
            {.rules = {.max_perplexity_increase = most}, .non_finite = logitstat::non_finite_policy::skip});
    };
    CHECK(verdict(5).verdict == Verdict::inconclusive);
    CHECK(verdict(5).limits[0].caveat == "positions where only the candidate is not finite are left out");
    reference.nll[7] = infinity; // in both: nothing to hold against the candidate
    CHECK(verdict(5).verdict == Verdict::identical);
    for (std::size_t i = 0; i < 20; ++i) { candidate.nll[i] += 2; }
    reference.nll[7] = 8;
    CHECK(verdict(5).verdict == Verdict::fail); // exp(2) - 1 = 6.39 without it, more with it
}

TEST_CASE("reports say which limit decided") {
    const Comparison c = compared(std::vector<double>(40, 0.125), {.max_perplexity_increase = 0.1});
    const auto json = logitstat::to_json(c);
    CHECK(json["verdict"] == "fail");
    CHECK(json["token_verdict"] == "identical");
    CHECK(json["limits"][0]["verdict"] == "fail");
    CHECK(json["limits"][0]["limit"] == 0.1);
    CHECK(json["rules"]["max_perplexity_increase"] == 0.1);
    const std::string text = logitstat::text_report(c);
    CHECK(
        text.find("verdict    FAIL: perplexity increase 13.315 % (13.315 to 13.315 %) is above the limit of 10.000 %\n"
                  "           every top-1 token agrees") != std::string::npos);
    CHECK(json["limits"][0]["estimate"] == doctest::Approx(0.133148453).epsilon(1e-8));
}

} // namespace test_limit

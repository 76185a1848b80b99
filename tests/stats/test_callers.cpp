#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/compare.hpp"

namespace test_callers {

// A caller's mistakes throw std::invalid_argument and read nothing beyond a column.

namespace {

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();
const std::vector<double> first_threshold{0.5};

logitstat::Trace<double> two_positions() {
    auto trace = logitstat::Trace<double>::with_shape(2, 2);
    trace.chunk = {0, 1};
    trace.top_ids = {1, 1, 2, 2};
    trace.top_logits = {3, 3, 1, 1};
    return trace;
}

} // namespace

TEST_CASE("a k whose product with n overflows is refused") {
    const auto trace = two_positions();
    for (const std::size_t k : {huge / 2 + 1, huge / 2 + 3, huge}) {
        auto view = trace.view();
        view.k = k;
        CHECK_THROWS_AS(logitstat::compare(view, view), std::invalid_argument);
        view.top_ids = {};
        view.top_logits = {};
        CHECK_THROWS_AS(logitstat::compare(view, view), std::invalid_argument);
    }
}

TEST_CASE("short columns are refused by everything that walks them") {
    const auto trace = two_positions();
    auto view = trace.view();
    view.chunk = view.chunk.first(1);
    CHECK_THROWS_AS(logitstat::require_comparable(view, trace), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::subset(view, std::vector<std::size_t>{0}), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::finite_positions(view, trace), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::accuracy(view), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::perplexity(view), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::count_hard_ties(view), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::gaps(view), std::invalid_argument);
    view = trace.view();
    view.target = view.target.first(1); // which no figure of the NLLs needs
    CHECK_THROWS_AS(logitstat::perplexity(view), std::invalid_argument);
}

TEST_CASE("arms of different lengths are refused by everything that walks them") {
    const auto trace = two_positions();
    const auto longer = logitstat::Trace<double>::with_shape(3, 2);
    const std::vector<std::size_t> first{0};
    CHECK_THROWS_AS(logitstat::rank_distribution(trace, longer, first), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::count_candidate_ties(trace, longer, first), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::worst_disagreements(trace, longer, first, 1), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::perplexity_difference(trace, longer), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::perplexity_difference(longer, trace), std::invalid_argument);
    const std::vector<double> margins{1, 2};
    const std::vector<std::uint8_t> differs{1};
    CHECK_THROWS_AS(logitstat::margin_sweep(margins, differs, first_threshold), std::invalid_argument);
}

TEST_CASE("a sweep over margins refuses what is no threshold") {
    const std::vector<double> margins{1, 2};
    const std::vector<std::uint8_t> differs{1, 0};
    for (const double bad : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        const std::vector<double> thresholds{0.5, bad};
        CHECK_THROWS_AS(logitstat::margin_sweep(margins, differs, thresholds), std::invalid_argument);
    }
    CHECK(logitstat::margin_sweep(margins, differs, first_threshold).front() == logitstat::DecidedCount{0.5, 2, 1});
}

TEST_CASE("the error of a bad gap names its position, not that of a hard tie before it") {
    auto trace = two_positions();
    trace.top_logits = {3, 1, 3, 2}; // a tie, then 1 ahead of 2
    try {
        logitstat::gaps(trace);
        FAIL("a negative gap passed");
    } catch (const std::invalid_argument& error) {
        CHECK(std::string(error.what()).starts_with("position 1: the two best logits are 1 and 2"));
    }
}

TEST_CASE("positions beyond the trace are refused") {
    const auto trace = two_positions();
    const std::vector<std::size_t> beyond{0, 2};
    CHECK_THROWS_AS(logitstat::subset(trace, beyond), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::rank_distribution(trace, trace, beyond), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::count_candidate_ties(trace, trace, beyond), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::worst_disagreements(trace, trace, beyond, 1), std::invalid_argument);
}

TEST_CASE("NLLs without a finite difference are refused, naming the position") {
    auto low = two_positions(), high = two_positions();
    low.nll = {0, -1e308};
    high.nll = {0, 1e308};
    try {
        logitstat::compare(low, high);
        FAIL("compared");
    } catch (const std::invalid_argument& error) {
        CHECK(std::string(error.what()) == "position 1: the NLLs -1e+308 and 1e+308 have no finite difference");
    }
}

} // namespace test_callers

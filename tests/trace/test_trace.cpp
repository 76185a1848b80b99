#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/trace/eigen.hpp"
#include "logitstat/trace/finite.hpp"
#include "logitstat/trace/trace.hpp"

namespace test_trace {

using logitstat::Trace;
using logitstat::TraceView;

namespace {

/// n positions and k candidates whose figures all differ and say where they stand.
template <class Real> Trace<Real> numbered(std::size_t n, std::size_t k) {
    auto trace = Trace<Real>::with_shape(n, k);
    for (std::size_t i = 0; i < n; ++i) {
        trace.chunk[i] = static_cast<std::int32_t>(100 + i);
        trace.pos[i] = static_cast<std::int32_t>(200 + i);
        trace.target[i] = static_cast<std::int32_t>(300 + i);
        trace.nll[i] = static_cast<Real>(i) + Real(0.5);
        for (std::size_t j = 0; j < k; ++j) {
            trace.top_ids[j * n + i] = static_cast<std::int32_t>(1000 * (j + 1) + i);
            trace.top_logits[j * n + i] = static_cast<Real>(i) - static_cast<Real>(1000 * j);
        }
    }
    return trace;
}

template <class Action> std::string refusal(Action action) {
    try {
        action();
    } catch (const std::invalid_argument& e) { return e.what(); }
    return "";
}

/// A user's own type that statistics take: borrowed columns with a name.
struct Borrowed {
    using real_type = float;
    TraceView<float> columns;
    TraceView<float> view() const { return columns; }
};

} // namespace

static_assert(logitstat::trace_like<Trace<float>> && logitstat::trace_like<TraceView<double>>);
static_assert(logitstat::trace_like<Borrowed> && !logitstat::trace_like<std::vector<float>>);

TEST_CASE_TEMPLATE("a view shows the columns in place, plane by plane", Real, float, double) {
    const auto trace = numbered<Real>(5, 3);
    const auto view = trace.view();
    CHECK(trace.size() == 5);
    CHECK(view.size() == 5);
    CHECK(view.k == 3);
    CHECK(view.nll.data() == trace.nll.data());
    CHECK(view.chunk.data() == trace.chunk.data());
    CHECK(view.pos.data() == trace.pos.data());
    CHECK(view.target.data() == trace.target.data());
    for (std::size_t j = 0; j < 3; ++j) {
        CHECK(view.ids(j).data() == trace.top_ids.data() + 5 * j);
        CHECK(view.ids(j).size() == 5);
        CHECK(view.logits(j).data() == trace.top_logits.data() + 5 * j);
        CHECK(view.logits(j).size() == 5);
        CHECK(view.ids(j)[4] == static_cast<std::int32_t>(1000 * (j + 1) + 4));
    }
    CHECK(view.view().top_ids.data() == trace.top_ids.data());
    const auto empty = Trace<Real>::with_shape(0, 2);
    CHECK(empty.size() == 0);
    CHECK(empty.view().ids(1).empty());
}

TEST_CASE_TEMPLATE("with_shape fills with zeros", Real, float, double) {
    const auto trace = Trace<Real>::with_shape(4, 2);
    CHECK(trace.chunk == logitstat::Column<std::int32_t>(4, 0));
    CHECK(trace.pos == logitstat::Column<std::int32_t>(4, 0));
    CHECK(trace.target == logitstat::Column<std::int32_t>(4, 0));
    CHECK(trace.nll == logitstat::Column<Real>(4, 0));
    CHECK(trace.top_ids == logitstat::Column<std::int32_t>(8, 0));
    CHECK(trace.top_logits == logitstat::Column<Real>(8, 0));
    CHECK(trace.k == 2);
    CHECK(trace.source.path.empty());
}

TEST_CASE("check_shape names the column that has another length") {
    const auto good = numbered<double>(4, 3);
    const auto message = [](auto trace, auto change) {
        change(trace);
        return refusal([&] { logitstat::check_shape(trace, "candidate"); });
    };
    CHECK(message(good, [](auto&) {}) == "");
    CHECK(message(good, [](auto& t) { t.chunk.pop_back(); }) == "candidate: column chunk has 3 values, expected 4");
    CHECK(message(good, [](auto& t) { t.pos.push_back(0); }) == "candidate: column pos has 5 values, expected 4");
    CHECK(message(good, [](auto& t) { t.target.clear(); }) == "candidate: column target has 0 values, expected 4");
    CHECK(message(good, [](auto& t) { t.nll.pop_back(); }) == "candidate: column chunk has 4 values, expected 3");
    CHECK(message(good, [](auto& t) { t.top_ids.pop_back(); }) ==
          "candidate: column top_ids has 11 values, expected 12");
    CHECK(message(good, [](auto& t) { t.top_logits.push_back(0); }) ==
          "candidate: column top_logits has 13 values, expected 12");
    CHECK(message(good, [](auto& t) { t.k = 4; }) == "candidate: column top_ids has 12 values, expected 16");
    CHECK(message(good, [](auto& t) { t.k = 1; }) == "candidate: k is 1, at least 2 candidates are needed");
    CHECK(message(good, [](auto& t) { t.k = 0; }) == "candidate: k is 0, at least 2 candidates are needed");
    CHECK(message(numbered<float>(0, 2), [](auto&) {}) == "");
    CHECK(refusal([] { logitstat::check_shape(Trace<float>{}); }) == "trace: k is 0, at least 2 candidates are needed");
    CHECK(refusal([&] { logitstat::check_shape(good.view()); }) == "");
}

TEST_CASE_TEMPLATE("require_finite names column and position of every kind of non-finite value", Real, float, double) {
    using limits = std::numeric_limits<Real>;
    constexpr std::size_t n = 150, k = 3; // more than a block of the widest registers, and a remainder
    const auto good = numbered<Real>(n, k);
    CHECK(refusal([&] { logitstat::require_finite(good); }) == "");
    CHECK(refusal([&] { logitstat::require_finite(numbered<Real>(0, 2)); }) == "");
    auto extremes = good;
    extremes.nll[0] = limits::max();
    extremes.nll[1] = limits::lowest();
    extremes.nll[2] = limits::denorm_min();
    CHECK(refusal([&] { logitstat::require_finite(extremes); }) == "");
    for (const Real bad : {limits::quiet_NaN(), -limits::quiet_NaN(), limits::infinity(), -limits::infinity()}) {
        for (const std::size_t at : std::initializer_list<std::size_t>{0, 1, 31, 64, 127, 148, 149}) {
            const std::string where = " at position " + std::to_string(at) + " (chunk " + std::to_string(100 + at) +
                                      ", pos " + std::to_string(200 + at) + ")";
            auto trace = good;
            trace.nll[at] = bad;
            trace.nll[n - 1] = bad; // the first is named
            CHECK(refusal([&] { logitstat::require_finite(trace, "reference"); }) ==
                  "reference: non-finite nll" + where);
            for (std::size_t j = 0; j < k; ++j) {
                trace = good;
                trace.top_logits[j * n + at] = bad;
                CHECK(refusal([&] { logitstat::require_finite(trace); }) ==
                      "trace: non-finite logit of rank " + std::to_string(j + 1) + where);
            }
        }
    }
}

TEST_CASE("finite_positions are those that are finite in both arms") {
    constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    auto reference = numbered<float>(7, 3);
    auto candidate = numbered<double>(7, 2); // another type and another k
    using Positions = std::vector<std::size_t>;
    CHECK(logitstat::finite_positions(reference, candidate) == Positions{0, 1, 2, 3, 4, 5, 6});
    reference.nll[0] = nan;
    reference.top_logits[2 * 7 + 2] = -infinity; // the last plane
    candidate.nll[3] = -std::numeric_limits<double>::infinity();
    candidate.top_logits[1 * 7 + 6] = std::numeric_limits<double>::quiet_NaN();
    CHECK(logitstat::finite_positions(reference, candidate) == Positions{1, 4, 5});
    CHECK(logitstat::finite_positions(candidate, reference) == Positions{1, 4, 5});
    reference.nll.assign(7, infinity);
    CHECK(logitstat::finite_positions(reference, candidate).empty());
    CHECK(logitstat::finite_positions(numbered<float>(0, 2), numbered<float>(0, 2)).empty());
}

TEST_CASE_TEMPLATE("subset takes positions in the given order, with their source", Real, float, double) {
    auto trace = numbered<Real>(6, 3);
    trace.source.path = "a.tsv";
    trace.source.metadata.add({"model", "m"});
    const std::vector<std::size_t> positions{4, 0, 4};
    const auto chosen = logitstat::subset(trace, positions);
    CHECK(chosen.k == 3);
    CHECK(chosen.chunk == logitstat::Column<std::int32_t>{104, 100, 104});
    CHECK(chosen.pos == logitstat::Column<std::int32_t>{204, 200, 204});
    CHECK(chosen.target == logitstat::Column<std::int32_t>{304, 300, 304});
    CHECK(chosen.nll == logitstat::Column<Real>{Real(4.5), Real(0.5), Real(4.5)});
    CHECK(chosen.top_ids == logitstat::Column<std::int32_t>{1004, 1000, 1004, 2004, 2000, 2004, 3004, 3000, 3004});
    CHECK(chosen.top_logits == logitstat::Column<Real>{4, 0, 4, -996, -1000, -996, -1996, -2000, -1996});
    CHECK(chosen.source.path == "a.tsv");
    CHECK(chosen.source.metadata.find("model") == "m");
    logitstat::check_shape(chosen);

    const auto of_view = logitstat::subset(trace.view(), positions);
    CHECK(of_view.top_ids == chosen.top_ids);
    CHECK(of_view.source.path.empty());
    const auto none = logitstat::subset(trace, std::span<const std::size_t>{});
    CHECK(none.size() == 0);
    CHECK(none.k == 3);
    logitstat::check_shape(none);
}

TEST_CASE_TEMPLATE("columns and planes as Eigen arrays, in place", Real, float, double) {
    const auto trace = numbered<Real>(5, 3);
    const auto view = trace.view();
    const auto nll = logitstat::as_array(view.nll);
    CHECK(nll.data() == trace.nll.data());
    CHECK(nll.size() == 5);
    CHECK(nll.sum() == Real(12.5));
    CHECK((logitstat::as_array(view.logits(0)) - logitstat::as_array(view.logits(1)) == Real(1000)).all());
    CHECK(logitstat::as_array(view.target)(4) == 304);

    const auto planes = logitstat::as_planes(view.top_logits, view.k);
    CHECK(planes.data() == trace.top_logits.data());
    CHECK(planes.rows() == 5);
    CHECK(planes.cols() == 3);
    CHECK(planes(3, 2) == Real(-1997));
    CHECK(logitstat::as_planes(view.top_ids, view.k)(4, 1) == 2004);

    std::array<double, 3> own{1, 2, 3}; // a buffer of the user's that is not const
    CHECK(logitstat::as_array(std::span<double>(own)).data() == own.data());
    const Trace<Real> empty;
    CHECK(logitstat::as_array(empty.view().nll).size() == 0);
    CHECK(logitstat::as_planes(empty.view().top_logits, 0).size() == 0);
}

} // namespace test_trace

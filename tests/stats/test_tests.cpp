#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/holm.hpp"
#include "logitstat/stats/mcnemar.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/sign_test.hpp"
#include "logitstat/trace/trace.hpp"
#include "stats/close.hpp"
#include "stats/series.hpp"

namespace test_tests {

using namespace logitstat;
using expected::close;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
const confidence_level usual(0.95);

std::vector<double> holm(const std::vector<double>& p) { return holm_adjusted(p); }

Trace<double> best_tokens(const std::vector<token_id>& best, const std::vector<token_id>& target) {
    auto trace = Trace<double>::with_shape(best.size(), 2);
    std::copy(best.begin(), best.end(), trace.top_ids.begin());
    std::fill(trace.top_ids.begin() + static_cast<std::ptrdiff_t>(best.size()), trace.top_ids.end(), 1); // second best
    trace.target.assign(target.begin(), target.end());
    return trace;
}
} // namespace

TEST_CASE("the sign test against R") {
    // R: min(1, 2 * pbinom(min(a, b), a + b, 0.5)), which is binom.test(a, a + b)$p.value where that is quick
    struct Row {
        std::int64_t higher, lower;
        double p;
    };
    const Row rows[] = {
        {1, 0, 1},
        {1, 1, 1},
        {2, 1, 1},
        {5, 0, 0.0625},
        {66, 58, 0.52976940436526831},
        {58, 66, 0.52976940436526831},
        {10, 1, 0.011718750000000002},
        {3, 20, 0.00048828124999999962},
        {100, 50, 5.4475331033925765e-05},
        {0, 60, 1.7347234759768052e-18},
        {1000, 1100, 0.030720707864242414},
        {400, 1600, 2.2803404122142445e-169},
        {0, 1000, 1.8665272370065119e-301},
        {1000000, 1000001, 1},
        {1000000, 1003000, 0.034088365079439388},
        {1000000, 1020000, 5.6961956896788105e-45},
    };
    for (const Row& row : rows) {
        CAPTURE(row.higher);
        CAPTURE(row.lower);
        CHECK(close(sign_test_p(row.higher, row.lower), row.p, 1e-11));
        CHECK(sign_test_p(row.lower, row.higher) == sign_test_p(row.higher, row.lower));
    }
}

TEST_CASE("the sign test of nothing, of equal sides and of impossible counts") {
    CHECK(sign_test_p(0, 0) == 1);
    CHECK(sign_test_p(1, 1) == 1);
    CHECK(sign_test_p(1'000'000, 1'000'000) == 1);
    CHECK(sign_test_p(1'000'000'000, 1'000'000'000) == 1);
    CHECK(sign_test_p(0, 1'000'000'000) == 0); // far below the smallest double
    CHECK_THROWS_AS(sign_test_p(-1, 3), std::invalid_argument);
    CHECK_THROWS_AS(sign_test_p(3, -1), std::invalid_argument);
    for (std::int64_t n = 1; n <= 60; ++n) {
        for (std::int64_t k = 0; k <= n; ++k) {
            const double p = sign_test_p(k, n - k);
            CHECK(p > 0);
            CHECK(p <= 1);
            if (2 * (k + 1) <= n) { CHECK(p <= sign_test_p(k + 1, n - k - 1)); } // more even: no more significant
        }
    }
}

TEST_CASE("McNemar counts the four cells and tests the discordant ones") {
    // right (1) or wrong (0) at each position: both 3, only reference 4, only candidate 1, neither 2
    const std::vector<token_id> target{10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
    const std::vector<token_id> reference{10, 11, 12, 13, 14, 15, 16, 0, 0, 0};
    const std::vector<token_id> candidate{10, 11, 12, 0, 0, 0, 0, 17, 0, 5};
    const auto arm = [&](const std::vector<token_id>& best) { return best_tokens(best, target); };
    const McNemar table = mcnemar(arm(reference), arm(candidate));
    CHECK(table.both == 3);
    CHECK(table.only_reference == 4);
    CHECK(table.only_candidate == 1);
    CHECK(table.neither == 2);
    CHECK(close(table.p, 0.375, 1e-14)); // R: binom.test(4, 4 + 1)$p.value
    const McNemar swapped = mcnemar(arm(candidate), arm(reference));
    CHECK(swapped.only_reference == 1);
    CHECK(swapped.only_candidate == 4);
    CHECK(swapped.p == table.p);
    CHECK(mcnemar(arm(reference), arm(reference)).p == 1); // nothing discordant
    CHECK(mcnemar(arm(reference), arm(reference)).both == 7);
    CHECK(mcnemar(arm(reference), arm(reference)).neither == 3);

    const McNemar empty = mcnemar(best_tokens({}, {}), best_tokens({}, {}));
    CHECK(empty.both + empty.only_reference + empty.only_candidate + empty.neither == 0);
    CHECK(empty.p == 1);
    CHECK_THROWS_AS(mcnemar(arm(reference), best_tokens({1}, {1})), std::invalid_argument);

    std::vector<token_id> a(130, 2), b(130, 2);
    const std::vector<token_id> c(130, 1);
    std::fill(a.begin(), a.begin() + 66, 1);
    std::fill(b.begin() + 66, b.begin() + 124, 1);
    const McNemar many = mcnemar(best_tokens(a, c), best_tokens(b, c));
    CHECK(many.both == 0);
    CHECK(many.only_reference == 66);
    CHECK(many.only_candidate == 58);
    CHECK(many.neither == 6);
    CHECK(close(many.p, 0.52976940436526831, 1e-12)); // R: binom.test(66, 124)$p.value
}

TEST_CASE("Holm against R") {
    // R: p.adjust(p, "holm")
    CHECK(holm({}).empty());
    struct Row {
        std::vector<double> p, adjusted;
    };
    const Row rows[] = {
        {{0.01, 0.04, 0.03, 0.005}, {0.029999999999999999, 0.059999999999999998, 0.059999999999999998, 0.02}},
        {{0.02, 0.02, 0.02}, {0.059999999999999998, 0.059999999999999998, 0.059999999999999998}},
        {{0, 1, 0.5, 0.25}, {0, 1, 1, 0.75}},
        {{0.3, 0.001, 0.3, 0.001, 0.6, 1}, {1, 0.006, 1, 0.006, 1, 1}},
        {{0.7}, {0.69999999999999996}},
        {{0.01, 0.013, 0.5}, {0.029999999999999999, 0.029999999999999999, 0.5}}, // 2 x 0.013 is kept monotone
        {{1, 1, 1}, {1, 1, 1}},
        {{0, 0}, {0, 0}},
    };
    for (const Row& row : rows) {
        const std::vector<double> adjusted = holm(row.p);
        REQUIRE(adjusted.size() == row.p.size());
        for (std::size_t i = 0; i < adjusted.size(); ++i) {
            CAPTURE(i);
            CHECK(close(adjusted[i], row.adjusted[i], 1e-15));
            CHECK(adjusted[i] >= row.p[i]);
            for (std::size_t j = 0; j < adjusted.size(); ++j) {
                if (row.p[i] == row.p[j]) { CHECK(adjusted[i] == adjusted[j]); }
                if (row.p[i] < row.p[j]) { CHECK(adjusted[i] <= adjusted[j]); }
            }
        }
    }
    for (const double bad : {-1e-9, 1.0000001, not_a_number, infinity, -infinity}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(holm({0.5, bad}), std::invalid_argument);
    }
}

TEST_CASE("Student's t: p-value against R") {
    // R: 2 * pt(-abs(t), df)
    struct Row {
        double t, df, p;
    };
    const Row rows[] = {
        {2, 10, 0.073388034770740393},       {0.1, 5, 0.9242301411546604},       {1.0204, 123, 0.30954160886512405},
        {-3.5, 2, 0.072827350054469331},     {5, 1, 0.12566591637800234},        {12, 1000, 4.3240573867745026e-31},
        {40, 1000, 1.0478852155172875e-209}, {1e-09, 7, 0.99999999923001703},    {2, 0.5, 0.44551489018313128},
        {1.96, 1e+09, 0.049995790573729715}, {1e+06, 3, 2.2053155816792323e-18},
    };
    for (const Row& row : rows) {
        CAPTURE(row.t);
        CAPTURE(row.df);
        CHECK(close(student_p(row.t, 1, row.df), row.p, 1e-10));
        CHECK(close(student_p(row.t / 8, 0.125, row.df), row.p, 1e-10));
        CHECK(student_p(-row.t, 1, row.df) == student_p(row.t, 1, row.df));
    }
    CHECK(student_p(0, 0, 5) == 1); // nothing moved at all
    CHECK(student_p(-0.0, 1, 5) == 1);
    CHECK(student_p(1e-3, 0, 5) == 0);
    CHECK(student_p(-1e-3, 0, 5) == 0);
    CHECK(student_p(1e300, 1e-300, 5) == 0);
    CHECK_THROWS_AS(student_p(1, infinity, 5), std::invalid_argument);
    CHECK_THROWS_AS(student_p(not_a_number, 1, 5), std::invalid_argument);
}

TEST_CASE("Student's t: interval against R") {
    // R: qt((1-l)/2, df, lower.tail=FALSE) for l of 0.5, 0.95, 0.999999
    struct Row {
        double df, half, usual, narrow_tail;
    };
    const Row rows[] = {
        {1, 1, 12.706204736174694, 636619.77234875143},
        {2, 0.81649658092772592, 4.3026527297494619, 999.99924998546601},
        {10, 0.69981206131243168, 2.2281388519862739, 10.516489956882172},
        {29, 0.68304386082161339, 2.0452296421327034, 6.1700561014083002},
        {999, 0.67473541034671891, 1.9623414611334493, 4.9223203723607849},
        {0.5, 1.5537739740300793, 164.55767348049446, 411396462548.54517},
        {1e+09, 0.67448975044141657, 1.9599639869123249, 4.8916385061777774},
    };
    for (const Row& row : rows) {
        CAPTURE(row.df);
        const auto half = [&](double level) { return student_interval(0, 1, row.df, confidence_level(level)).hi; };
        CHECK(close(half(0.5), row.half, 1e-10));
        CHECK(close(half(0.95), row.usual, 1e-10));
        CHECK(close(half(0.999999), row.narrow_tail, 1e-9));
        CHECK(student_interval(0, 1, row.df, usual).lo == -student_interval(0, 1, row.df, usual).hi);
        CHECK(close(student_interval(3, 2, row.df, usual).hi, 3 + 2 * row.usual, 1e-10));
        CHECK(close(student_interval(3, 2, row.df, usual).lo, 3 - 2 * row.usual, 1e-10));
    }
    CHECK(student_interval(1.5, 0, 1, usual) == Interval{1.5, 1.5});
    CHECK_THROWS_AS(student_interval(1.5, infinity, 1, usual), std::invalid_argument);
}

TEST_CASE("Student's t: impossible arguments throw") {
    for (const double df : {0.0, -1.0, not_a_number, -infinity}) {
        CAPTURE(df);
        CHECK_THROWS_AS(student_interval(1, 1, df, usual), std::invalid_argument);
        CHECK_THROWS_AS(student_interval(1, 0, df, usual), std::invalid_argument);
        CHECK_THROWS_AS(student_p(1, 1, df), std::invalid_argument);
        CHECK_THROWS_AS(student_p(0, 0, df), std::invalid_argument);
    }
    for (const double se : {-1.0, -1e-300, not_a_number}) {
        CAPTURE(se);
        CHECK_THROWS_AS(student_interval(1, se, 3, usual), std::invalid_argument);
        CHECK_THROWS_AS(student_p(1, se, 3), std::invalid_argument);
    }
}

TEST_CASE("t-test of a mean against R") {
    // R: i <- 0:(n-1); x <- ((7*i*i + 3*i) %% 23 - 9) / 8
    //    t.test(x)$p.value; t.test(x)$conf.int
    //    mean(x) + c(-1, 1) * qt((1-0.999999)/2, n-1, lower.tail=FALSE) * sd(x) / sqrt(n)  # t.test rounds 1 - alpha /
    //    2
    struct Row {
        std::size_t n;
        double p, lo, hi, far_lo, far_hi;
    };
    const Row rows[] = {
        {2, 0.57044657495455475, -8.4413779601091843, 7.4413779601091834, -397887.85771796963, 397886.85771796963},
        {3, 0.6264563161811858, -2.1388024741419582, 1.6388024741419585, -439.23524378997081, 438.73524378997081},
        {7, 0.65316103118883739, -0.77211671357253353, 0.52211671357253353, -5.4269085073848036, 5.1769085073848036},
        {128, 0.064524004297295989, -0.0081239985854966411, 0.27374899858549662, -0.23343310912757398,
         0.49905810912757398},
        {1000, 9.0496583104255944e-07, 0.076348471241743668, 0.17690152875825629, 0.00051178950124966538,
         0.25273821049875034},
    };
    for (const Row& row : rows) {
        CAPTURE(row.n);
        const std::vector<double> x = series::take(row.n, series::spread);
        const Moments moments = moments_of(std::span<const double>(x));
        REQUIRE(moments.standard_error().has_value());
        const double se = *moments.standard_error(), df = static_cast<double>(row.n - 1);
        CHECK(close(student_p(moments.mean, se, df), row.p, 1e-11));
        const Interval interval = student_interval(moments.mean, se, df, usual);
        CHECK(close(interval.lo, row.lo, 1e-11));
        CHECK(close(interval.hi, row.hi, 1e-11));
        const Interval far = student_interval(moments.mean, se, df, confidence_level(0.999999));
        CHECK(close(far.lo, row.far_lo, 1e-9));
        CHECK(close(far.hi, row.far_hi, 1e-9));
    }
}

} // namespace test_tests

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/dot.hpp"

namespace test_dot {

using logitstat::simd::dot;
using logitstat::simd::is_finite;

namespace {

/// Small whole numbers: every sum of their products is exact, in any order.
double whole(std::size_t i) { return static_cast<double>((7 * i * i + 3 * i) % 23) - 9; }

} // namespace

TEST_CASE("dot is exact on whole numbers at every length and alignment, and reads nothing beyond") {
    std::vector<std::size_t> lengths;
    for (std::size_t n = 0; n <= 70; ++n) { lengths.push_back(n); }
    for (const std::size_t n : {127u, 128u, 511u, 512u, 513u, 520u, 1023u, 1024u, 1025u, 1031u, 5000u}) {
        lengths.push_back(n);
    }
    for (const std::size_t n : lengths) {
        for (std::size_t shift_a = 0; shift_a < 5; ++shift_a) {
            for (std::size_t shift_b = 0; shift_b < 5; ++shift_b) {
                // NaN before and after, so that a value read too far shows
                std::vector<double> a(n + 32, std::numeric_limits<double>::quiet_NaN()), b = a;
                double expected = 0;
                for (std::size_t i = 0; i < n; ++i) {
                    a[shift_a + i] = whole(i);
                    b[shift_b + i] = whole(i + 5) + 0.5;
                    expected += whole(i) * (whole(i + 5) + 0.5);
                }
                const double actual =
                    dot(std::span<const double>(a).subspan(shift_a, n), std::span<const double>(b).subspan(shift_b, n));
                CAPTURE(n);
                CAPTURE(shift_a);
                CAPTURE(shift_b);
                CHECK(is_finite(actual));
                CHECK(actual == expected);
            }
        }
    }
}

TEST_CASE("each position counts once: one pair of non-zeros among zeros") {
    for (const std::size_t n : {1u, 3u, 17u, 64u, 513u, 1030u}) {
        std::vector<double> a(n), b(n, 1.0);
        for (std::size_t i = 0; i < n; ++i) {
            a[i] = 3;
            b[i] = 7;
            CAPTURE(n);
            CAPTURE(i);
            CHECK(dot(a, b) == 21);
            a[i] = 0;
            b[i] = 1;
        }
    }
}

TEST_CASE("dot of a column with itself and with its shifted self") {
    std::vector<double> x(1000);
    for (std::size_t i = 0; i < x.size(); ++i) { x[i] = whole(i); }
    const std::span<const double> all(x);
    for (const std::size_t lag : {0u, 1u, 4u, 8u, 511u, 999u, 1000u}) {
        double expected = 0;
        for (std::size_t i = lag; i < x.size(); ++i) { expected += x[i] * x[i - lag]; }
        CAPTURE(lag);
        CHECK(dot(all.subspan(lag), all.first(x.size() - lag)) == expected);
    }
}

TEST_CASE("a million values keep 14 digits") {
    std::vector<double> a(1'000'003), b(a.size());
    long double expected = 0, magnitude = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = whole(i) / 7 + 1e3;
        b[i] = whole(i + 5) / 3;
        const long double product = static_cast<long double>(a[i]) * b[i];
        expected += product;
        magnitude += product < 0 ? -product : product;
    }
    const double actual = dot(a, b);
    CHECK(is_finite(actual));
    CHECK(std::fabs(static_cast<double>(actual - expected)) <= 1e-14 * static_cast<double>(magnitude));
}

} // namespace test_dot

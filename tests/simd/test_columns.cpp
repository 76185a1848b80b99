#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/columns.hpp"
#include "simd/padded.hpp"

namespace test_columns {

using logitstat::simd::count_different;
using logitstat::simd::first_difference;
using logitstat::simd::first_non_finite;
using logitstat::simd::is_finite;
using padded::for_each_placement;
using padded::Padded;
using padded::Random;
using padded::Sizes;
using padded::Special;

using Ints = std::vector<std::int32_t>;

namespace {

/// Reports only what is wrong: millions of checks that hold need no line each.
void expect_equal(auto actual, auto expected, std::size_t n, std::size_t shift) {
    if (actual != expected) {
        CAPTURE(n);
        CAPTURE(shift);
        CHECK(actual == expected);
    }
}

Ints random_ints(Random& random, std::size_t n, std::size_t distinct) {
    Ints values(n);
    for (auto& x : values) { x = static_cast<std::int32_t>(random.below(distinct)) - 1; }
    return values;
}

} // namespace

TEST_CASE("first_difference: none, though the surroundings differ, and at every place") {
    Random random(1);
    for_each_placement([&](std::size_t n, std::size_t shift) {
        const Ints values = random_ints(random, n, 1'000'000);
        const Padded<std::int32_t> a(values, shift, 1);
        Padded<std::int32_t> b(values, (shift * 7) % 16, 2);
        expect_equal(first_difference(a.span(), b.span()), n, n, shift);
        const std::size_t step = n <= 300 ? 1 : 97;
        for (std::size_t at = 0; at < n; at += step) {
            const std::int32_t kept = b.span()[at];
            b.span()[at] ^= std::int32_t{1} << (at % 31); // any bit counts
            expect_equal(first_difference(a.span(), b.span()), at, n, shift);
            if (at % 3 != 0) { b.span()[at] = kept; } // else a later difference must not be preferred
            if (at % 3 == 0) {
                b.span()[n - 1] ^= 1 << 30;
                if (at < n - 1) { expect_equal(first_difference(a.span(), b.span()), at, n, shift); }
                b.span()[n - 1] = values[n - 1];
                b.span()[at] = kept;
            }
        }
    });
}

TEST_CASE("count_different against a loop, few and many differences") {
    Random random(2);
    for_each_placement([&](std::size_t n, std::size_t shift) {
        for (const std::size_t distinct : Sizes{1, 2, 3, 1000}) {
            const Ints a = random_ints(random, n, distinct), b = random_ints(random, n, distinct);
            std::int64_t expected = 0;
            for (std::size_t i = 0; i < n; ++i) { expected += a[i] != b[i] ? 1 : 0; }
            expect_equal(count_different(Padded(a, shift, 1).span(), Padded(b, 15 - shift, 2).span()), expected, n,
                         shift);
        }
    });
}

TEST_CASE("count_different sees every bit, and ids of any sign") {
    for (int bit = 0; bit < 32; ++bit) {
        const Ints a(37, -7), b(37, static_cast<std::int32_t>(static_cast<std::uint32_t>(-7) ^ (1u << bit)));
        CHECK(count_different(a, b) == 37);
        CHECK(first_difference(a, b) == 0);
    }
}

TEST_CASE("count_different beyond the stretch after which lanes are emptied") {
    const std::size_t stretch = xsimd::batch<std::int32_t>::size << 20;
    for (const std::size_t n : Sizes{stretch - 1, stretch, stretch + 1, 2 * stretch + 3}) {
        const Ints a(n, 1);
        Ints b(n, 2);
        b[n / 2] = b[0] = b[n - 1] = 1;
        CHECK(count_different(a, b) == static_cast<std::int64_t>(n) - 3);
    }
}

TEST_CASE("spans that end where their memory ends") { // for the address sanitizer
    for (std::size_t n = 0; n <= 300; ++n) {
        const auto ints = std::make_unique<std::int32_t[]>(n);
        const auto floats = std::make_unique<float[]>(n);
        const auto doubles = std::make_unique<double[]>(n);
        const std::span<const std::int32_t> i(ints.get(), n);
        expect_equal(first_difference(i, i), n, n, 0);
        expect_equal(count_different(i, i), 0, n, 0);
        expect_equal(first_non_finite(std::span<const float>(floats.get(), n)), n, n, 0);
        expect_equal(first_non_finite(std::span<const double>(doubles.get(), n)), n, n, 0);
    }
}

TEST_CASE_TEMPLATE("is_finite looks at the exponent, whatever the other bits", Real, float, double) {
    using Bits = padded::bits_of<Real>;
    constexpr int mantissa = sizeof(Real) == 4 ? 23 : 52;
    constexpr Bits largest = sizeof(Real) == 4 ? 0xff : 0x7ff;
    for (Bits exponent = 0; exponent <= largest; ++exponent) {
        for (const Bits sign : {Bits{0}, Bits{1}}) {
            for (const Bits fraction : {Bits{0}, Bits{1}, Bits{1} << (mantissa - 1), (Bits{1} << mantissa) - 1}) {
                const Bits all = (sign << (8 * sizeof(Real) - 1)) | (exponent << mantissa) | fraction;
                const std::vector<Real> many(200, std::bit_cast<Real>(all)); // through the vector path as well
                CAPTURE(exponent);
                CHECK(is_finite(std::bit_cast<Real>(all)) == (exponent != largest));
                CHECK(first_non_finite(std::span<const Real>(many)) == (exponent != largest ? 200u : 0u));
            }
        }
    }
    static_assert(is_finite(Real(1)) && !is_finite(std::bit_cast<Real>(Bits(Special<Real>::non_finite[2]))));
}

TEST_CASE_TEMPLATE("first_non_finite: none among extreme finite values, and each kind at every place", Real, float,
                   double) {
    using Bits = padded::bits_of<Real>;
    for_each_placement([&](std::size_t n, std::size_t shift) {
        std::vector<Real> values(n);
        for (std::size_t i = 0; i < n; ++i) {
            values[i] = std::bit_cast<Real>(Bits(Special<Real>::finite[i % std::size(Special<Real>::finite)]));
        }
        Padded<Real> padded(values, shift, 0); // surrounded by NaN
        const auto span = padded.span();
        const auto found = [&] { return first_non_finite(std::span<const Real>(span)); };
        expect_equal(found(), n, n, shift);
        const std::size_t step = n <= 300 ? 1 : 89;
        for (std::size_t at = shift % step; at < n; at += step) {
            const Bits bad = Special<Real>::non_finite[(at + shift) % std::size(Special<Real>::non_finite)];
            span[at] = std::bit_cast<Real>(bad);
            expect_equal(found(), at, n, shift);
            if (at + 1 < n) { // the first of two
                const std::size_t later = at + 1 + (at * 31) % (n - at - 1);
                span[later] = std::bit_cast<Real>(bad);
                expect_equal(found(), at, n, shift);
                span[later] = values[later];
            }
            span[at] = values[at];
        }
        if (!padded.intact()) { CHECK(padded.intact()); }
    });
}

} // namespace test_columns

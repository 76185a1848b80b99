#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/column_checks.hpp"

namespace test_column_checks {

using namespace logitstat::simd;

namespace {

constexpr std::size_t longest = 70; // some registers of every width, and a remainder

/// Calls test(n, at, offset) for every length, place in it (n: none) and misalignment.
template <class Test> void sweep(const Test& test) {
    for (std::size_t n = 0; n <= longest; ++n) {
        for (std::size_t at = 0; at <= n; ++at) {
            for (const std::size_t offset : std::initializer_list<std::size_t>{0, 1, 3}) { test(n, at, offset); }
        }
    }
}

/// n values behind `offset` others; what lies around them breaks every rule, so that a read beyond the ends shows.
std::vector<std::int32_t> padded(std::size_t n, std::size_t offset, std::int32_t value, std::int32_t around) {
    std::vector<std::int32_t> all(n + offset + longest, around);
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(offset), n, value);
    return all;
}

} // namespace

TEST_CASE("first_negative finds the first at every place") {
    sweep([](std::size_t n, std::size_t at, std::size_t offset) {
        auto memory = padded(n, offset, 0, -1);
        const auto values = std::span(memory).subspan(offset, n);
        if (at < n) {
            values[at] = at % 2 == 0 ? -1 : std::numeric_limits<std::int32_t>::min();
            values[n - 1] = -1; // a later one does not hide it
        }
        CAPTURE(n);
        CAPTURE(at);
        REQUIRE(first_negative(values) == at);
    });
}

TEST_CASE_TEMPLATE("first_greater finds the first at every place; equal values are fine", Real, float, double) {
    sweep([](std::size_t n, std::size_t at, std::size_t offset) {
        std::vector<Real> a(n + offset + longest, Real(9)), b(n + offset + longest, Real(1));
        for (std::size_t i = 0; i < n; ++i) { a[offset + i] = b[offset + i] = Real(i % 5); }
        if (at < n) {
            a[offset + at] = std::nextafter(b[offset + at], Real(100));
            a[offset + n - 1] = Real(50);
        }
        CAPTURE(n);
        CAPTURE(at);
        REQUIRE(first_greater(std::span<const Real>(a).subspan(offset, n),
                              std::span<const Real>(b).subspan(offset, n)) == at);
    });
}

TEST_CASE("first_not_increasing: the order of pairs, by brute force") {
    std::mt19937 random(5);
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    sweep([&](std::size_t n, std::size_t at, std::size_t offset) {
        auto major = padded(n, offset, 0, 7), minor = padded(n, offset, 0, 7);
        std::pair<std::int32_t, std::int32_t> here{0, 0};
        for (std::size_t i = 0; i < n; ++i) {
            if (i > 0) {
                const auto kind = random() % 4;
                if (i == at) {
                    here = kind == 0   ? here
                           : kind == 1 ? std::pair(here.first, here.second - 1)
                                       : std::pair(here.first - 1, here.second + 9);
                } else {
                    here = kind == 0   ? std::pair(here.first + 1, std::int32_t{0})
                           : kind == 1 ? std::pair(here.first + 1, here.second) // both rise or only the chunk
                                       : std::pair(here.first, here.second + 1);
                }
            }
            major[offset + i] = here.first;
            minor[offset + i] = here.second;
        }
        const auto a = std::span<const std::int32_t>(major).subspan(offset, n);
        const auto b = std::span<const std::int32_t>(minor).subspan(offset, n);
        std::size_t expected = 1;
        while (expected < n && std::pair(a[expected - 1], b[expected - 1]) < std::pair(a[expected], b[expected])) {
            ++expected;
        }
        CAPTURE(n);
        CAPTURE(at);
        REQUIRE(first_not_increasing(a, b) == std::min(expected, n));
        REQUIRE((at == 0 || expected == at || n == 0)); // the break is where it was put
    });
    const std::vector<std::int32_t> major{0, most, most}, minor{most, 0, most};
    CHECK(first_not_increasing(major, minor) == 3);
}

TEST_CASE("first_repeat: any two of k planes, at every place, for few and many planes") {
    std::mt19937 random(6);
    for (const std::size_t k : std::initializer_list<std::size_t>{2, 3, 8, 20, 64, 65, 100}) {
        for (const std::size_t n : std::initializer_list<std::size_t>{1, 3, 4, 7, 16, 33}) {
            for (std::size_t at = 0; at <= n; ++at) {
                std::vector<std::int32_t> planes(n * k);
                for (std::size_t i = 0; i < n; ++i) { // a neighbour's ids do not count as repeats
                    for (std::size_t j = 0; j < k; ++j) {
                        planes[j * n + i] = static_cast<std::int32_t>((j * 37 + i) % 997);
                    }
                }
                if (at < n) {
                    const std::size_t one = random() % k, other = (one + 1 + random() % (k - 1)) % k;
                    planes[one * n + at] = planes[other * n + at];
                    planes[n - 1] = planes[n + n - 1];
                }
                CAPTURE(k);
                CAPTURE(n);
                CAPTURE(at);
                REQUIRE(first_repeat(planes, n, k) == at);
            }
        }
    }
}

} // namespace test_column_checks

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/compare_rows.hpp"
#include "simd/pairs.hpp"
#include "simd/rows.hpp"

namespace test_divergence {

using logitstat::simd::compare_rows;
using logitstat::simd::RowComparison;
using pairs::disturbed;
using pairs::is_near;
using pairs::is_plus_infinity;
using pairs::LogProbabilities;
using rows::bfloat16;
using rows::half;

namespace {

/// A pair of element types and an instruction set.
template <class R, class C, class A = xsimd::default_arch> struct Case {
    using Reference = R;
    using Candidate = C;
    using Arch = A;
};
#define TYPES Case<float, float>, Case<bfloat16, float>, Case<half, bfloat16>, Case<double, double>, Case<float, double>
// The narrower instruction sets of this build's, whose kernels run in the same program.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define EVERY_CASE                                                                                                     \
    TYPES, Case<float, float, xsimd::sse2>, Case<half, bfloat16, xsimd::sse2>, Case<double, double, xsimd::sse2>,      \
        Case<float, float, xsimd::fma3<xsimd::avx2>>, Case<half, bfloat16, xsimd::fma3<xsimd::avx2>>,                  \
        Case<double, double, xsimd::fma3<xsimd::avx2>>
#elif defined(__AVX2__) && defined(__FMA__)
#define EVERY_CASE                                                                                                     \
    TYPES, Case<float, float, xsimd::sse2>, Case<half, bfloat16, xsimd::sse2>, Case<double, double, xsimd::sse2>
#else
#define EVERY_CASE TYPES
#endif

/// Holds every figure against the definitions.
template <class Case, class R, class C> RowComparison expect_true(std::span<const R> x, std::span<const C> y) {
    const std::size_t k = 8;
    const RowComparison result = compare_rows<typename Case::Arch>(x, y, k);
    CAPTURE(x.size());
    pairs::expect_near<R, C>(result, pairs::truth_of(x, y, k));
    return result;
}
template <class Case, class R, class C> RowComparison expect_true(const std::vector<R>& x, const std::vector<C>& y) {
    return expect_true<Case>(std::span<const R>(x), std::span<const C>(y));
}

} // namespace

TEST_CASE_TEMPLATE("pairs of rows against the definitions in long double", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n :
         {1u, 2u, 3u, 7u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 64u, 65u, 1000u, 1024u, 1025u, 2100u}) {
        const auto x = rows::like_a_model<R>(n, n);
        for (const double width : {0.02, 0.5, 8.0}) { expect_true<T>(x, disturbed<C>(x, width)); }
        expect_true<T>(x, disturbed<C>(x, 0.1, 40)); // softmax does not see a shift
        expect_true<T>(x, rows::like_a_model<C>(n, n + 1, 3));
    }
    for (const std::size_t n : {std::size_t{32'000}, std::size_t{151'936}, std::size_t{262'144}}) {
        const auto x = rows::like_a_model<R>(n, n);
        expect_true<T>(x, disturbed<C>(x, n == 32'000 ? 2 : 0.1));
    }
}

TEST_CASE_TEMPLATE("rows whose mass is spread as widely as it can be", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    const std::size_t n = 100'000;
    for (const float height : {0.f, 1.1f, 4.7f, 10.3f, 12.6f}) { // every term of the sum errs alike
        std::vector<R> x(n, static_cast<R>(0.1f));
        std::vector<C> y(n, static_cast<C>(0.1f));
        x[n / 2] = static_cast<R>(height);
        y[n / 3] = static_cast<C>(height / 2 + 1);
        expect_true<T>(x, y);
    }
}

TEST_CASE_TEMPLATE("every misalignment, NaN on both sides", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n : {5u, 67u, 1100u}) {
        const auto x = rows::like_a_model<R>(n, n);
        const auto y = disturbed<C>(x, 0.5);
        for (std::size_t shift = 0; shift < 16; ++shift) {
            const rows::Surrounded<R> a(x, shift);
            const rows::Surrounded<C> b(y, (3 * shift + 1) % 16);
            expect_true<T>(std::span<const R>(a.span()), std::span<const C>(b.span()));
        }
        const auto a = std::make_unique<R[]>(n); // memory that ends with the row, for the address sanitizer
        const auto b = std::make_unique<C[]>(n);
        std::copy(x.begin(), x.end(), a.get());
        std::copy(y.begin(), y.end(), b.get());
        expect_true<T>(std::span<const R>(a.get(), n), std::span<const C>(b.get(), n));
    }
}

TEST_CASE_TEMPLATE("equal rows: exactly 0, whatever they hold", T, Case<float, float>, Case<bfloat16, bfloat16>,
                   Case<half, half>, Case<double, double>, Case<half, float>, Case<float, double>) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n : {1u, 33u, 1500u, 32'000u}) {
        for (const double scale : {0.0, 1.0, 40.0}) {
            auto x = rows::like_a_model<R>(n, n, scale, 3);
            for (int masked = 0; masked < 2; ++masked) {
                std::vector<C> y(n);
                for (std::size_t i = 0; i < n; ++i) {
                    y[i] = rows::is_minus_infinity(x[i]) ? rows::minus_infinity<C>()
                                                         : static_cast<C>(logitstat::simd::widen(x[i]));
                }
                const auto result = compare_rows(std::span<const R>(x), std::span<const C>(y), 8);
                const auto& d = result.divergence;
                if constexpr (std::is_same_v<R, C>) {
                    CHECK((d.kl == 0 && d.reverse_kl == 0 && d.jensen_shannon == 0 && d.total_variation == 0));
                } else { // whose log-sum-exps may add in another order
                    CHECK((d.kl >= 0 && d.kl < 1e-12 && d.jensen_shannon >= 0 && d.jensen_shannon < 1e-12));
                }
                CHECK((d.logit_shift == 0 && d.logit_rms == 0 && d.logit_max == 0 && d.lost == 0 && d.gained == 0));
                CHECK(result.agree());
                CHECK(result.top_shared == static_cast<std::int64_t>(std::min<std::size_t>(8, n)));
                for (std::size_t i = 1; i < n; i += 3) { x[i] = rows::minus_infinity<R>(); }
            }
        }
    }
}

TEST_CASE_TEMPLATE("rows a millionth apart: a tiny KL that is right, not noise", T, EVERY_CASE) {
    using R = typename T::Reference;
    if constexpr (std::is_same_v<R, typename T::Candidate> && sizeof(R) >= 4) { // the others cannot be so close
        for (const std::size_t n : {100u, 1000u, 32'000u}) {
            for (const double width : {1e-6, 1e-5}) {
                const auto x = rows::like_a_model<R>(n, n);
                const auto y = disturbed<R>(x, width);
                // To third order in the differences d, KL is half the variance of d under p, either way round.
                const LogProbabilities p(std::span<const R>{x});
                long double mean = 0, variance = 0;
                for (std::size_t i = 0; i < n; ++i) { mean += p.p(i) * (rows::value(y[i]) - rows::value(x[i])); }
                for (std::size_t i = 0; i < n; ++i) {
                    const long double d = rows::value(y[i]) - rows::value(x[i]) - mean;
                    variance += p.p(i) * d * d;
                }
                const auto got =
                    compare_rows<typename T::Arch>(std::span<const R>(x), std::span<const R>(y), 2).divergence;
                long double relative = std::is_same_v<R, double> ? 1e-4L : width > 2e-6 ? 0.01L : 0.15L;
#ifdef __FAST_MATH__ // which turns (a - b) - c into a - (b + c)
                if (sizeof(R) == 4) { relative = std::max(relative, 1e-12L / variance); }
#endif
                CAPTURE(n);
                CAPTURE(width);
                REQUIRE((variance > 1e-15L && variance < 1e-10L));
                CHECK(is_near(got.kl, variance / 2, 0, relative));
                CHECK(is_near(got.reverse_kl, variance / 2, 0, relative));
                CHECK(is_near(got.jensen_shannon, variance / 8, 0, relative));
            }
        }
    }
}

TEST_CASE_TEMPLATE("-infinity: probability 0 in both rows, in one, in the other", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    for (const std::size_t n : {3u, 40u, 1024u, 2500u}) {
        const auto x = rows::like_a_model<R>(n, n);
        const auto y = disturbed<C>(x, 0.5);
        for (const std::size_t stride : {std::size_t{2}, std::size_t{17}, n - 1}) {
            auto x_masked = x;
            auto y_masked = y;
            for (std::size_t i = 1; i < n; i += stride) {
                x_masked[i] = rows::minus_infinity<R>();
                y_masked[i] = rows::minus_infinity<C>();
            }
            expect_true<T>(x_masked, y_masked);
            CHECK(expect_true<T>(x, y_masked).divergence.lost > 0);
            CHECK(expect_true<T>(x_masked, y).divergence.gained > 0);
        }
    }
    // Where the other row has a number, but no probability either: 0 ln(0/0).
    std::vector<R> x(50, static_cast<R>(1.f));
    std::vector<C> y(50, static_cast<C>(1.5f));
    x[7] = static_cast<R>(-60'000.f);
    y[7] = rows::minus_infinity<C>();
    CHECK(expect_true<T>(x, y).divergence.lost == 0);
    // No token in common.
    for (std::size_t i = 0; i < 50; ++i) {
        if (i % 2 == 0) {
            x[i] = rows::minus_infinity<R>();
        } else {
            y[i] = rows::minus_infinity<C>();
        }
    }
    const auto apart = expect_true<T>(x, y).divergence;
    CHECK(apart.total_variation == doctest::Approx(1));
    CHECK(apart.jensen_shannon == doctest::Approx(std::log(2.0)));
    CHECK((apart.logit_shift == 0 && apart.logit_rms == 0 && apart.logit_max == 0));
}

TEST_CASE_TEMPLATE("huge magnitudes", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    constexpr bool has_half = std::is_same_v<R, half> || std::is_same_v<C, half>;
    for (const double offset : {3e4, -3e4}) {
        for (const double scale : {1.0, 100.0}) {
            const auto x = rows::like_a_model<R>(5000, 3, scale, offset);
            expect_true<T>(x, disturbed<C>(x, scale));
        }
    }
    std::vector<R> x(1500, static_cast<R>(1.f));
    std::vector<C> y(1500, static_cast<C>(2.f));
    for (const float most : {1e6f, 1e12f, 1e20f, 3e38f}) {
        if (has_half) { break; }
        x[3] = static_cast<R>(-most); // a mask by a low number, in both and in one
        y[3] = static_cast<C>(-most);
        expect_true<T>(x, y);
        y[4] = static_cast<C>(-most);
        expect_true<T>(x, y);
        x[1400] = static_cast<R>(most); // all of the mass, and the rows as far apart as can be
        expect_true<T>(x, y);
        y[1400] = static_cast<C>(most);
        expect_true<T>(x, y);
        x[1400] = static_cast<R>(1.f);
        expect_true<T>(x, y);
        y[4] = y[1400] = static_cast<C>(2.f);
    }
    if constexpr (std::is_same_v<R, double> && std::is_same_v<C, double>) { // differences that no double holds
        x[3] = -1.7e308;
        y[3] = 1.7e308;
        const auto d = compare_rows<typename T::Arch>(std::span<const R>(x), std::span<const C>(y), 8).divergence;
        CHECK(is_near(d.kl, 1.7e308L, 0, 1e-6L));
        CHECK(is_near(d.reverse_kl, 1.7e308L, 0, 1e-6L));
        CHECK(is_near(d.logit_max, 1e150L, 0, 1e-12L));
        CHECK(is_near(d.logit_rms, 1e150L / std::sqrt(1500.0L), 0, 1e-3L));
    }
}

TEST_CASE_TEMPLATE("ranks and shared tokens among ties, across blocks", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    std::mt19937_64 random(3);
    for (const std::size_t n : {9u, 100u, 1025u, 20'000u}) { // the last takes the top-k from the blocks' maxima
        for (const unsigned distinct : {1u, 2u, 3u, 30u}) {
            std::vector<R> x(n);
            std::vector<C> y(n);
            for (std::size_t i = 0; i < n; ++i) {
                x[i] = static_cast<R>(static_cast<float>(random() % distinct));
                y[i] = static_cast<C>(static_cast<float>(random() % distinct));
            }
            expect_true<T>(x, y);
        }
    }
    for (std::size_t at : {std::size_t{1023}, std::size_t{1024}, std::size_t{2047}}) { // last in a row of equals
        std::vector<R> x(2048, static_cast<R>(0.f));
        const std::vector<C> y(2048, static_cast<C>(-1.5f));
        x[at] = static_cast<R>(1.f);
        CHECK(compare_rows<typename T::Arch>(std::span<const R>(x), std::span<const C>(y), 8).rank ==
              static_cast<std::int64_t>(at) + 1);
    }
}

TEST_CASE_TEMPLATE("rows that cannot be compared say where, and nothing else is set", T, EVERY_CASE) {
    using R = typename T::Reference;
    using C = typename T::Candidate;
    const auto compare = [](const std::vector<R>& x, const std::vector<C>& y) {
        return compare_rows<typename T::Arch>(std::span<const R>(x), std::span<const C>(y), 3);
    };
    const std::vector<R> x = rows::like_a_model<R>(1100, 1);
    const std::vector<C> y = disturbed<C>(x, 0.1);
    CHECK(compare(x, y).comparable());
    for (const std::size_t at : {0u, 500u, 1099u}) {
        for (const R bad : rows::forbidden<R>()) {
            auto spoilt = x;
            spoilt[at] = bad;
            const auto result = compare(spoilt, y);
            CHECK((!result.comparable() && result.reference.sum.refused == at && result.candidate.sum.refused == 1100));
            CHECK((result.divergence.kl == 0 && result.top_shared == 0));
        }
        for (const C bad : rows::forbidden<C>()) {
            auto spoilt = y;
            spoilt[at] = bad;
            const auto result = compare(x, spoilt);
            CHECK((!result.comparable() && result.candidate.sum.refused == at && result.reference.sum.refused == 1100));
        }
    }
    CHECK(!compare(x, std::vector<C>(1100, rows::minus_infinity<C>())).comparable());
    CHECK(!compare(std::vector<R>(1100, rows::minus_infinity<R>()), y).comparable());
    CHECK(!compare({}, {}).comparable());
}

TEST_CASE("the target's NLL, where it is impossible too") {
    std::vector<float> row{1, 2, 3};
    const auto sum = logitstat::simd::log_sum_exp(std::span<const float>(row));
    CHECK(is_near(logitstat::simd::target_nll(std::span<const float>(row), sum, 0),
                  rows::nll(std::span<const float>(row), 0), 1e-6L, 0));
    row[0] = rows::minus_infinity<float>();
    CHECK(is_plus_infinity(logitstat::simd::target_nll(std::span<const float>(row), sum, 0)));
}

} // namespace test_divergence

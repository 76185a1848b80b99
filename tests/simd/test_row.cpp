#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/capture/score_row.hpp"
#include "logitstat/simd/exp.hpp"
#include "logitstat/simd/log_sum_exp.hpp"
#include "logitstat/simd/logits.hpp"
#include "logitstat/simd/top_k.hpp"
#include "simd/rows.hpp"

namespace test_row {

using Arch = xsimd::default_arch;
using logitstat::score_row;
using logitstat::simd::log_sum_exp;
using rows::bfloat16;
using rows::half;

#define EVERY_TYPE float, double, half, bfloat16

namespace {

/// Of float and narrower types, and of double.
template <class T> constexpr double nll_tolerance = std::is_same_v<T, double> ? 1e-12 : 2e-6;

/// Scores the row and holds every field against the oracle. Reports only what is wrong.
template <class T> void expect_exact(std::span<const T> row, std::size_t target, std::size_t k) {
    const auto score = score_row(row, static_cast<std::int64_t>(target), k);
    const auto truth = static_cast<double>(rows::nll(row, target));
    const auto ranking = rows::ranking(row);
    // Relative to the NLL where that is large: -log p of 1e4 cannot be had to 1e-12 in double.
    const double allowed = nll_tolerance<T> + 4e-16 * truth;
    bool good = std::abs(score.nll - truth) <= allowed && score.ids.size() == k && score.logits.size() == k;
    for (std::size_t j = 0; good && j < k; ++j) {
        good = score.ids[j] == ranking[j] &&
               static_cast<long double>(score.logits[j]) == rows::value(row[static_cast<std::size_t>(ranking[j])]);
    }
    if (!good) {
        CAPTURE(row.size());
        CAPTURE(target);
        CAPTURE(k);
        CHECK(std::abs(score.nll - truth) <= allowed);
        CHECK(score.nll == truth);
        CHECK(score.ids ==
              std::vector<std::int32_t>(ranking.begin(), ranking.begin() + static_cast<std::ptrdiff_t>(k)));
        FAIL_CHECK("wrong score");
    }
}

template <class T> void expect_exact(const std::vector<T>& row, std::size_t target, std::size_t k) {
    expect_exact(std::span<const T>(row), target, k);
}

/// Blocks, groups and registers of every type and width end here or one beside.
const std::vector<std::size_t> sizes{2,    3,    5,    7,    8,    15,   16,   17,   31,   32,    33,   63,   64,
                                     65,   127,  128,  129,  255,  256,  257,  511,  513,  1023,  1024, 1025, 1055,
                                     1056, 1087, 1089, 2047, 2048, 2049, 3071, 4099, 8192, 32003, 50257};

} // namespace

TEST_CASE("exp_nonpositive in float against double: the stated bound, and exactly 1 at 0") {
    using floats = xsimd::batch<float>;
    double worst = 0, worst_absolute = 0; // relative to the bound
    constexpr std::uint32_t stride = 61;  // one of 61 floats: 18 million
    for (std::uint32_t bits = 0x8000'0000u; bits <= std::bit_cast<std::uint32_t>(-86.f);
         bits += stride * floats::size) {
        std::array<float, floats::size> in, out;
        for (std::size_t i = 0; i < floats::size; ++i) {
            in[i] = std::max(-86.f, std::bit_cast<float>(bits + static_cast<std::uint32_t>(stride * i)));
        }
        logitstat::simd::exp_nonpositive<Arch>(floats::load_unaligned(in.data())).store_unaligned(out.data());
        for (std::size_t i = 0; i < floats::size; ++i) {
            const double x = static_cast<double>(in[i]), truth = std::exp(x);
            const double error = std::abs(static_cast<double>(out[i]) - truth);
            worst_absolute = std::max(worst_absolute, error);
            worst = std::max(worst, error / truth / (2e-7 + 7.4e-8 * std::abs(x)));
        }
    }
    CHECK(worst_absolute <= 2e-7);
    CHECK(worst <= 1);
    std::array<float, floats::size> one;
    logitstat::simd::exp_nonpositive<Arch>(floats(0.f)).store_unaligned(one.data());
    for (const float y : one) { CHECK(y == 1.f); }
}

TEST_CASE("exp_nonpositive in double, densely") {
    using doubles = xsimd::batch<double>;
    double worst_ulp = 0, worst_absolute = 0;
    for (double x = 0; x >= -700; x -= 0.00071) {
        std::array<double, doubles::size> out;
        logitstat::simd::exp_nonpositive<Arch>(doubles(x)).store_unaligned(out.data());
        const long double truth = std::exp(static_cast<long double>(x));
        const long double error = std::abs(static_cast<long double>(out[0]) - truth); // a double may be flushed to 0
        worst_absolute = std::max(worst_absolute, static_cast<double>(error));
        worst_ulp = std::max(worst_ulp, static_cast<double>(std::ldexp(error, 52 - std::ilogb(truth))));
    }
    CHECK(worst_absolute <= 2.3e-16);
#ifndef __FAST_MATH__
    CHECK(worst_ulp <= 1.25);
#endif
    CHECK(worst_ulp <= 2000);
}

TEST_CASE_TEMPLATE("exp_nonpositive far below: nothing beside 1, and not negative", Real, float, double) {
    using reals = xsimd::batch<Real>;
    constexpr bool narrow = sizeof(Real) == 4;
    const double limit = narrow ? std::exp(-86.0) : std::exp(-700.0);
    const Real least = narrow ? Real(-3e38) : Real(-1e308);
    for (const Real x :
         {Real(narrow ? -86 : -700), Real(narrow ? -87 : -701), Real(-1e4), least, rows::minus_infinity<Real>()}) {
        std::array<Real, reals::size> out;
        logitstat::simd::exp_nonpositive<Arch>(reals(x)).store_unaligned(out.data());
        for (const Real y : out) { CHECK((static_cast<double>(y) >= 0 && static_cast<double>(y) <= 1.0001 * limit)); }
    }
}

TEST_CASE_TEMPLATE("sixteen-bit types widen exactly: every bit pattern, in every lane", T, half, bfloat16) {
    constexpr std::size_t step = logitstat::simd::two_batches<T, Arch>;
    using floats = xsimd::batch<float>;
    std::vector<T> all;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) { all.push_back(rows::from_bits<T>(bits)); }
    all.insert(all.end(), all.begin(),
               all.begin() + static_cast<std::ptrdiff_t>(step)); // every pattern meets every lane
    std::size_t wrong = 0;
    std::array<std::size_t, step> place; // where the i-th logit went, lanes of a counted before those of b
    for (std::size_t i = 0; i < step; ++i) {
        place[i] = logitstat::simd::loads_in_order<T, Arch> ? i : i % 2 * floats::size + i / 2;
    }
    for (std::size_t first = 0; first < 0x10000; ++first) {
        const auto [a, b] = logitstat::simd::load_two<Arch>(&all[first]);
        std::array<std::array<float, floats::size>, 2> lanes;
        a.store_unaligned(lanes[0].data());
        b.store_unaligned(lanes[1].data());
        std::vector<std::uint32_t> got, expected;
        for (std::size_t i = 0; i < step; ++i) {
            const std::uint64_t bits = rows::to_bits(all[first + i]);
            const std::uint64_t magnitude = bits & (rows::sign_bit<T> - 1);
            const std::uint32_t sign = (bits & rows::sign_bit<T>) != 0 ? 0x8000'0000u : 0u;
            const std::uint32_t out =
                std::bit_cast<std::uint32_t>(lanes[place[i] / floats::size][place[i] % floats::size]);
            if (magnitude > rows::infinity_bits<T>) {
                wrong += !((out & 0x7fff'ffffu) > 0x7f80'0000u && (out & 0x8000'0000u) == sign);
            } else if (magnitude == rows::infinity_bits<T>) {
                wrong += out != (sign | 0x7f80'0000u);
            } else if (std::is_same_v<T, bfloat16>) {
                wrong += out != static_cast<std::uint32_t>(bits << 16);
            } else {
                wrong += static_cast<long double>(std::bit_cast<float>(out)) != rows::value(all[first + i]) ||
                         (out & 0x8000'0000u) != sign;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("NaN and +infinity by the bits, -infinity not", T, EVERY_TYPE) {
    for (const T x : rows::forbidden<T>()) { CHECK(logitstat::simd::is_nan_or_positive_infinity(x)); }
    for (const std::uint64_t bits :
         {std::uint64_t{0}, std::uint64_t{1}, rows::infinity_bits<T> - 1, rows::sign_bit<T>,
          rows::infinity_bits<T> | rows::sign_bit<T>, (rows::infinity_bits<T> | rows::sign_bit<T>)-1}) {
        CHECK(!logitstat::simd::is_nan_or_positive_infinity(rows::from_bits<T>(bits)));
    }
}

TEST_CASE_TEMPLATE("score_row against long double and a full sort: sizes around every block", T, EVERY_TYPE) {
    for (const std::size_t n : sizes) {
        const auto row = rows::like_a_model<T>(n, n);
        for (const std::size_t target : {std::size_t{0}, n / 2, n - 1}) {
            expect_exact(row, target, std::min<std::size_t>(n, target == 0 ? 8 : 2));
        }
    }
}

TEST_CASE_TEMPLATE("the largest vocabularies", T, EVERY_TYPE) {
    for (const std::size_t n : {std::size_t{151'936}, std::size_t{262'143}, std::size_t{262'144}}) {
        expect_exact(rows::like_a_model<T>(n, n), n / 3, 8);
        expect_exact(std::vector<T>(n, static_cast<T>(-3.25f)), n - 1, 8); // all equal: ids 0 to 7, NLL = log n
        auto peak = std::vector<T>(n, static_cast<T>(1.f)); // as many equal terms as there can be, none of them a 1
        for (const float height : {1.1f, 1.3f, 4.7f, 9.9f, 13.48f, 16.f}) {
            peak[n / 2] = static_cast<T>(height);
            expect_exact(peak, 0, 3);
        }
    }
}

TEST_CASE_TEMPLATE("every misalignment of the element type, NaN on both sides", T, EVERY_TYPE) {
    for (const std::size_t n : {2u, 31u, 64u, 100u, 1024u, 1100u, 2500u}) {
        const auto row = rows::like_a_model<T>(n, 7 * n);
        for (std::size_t shift = 0; shift < 64 / sizeof(T); ++shift) {
            const rows::Surrounded<T> placed(row, shift);
            expect_exact(std::span<const T>(placed.span()), n - 1, 2);
        }
    }
}

TEST_CASE_TEMPLATE("memory that ends with the row", T, EVERY_TYPE) { // for the address sanitizer
    for (std::size_t n = 2; n <= 150; ++n) {
        const auto row = rows::like_a_model<T>(n, n);
        const auto exact = std::make_unique<T[]>(n);
        std::copy(row.begin(), row.end(), exact.get());
        expect_exact(std::span<const T>(exact.get(), n), 0, 2);
    }
}

TEST_CASE_TEMPLATE("huge magnitudes, both signs", T, EVERY_TYPE) {
    for (const double offset : {1e4, -1e4}) {
        for (const double scale : {1.0, 100.0, 1000.0}) {
            expect_exact(rows::like_a_model<T>(40'000, 3, scale, offset), 17, 8);
        }
    }
    if constexpr (!std::is_same_v<T, half>) { // as far apart as the type allows: no overflow on the way
        const double most = std::is_same_v<T, double> ? 1.7e308 : 3e38;
        std::vector<T> row(3000, static_cast<T>(static_cast<float>(0)));
        row[0] = static_cast<T>(-most);
        row[2999] = static_cast<T>(most);
        const auto score = score_row(row, 2999, 2);
        CHECK(score.nll == 0);
        CHECK(score.ids == std::vector<std::int32_t>{2999, 1});
    }
    const std::vector<T> lowest(1500, rows::from_bits<T>((rows::infinity_bits<T> | rows::sign_bit<T>)-1));
    CHECK(score_row(lowest, 3, 2).nll == doctest::Approx(std::log(1500.0)).epsilon(1e-9));
}

TEST_CASE_TEMPLATE("ties: many, everywhere, to the lowest id", T, EVERY_TYPE) {
    std::mt19937_64 random(5);
    for (const std::size_t n : {3u, 40u, 1024u, 1500u, 5000u}) {
        for (const unsigned distinct : {1u, 2u, 3u, 20u}) {
            std::vector<T> row(n);
            for (T& x : row) { x = static_cast<T>(static_cast<float>(random() % distinct)); }
            for (const std::size_t k : {std::size_t{2}, std::size_t{3}, n / 2 + 1, n}) { expect_exact(row, n / 2, k); }
        }
    }
    std::vector<T> zeros{static_cast<T>(-0.f), static_cast<T>(0.f), static_cast<T>(-0.f)}; // equal, whatever their sign
    CHECK(score_row(zeros, 0, 3).ids == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE_TEMPLATE("order: rising, falling and sawtooth rows, k up to V", T, EVERY_TYPE) {
    const std::size_t n = 2100;
    std::vector<T> rising(n), falling(n), saw(n);
    for (std::size_t i = 0; i < n; ++i) {
        rising[i] = static_cast<T>(static_cast<float>(i) / 64);
        falling[i] = static_cast<T>(-static_cast<float>(i) / 64);
        saw[i] = static_cast<T>(static_cast<float>(i % 37) / 4);
    }
    for (const std::size_t k : {std::size_t{2}, std::size_t{8}, std::size_t{65}, n - 1, n}) {
        expect_exact(rising, 0, k);
        expect_exact(falling, n - 1, k);
        expect_exact(saw, 5, k);
    }
}

TEST_CASE_TEMPLATE("-infinity is probability 0, wherever it stands", T, EVERY_TYPE) {
    for (const std::size_t n : {40u, 1024u, 1025u, 5000u}) {
        for (const std::size_t masked : {std::size_t{1}, std::size_t{n / 2}, std::size_t{n - 3}}) {
            auto row = rows::like_a_model<T>(n, n + masked);
            std::vector<T> front = row, back = row, spread = row;
            std::fill_n(front.begin(), masked, rows::minus_infinity<T>());
            std::fill_n(back.rbegin(), masked, rows::minus_infinity<T>());
            for (std::size_t i = 0; i < masked; ++i) { spread[i * (n - 1) / (masked + 1)] = rows::minus_infinity<T>(); }
            expect_exact(front, n - 1, 3);
            expect_exact(back, 0, 3);
            if (!rows::is_minus_infinity(spread[n - 2])) { expect_exact(spread, n - 2, 2); }
        }
    }
}

TEST_CASE_TEMPLATE("a row that a trace cannot hold is refused, and says why", T, EVERY_TYPE) {
    const auto reason = [](const std::vector<T>& row, std::int64_t target, std::size_t k) {
        try {
            score_row(row, target, k);
        } catch (const std::invalid_argument& error) { return std::string(error.what()); }
        return std::string("accepted");
    };
    std::vector<T> row(1030, static_cast<T>(1.f));
    CHECK(reason(row, 3, 2) == "accepted");
    row[3] = rows::minus_infinity<T>();
    CHECK(reason(row, 4, 1029) == "accepted");
    CHECK(reason(row, 3, 2) == "the logit of the target, token 3, is -infinity (probability 0)");
    CHECK(reason(row, 4, 1030) == "only 1029 logits are finite, the best 1030 are asked for");
    CHECK(reason(std::vector<T>(7, rows::minus_infinity<T>()), 4, 2).find("-infinity") != std::string::npos);
    CHECK(reason(row, 1030, 2) == "target 1030 is no token of a vocabulary of 1030");
    CHECK(reason(row, -1, 2) == "target -1 is no token of a vocabulary of 1030");
    CHECK(reason(row, 0, 1031) == "the best 1031 of 1030 logits");
    CHECK(reason(row, 0, 0) == "the best 0 of 1030 logits");
    CHECK(reason({}, 0, 2) == "the best 2 of 0 logits");
    row[900] = rows::forbidden<T>()[1];
    CHECK(reason(row, 4, 2) == "the logit of token 900 is NaN");
    row[40] = rows::forbidden<T>()[0];
    CHECK(reason(row, 4, 2) == "the logit of token 40 is +infinity");
}

TEST_CASE_TEMPLATE("NaN and +infinity are noticed at every place", T, EVERY_TYPE) {
    const auto bad = rows::forbidden<T>();
    std::size_t missed = 0, checked = 0;
    const auto check = [&](std::vector<T>& row, std::size_t at) {
        const T kept = row[at];
        for (const T x : bad) {
            row[at] = x;
            missed += log_sum_exp(std::span<const T>(row)).refused != at;
            ++checked;
        }
        row[at] = kept;
    };
    for (const std::size_t n : {2u, 33u, 130u, 300u}) {
        auto row = rows::like_a_model<T>(n, n);
        for (std::size_t at = 0; at < n; ++at) { check(row, at); }
    }
    auto row = rows::like_a_model<T>(5000, 9);
    row[4000] = rows::minus_infinity<T>(); // legal, and no cover for what is not
    for (const std::size_t edge : {1024u, 2048u, 4096u, 4000u, 4999u}) {
        for (std::size_t at = edge - 40; at < std::min<std::size_t>(edge + 40, 5000); ++at) { check(row, at); }
    }
    CHECK(missed == 0);
    CHECK(checked > 1000);
    CHECK(log_sum_exp(std::span<const T>(row)).refused == 5000);
}

TEST_CASE("log_sum_exp of nothing, of one logit") {
    CHECK(log_sum_exp(std::span<const float>()).refused == 0);
    CHECK(log_sum_exp(std::span<const float>()).sum == 0);
    const std::vector<float> one{3.5f};
    CHECK(log_sum_exp(std::span<const float>(one)).log_sum_exp() == 3.5);
}

} // namespace test_row

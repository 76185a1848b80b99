#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/compare_rows.hpp"
#include "simd/rows.hpp"

/// What is true of a pair of rows, by other means than the library's.
namespace pairs {

/// The definitions, in long double; `rank` and `shared` by full sorts.
struct Truth {
    long double kl = 0, reverse_kl = 0, jensen_shannon = 0, total_variation = 0, shift = 0, rms = 0, max = 0;
    long double log_sum_p = 0, log_sum_q = 0;
    std::int64_t lost = 0, gained = 0, rank = 0, shared = 0;
};

/// A row's ln p, those below the stated bound at it; -infinity apart, as `false`.
struct LogProbabilities {
    std::vector<long double> log_p;
    std::vector<bool> possible;
    long double log_sum = 0;

    template <class T> explicit LogProbabilities(std::span<const T> row) {
        long double max = 0, sum = 0;
        bool any = false;
        for (const T x : row) {
            possible.push_back(!rows::is_minus_infinity(x));
            if (possible.back()) { max = any ? std::max(max, rows::value(x)) : rows::value(x); }
            any = any || possible.back();
        }
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (possible[i]) { sum += std::exp(rows::value(row[i]) - max); }
        }
        log_sum = max + std::log(sum);
        for (std::size_t i = 0; i < row.size(); ++i) {
            log_p.push_back(possible[i] ? rows::value(row[i]) - max - std::log(sum) : 0);
        }
    }
    long double p(std::size_t i) const { return possible[i] ? std::exp(log_p[i]) : 0; }
};

template <class R, class C> Truth truth_of(std::span<const R> x, std::span<const C> y, std::size_t k) {
    const LogProbabilities reference(x), candidate(y);
    Truth truth;
    truth.log_sum_p = reference.log_sum;
    truth.log_sum_q = candidate.log_sum;
    std::vector<long double> differences;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const long double p = reference.p(i), q = candidate.p(i), m = (p + q) / 2;
        const bool both = reference.possible[i] && candidate.possible[i];
        if (p > 0 && both) { truth.kl += p * (reference.log_p[i] - candidate.log_p[i]); }
        if (q > 0 && both) { truth.reverse_kl += q * (candidate.log_p[i] - reference.log_p[i]); }
        if (p > 0) { truth.jensen_shannon += p * std::log(p / m) / 2; }
        if (q > 0) { truth.jensen_shannon += q * std::log(q / m) / 2; }
        truth.total_variation += std::abs(p - q) / 2;
        truth.lost += reference.possible[i] && !candidate.possible[i] && reference.log_p[i] >= -700;
        truth.gained += candidate.possible[i] && !reference.possible[i] && candidate.log_p[i] >= -700;
        if (both) { differences.push_back(rows::value(y[i]) - rows::value(x[i])); }
    }
    for (const long double d : differences) {
        truth.shift += d / static_cast<long double>(differences.size());
        truth.max = std::max(truth.max, std::abs(d));
    }
    for (const long double d : differences) { truth.rms += (d - truth.shift) * (d - truth.shift); }
    if (!differences.empty()) { truth.rms = std::sqrt(truth.rms / static_cast<long double>(differences.size())); }
    const auto ours = rows::ranking(x), theirs = rows::ranking(y);
    truth.rank = std::ranges::find(theirs, ours[0]) - theirs.begin() + 1;
    const auto listed = static_cast<std::ptrdiff_t>(std::min(k, x.size()));
    for (std::ptrdiff_t j = 0; j < listed; ++j) {
        truth.shared += std::count(theirs.begin(), theirs.begin() + listed, ours[static_cast<std::size_t>(j)]);
    }
    return truth;
}

inline bool is_plus_infinity(double x) { return rows::to_bits(x) == rows::infinity_bits<double>; }

/// By the bits: NaN is near nothing.
inline bool is_near(double x, long double truth, long double absolute, long double relative) {
    return logitstat::simd::is_finite(x) &&
           std::abs(static_cast<long double>(x) - truth) <= absolute + relative * std::abs(truth);
}

/// Holds every figure against the definitions.
template <class R, class C> void expect_near(const logitstat::simd::RowComparison& result, const Truth& truth) {
    constexpr bool narrow = !std::is_same_v<R, double> || !std::is_same_v<C, double>;
    constexpr long double tolerance = narrow ? 2e-6L : 1e-12L;
    const auto& got = result.divergence;
    const auto near = [&](double value, long double expected) {
        return value >= 0 && is_near(value, expected, tolerance, tolerance);
    };
    const auto scale = tolerance * truth.max;
    // Log-sum-exps of float rows hold 2e-6 even where the other row is double.
    CHECK(is_near(result.reference.sum.log_sum_exp(), truth.log_sum_p, std::is_same_v<R, double> ? 1e-12L : 2e-6L,
                  3e-16L));
    CHECK(is_near(result.candidate.sum.log_sum_exp(), truth.log_sum_q, std::is_same_v<C, double> ? 1e-12L : 2e-6L,
                  3e-16L));
    if (truth.lost > 0) {
        CHECK(is_plus_infinity(got.kl));
    } else {
        CHECK(near(got.kl, truth.kl));
    }
    if (truth.gained > 0) {
        CHECK(is_plus_infinity(got.reverse_kl));
    } else {
        CHECK(near(got.reverse_kl, truth.reverse_kl));
    }
    CHECK(near(got.jensen_shannon, truth.jensen_shannon));
    CHECK(near(got.total_variation, truth.total_variation));
    CHECK(is_near(got.logit_shift, truth.shift, scale, tolerance));
    CHECK(is_near(got.logit_rms, truth.rms, scale, tolerance));
    CHECK(is_near(got.logit_max, truth.max, 0, tolerance));
    CHECK(got.lost == truth.lost);
    CHECK(got.gained == truth.gained);
    CHECK(result.rank == truth.rank);
    CHECK(result.top_shared == truth.shared);
}

/// Another arm's row: the same with noise of this width, plus a shift.
template <class C, class R> std::vector<C> disturbed(const std::vector<R>& row, double width, double shift = 0) {
    std::mt19937_64 random(row.size());
    std::vector<C> other(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double noise = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
        const double value = static_cast<double>(rows::value(row[i])) + width * noise + shift;
        if constexpr (std::is_same_v<C, double>) {
            other[i] = value;
        } else {
            other[i] = static_cast<C>(static_cast<float>(value));
        }
    }
    return other;
}

} // namespace pairs

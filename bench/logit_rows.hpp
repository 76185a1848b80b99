#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "logitstat/simd/logits.hpp"

/// Rows of logits for the benchmarks: 192 MiB, more than the caches hold, that come one after the other, as a forward
/// pass leaves them behind.
namespace bench {

constexpr std::size_t vocabulary = 151'936, top_k = 8, buffer_bytes = std::size_t{192} << 20;

/// Logits like a model's: a bell of width 3, a few tokens well above it, stored as T.
template <class T> struct Rows {
    std::vector<T> logits = std::vector<T>(buffer_bytes / sizeof(T) / vocabulary * vocabulary);
    std::size_t count = logits.size() / vocabulary;

    Rows() {
        std::mt19937 random(1);
        std::normal_distribution<double> bell(0, 3);
        std::vector<double> base(vocabulary + count);
        for (double& x : base) { x = bell(random); }
        for (std::size_t r = 0; r < count; ++r) {
            T* const row = &logits[r * vocabulary];
            for (std::size_t i = 0; i < vocabulary; ++i) { row[i] = static_cast<T>(base[i + r]); }
            for (int j = 0; j < 20; ++j) { row[random() % vocabulary] = static_cast<T>(10 + bell(random)); }
        }
    }
    std::span<const T> row(std::size_t r) const {
        return std::span(logits).subspan(r % count * vocabulary, vocabulary);
    }
    static std::size_t target(std::size_t r) { return r * 7919 % vocabulary; }
};
template <class T> const Rows<T>& rows() {
    static const Rows<T> rows;
    return rows;
}

/// Speeds, where one iteration (one position) took `rows_each` rows.
template <class T> void report_rows(benchmark::State& state, std::size_t rows_each = 1) {
    const auto iterations = static_cast<std::int64_t>(state.iterations());
    state.SetBytesProcessed(iterations * static_cast<std::int64_t>(rows_each * vocabulary * sizeof(T)));
    state.SetItemsProcessed(iterations);
}

/// Largest error of nll(row, target) over sixteen rows, against long double.
template <class T, class Nll> double error_of(const Nll& nll) {
    double worst = 0;
    for (std::size_t r = 0; r < 16; ++r) {
        const auto row = rows<T>().row(r);
        long double max = static_cast<long double>(static_cast<double>(row[0])), sum = 0;
        for (const T x : row) { max = std::max(max, static_cast<long double>(static_cast<double>(x))); }
        for (const T x : row) { sum += std::exp(static_cast<long double>(static_cast<double>(x)) - max); }
        const std::size_t target = Rows<T>::target(r);
        const long double truth = max - static_cast<long double>(static_cast<double>(row[target])) + std::log(sum);
        worst = std::max(worst, std::abs(static_cast<double>(static_cast<long double>(nll(row, target)) - truth)));
    }
    return worst;
}

template <class T> void read_bytes(benchmark::State& state) {
    using lanes = xsimd::batch<std::uint8_t>;
    std::size_t r = 0;
    for (auto _ : state) {
        const auto row = rows<T>().row(r++);
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(row.data());
        lanes a(std::uint8_t{0}), b(a), c(a), d(a);
        for (std::size_t i = 0; i + 4 * lanes::size <= row.size_bytes(); i += 4 * lanes::size) {
            a |= lanes::load_unaligned(bytes + i);
            b |= lanes::load_unaligned(bytes + i + lanes::size);
            c |= lanes::load_unaligned(bytes + i + 2 * lanes::size);
            d |= lanes::load_unaligned(bytes + i + 3 * lanes::size);
        }
        benchmark::DoNotOptimize(logitstat::simd::or_lanes(a | b | c | d));
    }
    report_rows<T>(state);
}

} // namespace bench

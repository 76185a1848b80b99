// The kernels over rows of 151,936 logits: log-sum-exp, best eight and target of one row, divergences of a pair, with
// each instruction set that the processor has, beside the loops that evaluation tools have for them (a maximum, expf,
// sums in double) and beside Eigen's array expressions. Those do less: the NLL alone of a row, KL alone of a pair. They
// are compiled for what this file is compiled for: this machine, and in bench_logits_avx2 a processor with AVX2.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include "logit_rows.hpp"
#include "logitstat/simd/compare_rows.hpp"
#include "logitstat/simd/dispatch.hpp"
#include "table.hpp"

namespace {

using namespace bench;
using logitstat::simd::widen;

// ---- one row
// ----------------------------------------------------------------------------------------------------------

template <class Arch, class T> double nll_logitstat(std::span<const T> row, std::size_t target) {
    const auto summary = logitstat::simd::summarize_row<Arch>(row, top_k);
    benchmark::DoNotOptimize(summary.best.data());
    return logitstat::simd::target_nll(row, summary.sum, target);
}

template <class T> double log_sum_exp_by_hand(std::span<const T> row) {
    float max = widen(row[0]);
    for (const T x : row) { max = std::max(max, widen(x)); }
    double sum = 0;
    for (const T x : row) { sum += static_cast<double>(std::exp(widen(x) - max)); }
    return static_cast<double>(max) + std::log(sum);
}
template <class T> double nll_by_hand(std::span<const T> row, std::size_t target) {
    return log_sum_exp_by_hand(row) - static_cast<double>(widen(row[target]));
}

/// The row as an array of float: itself, or its conversion.
template <class T> auto as_floats(std::span<const T> row) {
    return Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(row.data(), static_cast<Eigen::Index>(row.size()))
        .template cast<float>();
}
template <class T> float log_sum_exp_eigen(std::span<const T> row) {
    const auto x = as_floats(row);
    const float max = x.maxCoeff();
    return max + std::log((x - max).exp().sum());
}
template <class T> double nll_eigen(std::span<const T> row, std::size_t target) {
    return static_cast<double>(log_sum_exp_eigen(row) - widen(row[target]));
}

template <class T> void row_way(benchmark::State& state, double (*nll)(std::span<const T>, std::size_t)) {
    std::size_t r = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(nll(rows<T>().row(r), Rows<T>::target(r)));
        ++r;
    }
    state.counters["error"] = error_of<T>(nll);
    report_rows<T>(state);
}

// ---- a pair
// -----------------------------------------------------------------------------------------------------------

/// Another arm's logits: those of Rows with an error of a per cent of their width, as a quantized model has.
template <class T> const std::vector<T>& candidates() {
    static const std::vector<T> all = [] {
        std::mt19937 random(2);
        std::normal_distribution<float> bell(0, 0.05f);
        std::vector<float> noise(vocabulary);
        for (float& x : noise) { x = bell(random); }
        std::vector<T> made(rows<T>().logits.size());
        for (std::size_t i = 0; i < made.size(); ++i) {
            made[i] = static_cast<T>(widen(rows<T>().logits[i]) + noise[(i * 7) % vocabulary]);
        }
        return made;
    }();
    return all;
}
template <class T> std::span<const T> candidate(std::size_t r) {
    return std::span(candidates<T>()).subspan(r % rows<T>().count * vocabulary, vocabulary);
}

template <class Arch, class T> double kl_logitstat(std::span<const T> x, std::span<const T> y) {
    const auto result = logitstat::simd::compare_rows<Arch>(x, y, top_k);
    benchmark::DoNotOptimize(result.rank);
    return result.divergence.kl;
}
template <class T> double kl_by_hand(std::span<const T> x, std::span<const T> y) {
    const auto lse_p = static_cast<float>(log_sum_exp_by_hand(x)), lse_q = static_cast<float>(log_sum_exp_by_hand(y));
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float log_p = widen(x[i]) - lse_p, log_q = widen(y[i]) - lse_q;
        sum += static_cast<double>(std::exp(log_p) * (log_p - log_q));
    }
    return sum;
}
template <class T> double kl_eigen(std::span<const T> x, std::span<const T> y) {
    const float lse_p = log_sum_exp_eigen(x), lse_q = log_sum_exp_eigen(y);
    const auto log_p = as_floats(x) - lse_p;
    return static_cast<double>((log_p.exp() * (log_p - (as_floats(y) - lse_q))).sum());
}

long double exact_kl(auto x, auto y) {
    const auto log_sum = [](auto row) {
        long double sum = 0; // the rows are of moderate size
        for (const auto z : row) { sum += std::exp(static_cast<long double>(widen(z))); }
        return std::log(sum);
    };
    const long double lse_p = log_sum(x), lse_q = log_sum(y);
    long double kl = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const long double log_p = static_cast<long double>(widen(x[i])) - lse_p;
        kl += std::exp(log_p) * (log_p - (static_cast<long double>(widen(y[i])) - lse_q));
    }
    return kl;
}

template <class T> void pair_way(benchmark::State& state, double (*kl)(std::span<const T>, std::span<const T>)) {
    std::size_t r = 0;
    benchmark::DoNotOptimize(candidates<T>().data());
    for (auto _ : state) {
        benchmark::DoNotOptimize(kl(rows<T>().row(r), candidate<T>(r)));
        ++r;
    }
    double worst = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const auto truth = exact_kl(rows<T>().row(i), candidate<T>(i));
        const auto got = static_cast<long double>(kl(rows<T>().row(i), candidate<T>(i)));
        worst = std::max(worst, static_cast<double>(std::abs(got - truth)));
    }
    state.counters["error"] = worst;
    report_rows<T>(state, 2);
}

/// f(Arch, name) with each instruction set of the kernels, up to what this file is compiled for.
template <class F> void for_each_set(const F& f) {
    const auto one = [&]<std::size_t I>(logitstat::simd::supported<I> arch) {
        if (I >= logitstat::simd::supported_kernels().size()) { return; }
#if defined(__AVX2__) && !defined(__AVX512F__)
        if (arch.kernels().name == std::string_view("avx512")) { return; }
#endif
        f(arch, arch.kernels().name);
    };
    one(logitstat::simd::supported<0>{});
    one(logitstat::simd::supported<1>{});
    one(logitstat::simd::supported<2>{});
}

template <class T> void register_ways(const std::string& type) {
    const auto row = [&](const std::string& way, auto nll) {
        benchmark::RegisterBenchmark(("log-sum-exp + top-8 + target, " + type + '/' + way).c_str(), row_way<T>, nll);
    };
    for_each_set(
        [&](auto arch, const std::string& set) { row("logitstat, " + set, nll_logitstat<decltype(arch), T>); });
    row("plain loops (max, expf), log-sum-exp + target", nll_by_hand<T>);
    row("Eigen arrays, log-sum-exp + target", nll_eigen<T>);
    benchmark::RegisterBenchmark(("log-sum-exp + top-8 + target, " + type + "/reading the bytes").c_str(),
                                 read_bytes<T>);
    const auto pair = [&](const std::string& way, auto kl) {
        benchmark::RegisterBenchmark(("pair of rows, " + type + '/' + way).c_str(), pair_way<T>, kl);
    };
    for_each_set([&](auto arch, const std::string& set) {
        pair("logitstat, both summaries and all divergences, " + set, kl_logitstat<decltype(arch), T>);
    });
    pair("plain loops (max, expf), KL alone", kl_by_hand<T>);
    pair("Eigen arrays, KL alone", kl_eigen<T>);
    benchmark::RegisterBenchmark(("pair of rows, " + type + "/reading the bytes").c_str(), read_bytes<T>);
}

} // namespace

int main(int argc, char** argv) {
    register_ways<float>("float");
    register_ways<Eigen::bfloat16>("bfloat16");
    register_ways<Eigen::half>("half");
    return bench::run(argc, argv);
}

// A whole comparison of full logits, 304 pairs of rows of 151,936 floats at a time: every statistic and divergence, in
// one thread and in two, beside the loops of the field's tools (KL and both NLLs alone) and beside reading the same
// bytes, which tells what memory allows.

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "logit_rows.hpp"
#include "logitstat/compare_logits.hpp"
#include "table.hpp"

namespace {

using namespace bench;

constexpr std::size_t pairs = 304;

struct Arms {
    std::vector<float> reference, candidate;
    logitstat::LogitsPositions positions;

    Arms() : reference(rows<float>().logits.begin(), rows<float>().logits.begin() + pairs * vocabulary) {
        std::mt19937 random(2);
        std::normal_distribution<float> bell(0, 0.05f);
        std::vector<float> noise(vocabulary);
        for (float& x : noise) { x = bell(random); }
        candidate = reference;
        for (std::size_t i = 0; i < candidate.size(); ++i) { candidate[i] += noise[i * 7 % vocabulary]; }
        for (std::size_t r = 0; r < pairs; ++r) {
            positions.target.push_back(static_cast<logitstat::token_id>(Rows<float>::target(r)));
        }
        logitstat::set_chunks(positions, pairs, 76);
    }
    static const Arms& get() {
        static const Arms arms;
        return arms;
    }
    std::span<const float> row(const std::vector<float>& arm, std::size_t r) const {
        return std::span(arm).subspan(r * vocabulary, vocabulary);
    }
};

double plain_log_sum_exp(std::span<const float> row) {
    float max = row[0];
    for (const float x : row) { max = std::max(max, x); }
    double sum = 0;
    for (const float x : row) { sum += static_cast<double>(std::exp(x - max)); }
    return static_cast<double>(max) + std::log(sum);
}

/// KL of the rows [begin, end), added up.
double plain_kl(std::size_t begin, std::size_t end) {
    const Arms& arms = Arms::get();
    double total = 0;
    for (std::size_t r = begin; r < end; ++r) {
        const auto x = arms.row(arms.reference, r), y = arms.row(arms.candidate, r);
        const auto lse_p = static_cast<float>(plain_log_sum_exp(x)), lse_q = static_cast<float>(plain_log_sum_exp(y));
        benchmark::DoNotOptimize(lse_p - x[Rows<float>::target(r)]);
        benchmark::DoNotOptimize(lse_q - y[Rows<float>::target(r)]);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float log_p = x[i] - lse_p, log_q = y[i] - lse_q;
            total += static_cast<double>(std::exp(log_p) * (log_p - log_q));
        }
    }
    return total;
}

std::uint64_t or_of(std::size_t begin, std::size_t end) {
    using lanes = xsimd::batch<std::uint64_t>;
    const Arms& arms = Arms::get();
    lanes all(std::uint64_t{0});
    for (const auto* arm : {&arms.reference, &arms.candidate}) {
        const auto* words = reinterpret_cast<const std::uint64_t*>(arm->data());
        const std::size_t last = end * vocabulary / 2;
        for (std::size_t i = begin * vocabulary / 2; i + lanes::size <= last; i += lanes::size) {
            all |= lanes::load_unaligned(words + i);
        }
    }
    return logitstat::simd::or_lanes(all);
}

/// The rows in equal parts, each in a thread of its own.
template <class Work> auto in_threads(std::size_t threads, Work work) {
    std::vector<decltype(work(0, 1))> parts(threads);
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t) {
        running.emplace_back([&, t] { parts[t] = work(t * pairs / threads, (t + 1) * pairs / threads); });
    }
    for (std::thread& thread : running) { thread.join(); }
    return parts;
}

void report(benchmark::State& state) {
    const auto positions = state.iterations() * static_cast<std::int64_t>(pairs);
    state.SetItemsProcessed(positions);
    state.SetBytesProcessed(positions * static_cast<std::int64_t>(2 * vocabulary * sizeof(float)));
}

double mean_kl(std::size_t threads) {
    const Arms& arms = Arms::get();
    const logitstat::LogitsView<float> a(arms.reference, pairs, vocabulary), b(arms.candidate, pairs, vocabulary);
    return logitstat::compare_logits(a, b, arms.positions, {.threads = threads}).kl->mean;
}

/// Against the same of rows of long double; the plain loops' is measured the same way.
double error_of(double mean) {
    static const long double truth = [] {
        const Arms& arms = Arms::get();
        long double total = 0;
        for (std::size_t r = 0; r < pairs; ++r) {
            const auto x = arms.row(arms.reference, r), y = arms.row(arms.candidate, r);
            long double p_sum = 0, q_sum = 0, cross = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const long double p = std::exp(static_cast<long double>(x[i])),
                                  q = std::exp(static_cast<long double>(y[i]));
                p_sum += p;
                q_sum += q;
                cross += p * (static_cast<long double>(x[i]) - static_cast<long double>(y[i]));
            }
            total += cross / p_sum - std::log(p_sum) + std::log(q_sum);
        }
        return total / pairs;
    }();
    return static_cast<double>(std::abs(static_cast<long double>(mean) - truth));
}

template <class Way> void add(const char* name, Way way) {
    const auto run = [way](benchmark::State& state) {
        Arms::get();
        double mean = 0;
        for (auto _ : state) { mean = way(); }
        benchmark::DoNotOptimize(mean);
        if (mean > 0) { state.counters["error"] = error_of(mean); }
        report(state);
    };
    benchmark::RegisterBenchmark((std::string("whole comparison, float/") + name).c_str(), run)->UseRealTime();
}

} // namespace

int main(int argc, char** argv) {
    const auto plain = [](std::size_t threads) {
        double total = 0;
        for (const double part : in_threads(threads, plain_kl)) { total += part; }
        return total / static_cast<double>(pairs);
    };
    const auto read = [](std::size_t threads) {
        benchmark::DoNotOptimize(in_threads(threads, or_of));
        return 0.0;
    };
    add("logitstat, 1 thread", [] { return mean_kl(1); });
    if (logitstat::preferred_execution::available_threads() > 1) {
        add("logitstat, 2 threads", [] { return mean_kl(2); });
    }
    add("plain loops (max, expf), KL and NLLs, 1 thread", [plain] { return plain(1); });
    add("the same loops, 2 threads", [plain] { return plain(2); });
    add("the bytes read, 1 thread", [read] { return read(1); });
    add("the bytes read, 2 threads", [read] { return read(2); });
    return bench::run(argc, argv);
}

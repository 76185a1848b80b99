// What it costs to make a trace's row of a model's logits: NLL and the best eight of 151,936, beside what harnesses
// write by hand and beside merely reading the bytes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

#include "logit_rows.hpp"
#include "logitstat/capture.hpp"
#include "table.hpp"

namespace {

using namespace bench;

template <class T> void score_logitstat(benchmark::State& state) {
    std::size_t r = 0;
    for (auto _ : state) {
        const auto target = static_cast<std::int64_t>(Rows<T>::target(r));
        benchmark::DoNotOptimize(logitstat::score_row(rows<T>().row(r++), target, top_k));
    }
    state.counters["error"] = error_of<T>([](std::span<const T> row, std::size_t target) {
        return logitstat::score_row(row, static_cast<std::int64_t>(target), top_k).nll;
    });
    report_rows<T>(state);
}

template <class T> void record_logitstat(benchmark::State& state, const char* extension) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("logitstat-bench-" + std::to_string(std::random_device{}()) + extension);
    logitstat::TraceRecorder trace(path, {.top_k = top_k});
    std::size_t r = 0;
    for (auto _ : state) {
        trace.record(0, static_cast<std::int64_t>(r), static_cast<std::int64_t>(Rows<T>::target(r)), rows<T>().row(r));
        ++r;
    }
    report_rows<T>(state);
    std::filesystem::remove(trace.partial_path());
}

/// By hand: the maximum, the sum of std::exp in double, std::partial_sort of the ids.
template <class T> double score_by_hand(std::span<const T> row, std::size_t target, std::vector<std::int32_t>& ids) {
    using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto at = [&](std::int32_t id) { return static_cast<Real>(row[static_cast<std::size_t>(id)]); };
    Real max = static_cast<Real>(row[0]);
    for (const T x : row) { max = std::max(max, static_cast<Real>(x)); }
    double sum = 0;
    for (const T x : row) { sum += static_cast<double>(std::exp(static_cast<Real>(x) - max)); }
    ids.resize(row.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::partial_sort(ids.begin(), ids.begin() + top_k, ids.end(),
                      [&](std::int32_t a, std::int32_t b) { return at(a) > at(b) || (at(a) == at(b) && a < b); });
    return static_cast<double>(max - static_cast<Real>(row[target])) + std::log(sum);
}
template <class T> void score_plain(benchmark::State& state) {
    std::vector<std::int32_t> ids;
    std::size_t r = 0;
    for (auto _ : state) {
        const std::size_t target = Rows<T>::target(r);
        benchmark::DoNotOptimize(score_by_hand(rows<T>().row(r++), target, ids));
        benchmark::DoNotOptimize(ids.data());
    }
    state.counters["error"] =
        error_of<T>([&](std::span<const T> row, std::size_t target) { return score_by_hand(row, target, ids); });
    report_rows<T>(state);
}

template <class T> void register_rows(const std::string& type) {
    const auto add = [&](const char* way, auto function) {
        benchmark::RegisterBenchmark(("rows of " + type + '/' + way).c_str(), function)->Unit(benchmark::kMicrosecond);
    };
    add("logitstat, score_row", score_logitstat<T>);
    add("logitstat, record into a text trace", [](auto& state) { record_logitstat<T>(state, ".tsv"); });
    add("logitstat, record into a binary trace", [](auto& state) { record_logitstat<T>(state, ".safetensors"); });
    add("plain loops (std::exp, std::partial_sort)", score_plain<T>);
    add("reading the bytes", read_bytes<T>);
}

} // namespace

int main(int argc, char** argv) {
    register_rows<float>("float");
    register_rows<Eigen::half>("half");
    register_rows<Eigen::bfloat16>("bfloat16");
    register_rows<double>("double");
    return bench::run(argc, argv);
}

// What a comparison of two text traces costs: reading them, and the counts over their columns, beside plain loops that
// do the same and beside merely reading the same bytes.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "logitstat/logitstat.hpp"
#include "table.hpp"

namespace {

using logitstat::Trace;

constexpr std::size_t positions = 1'000'000, top_k = 8;

/// Random, but like the traces of real models: bfloat16 logits near 20, exponential gaps, 3 % disagreement.
Trace<double> make_trace(unsigned seed) {
    auto trace = Trace<double>::with_shape(positions, top_k);
    std::mt19937 shared(1), own(seed);
    std::exponential_distribution<double> step(0.5);
    for (std::size_t i = 0; i < positions; ++i) {
        trace.chunk[i] = static_cast<std::int32_t>(i / 256);
        trace.pos[i] = static_cast<std::int32_t>(i % 256);
        trace.target[i] = static_cast<std::int32_t>(shared() % 151'936);
        trace.nll[i] = static_cast<double>(own() % 16'000'000) / 1e6;
        double logit = 24;
        const auto first = static_cast<std::int32_t>(shared() % 150'000);
        for (std::size_t j = 0; j < top_k; ++j) {
            trace.top_ids[j * positions + i] = first + static_cast<std::int32_t>(17 * j);
            trace.top_logits[j * positions + i] = logit;
            logit -= std::round(step(shared) * 16) / 16;
        }
        if (own() % 33 == 0) { std::swap(trace.top_ids[i], trace.top_ids[positions + i]); }
    }
    return trace;
}

const Trace<double>& reference() {
    static const Trace<double> trace = make_trace(2);
    return trace;
}
const Trace<double>& candidate() {
    static const Trace<double> trace = make_trace(3);
    return trace;
}

Trace<float> narrowed(const Trace<double>& trace) {
    auto narrow = Trace<float>::with_shape(trace.size(), trace.k);
    narrow.top_ids = trace.top_ids;
    for (std::size_t i = 0; i < trace.top_logits.size(); ++i) {
        narrow.top_logits[i] = static_cast<float>(trace.top_logits[i]);
    }
    return narrow;
}

// ---- reading
// ---------------------------------------------------------------------------------------------------------

/// The reference as a file, removed at exit.
struct TraceFile {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("logitstat-bench-" + std::to_string(std::random_device{}()) + ".tsv");
    TraceFile() { logitstat::write_text_trace(path, reference()); }
    ~TraceFile() { std::filesystem::remove(path); }
};
const TraceFile& file() {
    static const TraceFile file;
    return file;
}

void report_file(benchmark::State& state) {
    const auto iterations = static_cast<std::int64_t>(state.iterations());
    state.SetBytesProcessed(iterations * static_cast<std::int64_t>(std::filesystem::file_size(file().path)));
    state.SetItemsProcessed(iterations * static_cast<std::int64_t>(positions));
}

/// Largest difference to the trace that was written with six decimals.
double error_of(std::span<const double> logits) {
    double worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
        worst = std::max(worst, std::abs(logits[i] - reference().top_logits[i]));
    }
    return logits.size() == reference().top_logits.size() ? worst : INFINITY;
}

void read_logitstat(benchmark::State& state) {
    double error = 0;
    for (auto _ : state) {
        const auto trace = logitstat::read_text_trace<double>(file().path);
        benchmark::DoNotOptimize(trace.nll.data());
        state.PauseTiming();
        error = error_of(trace.top_logits);
        state.ResumeTiming();
    }
    state.counters["error"] = error;
    report_file(state);
}

/// As the tools at hand do it: getline, fields by find, numbers by strtol and strtod, rows pushed back.
void read_plain(benchmark::State& state) {
    double error = 0;
    for (auto _ : state) {
        struct Row {
            long chunk, pos, target;
            double nll;
            std::array<long, top_k> ids;
            std::array<double, top_k> logits;
        };
        std::vector<Row> rows;
        std::ifstream in(file().path);
        for (std::string line; std::getline(in, line);) {
            if (line.starts_with('#')) { continue; }
            Row row;
            char* at = line.data();
            row.chunk = std::strtol(at, &at, 10);
            row.pos = std::strtol(at, &at, 10);
            row.target = std::strtol(at, &at, 10);
            row.nll = std::strtod(at, &at);
            for (long& id : row.ids) { id = std::strtol(at + 1, &at, 10); }
            for (double& logit : row.logits) { logit = std::strtod(at + 1, &at); }
            rows.push_back(row);
        }
        benchmark::DoNotOptimize(rows.data());
        state.PauseTiming();
        std::vector<double> planes(rows.size() * top_k);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (std::size_t j = 0; j < top_k; ++j) { planes[j * rows.size() + i] = rows[i].logits[j]; }
        }
        error = error_of(planes);
        state.ResumeTiming();
    }
    state.counters["error"] = error;
    report_file(state);
}

void read_bytes(benchmark::State& state) {
    for (auto _ : state) {
        const logitstat::MappedFile mapped(file().path);
        benchmark::DoNotOptimize(std::count(mapped.text().begin(), mapped.text().end(), '\n'));
    }
    report_file(state);
}

// ---- columns
// ---------------------------------------------------------------------------------------------------------

constexpr std::array<double, 16> thresholds{0.125, 0.25, 0.375, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};

template <class Real> struct Columns {
    std::span<const std::int32_t> r, q;
    std::span<const Real> best, second;
    std::int64_t bytes() const { return static_cast<std::int64_t>(r.size() * (8 + 2 * sizeof(Real))); }
};

/// The two best planes of a trace, `copies` times over: what a sweep reads, of a size that no cache holds.
template <class Real> Trace<Real> repeated(const Trace<Real>& trace, std::size_t copies) {
    auto large = Trace<Real>::with_shape(copies * positions, 2);
    const auto fill = [&](auto from, auto& column, std::size_t plane) {
        for (std::size_t i = 0; i < copies; ++i) {
            std::copy(from.begin(), from.end(),
                      column.begin() + static_cast<std::ptrdiff_t>((plane * copies + i) * positions));
        }
    };
    for (std::size_t plane = 0; plane < 2; ++plane) {
        fill(trace.view().ids(plane), large.top_ids, plane);
        fill(trace.view().logits(plane), large.top_logits, plane);
    }
    return large;
}

/// Reference and candidate with columns of a type, each `Copies` millions of positions long.
template <class Real, std::size_t Copies> struct Pair {
    Trace<Real> reference, candidate;
    static const Pair& get() {
        static const Pair pair = [] {
            if constexpr (sizeof(Real) == 8) {
                return Pair{repeated(::reference(), Copies), repeated(::candidate(), Copies)};
            } else {
                return Pair{repeated(narrowed(::reference()), Copies), repeated(narrowed(::candidate()), Copies)};
            }
        }();
        return pair;
    }
    Columns<Real> columns() const {
        const auto ref = reference.view(), cand = candidate.view();
        return {ref.ids(0), cand.ids(0), ref.logits(0), ref.logits(1)};
    }
};

void report_columns(benchmark::State& state, std::size_t items, std::int64_t bytes) {
    const auto iterations = static_cast<std::int64_t>(state.iterations());
    state.SetBytesProcessed(iterations * bytes);
    state.SetItemsProcessed(iterations * static_cast<std::int64_t>(items));
}

std::int64_t agreement_plain_loop(std::span<const std::int32_t> r, std::span<const std::int32_t> q) {
    std::int64_t differ = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
        if (r[i] != q[i]) { ++differ; }
    }
    return differ;
}

Columns<double> agreement_columns() {
    const auto ref = reference().view(), cand = candidate().view();
    return {ref.ids(0), cand.ids(0), ref.logits(0), ref.logits(1)};
}

void agreement_logitstat(benchmark::State& state) {
    std::int64_t differ = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(differ = logitstat::count_disagreements(reference(), candidate()));
    }
    const auto c = agreement_columns();
    state.counters["error"] = static_cast<double>(differ - agreement_plain_loop(c.r, c.q));
    report_columns(state, positions, 8 * static_cast<std::int64_t>(positions));
}
void agreement_plain(benchmark::State& state) {
    const auto c = agreement_columns();
    for (auto _ : state) { benchmark::DoNotOptimize(agreement_plain_loop(c.r, c.q)); }
    state.counters["error"] = 0;
    report_columns(state, positions, 8 * static_cast<std::int64_t>(positions));
}

/// What reading the columns costs and nothing else, with the widest loads and enough of them in flight.
template <class T> void touch(std::span<const T> column) {
    using lanes = xsimd::batch<T>;
    lanes a(T(0)), b(T(0)), c(T(0)), d(T(0));
    for (std::size_t i = 0; i + 4 * lanes::size <= column.size(); i += 4 * lanes::size) {
        a = xsimd::max(a, lanes::load_unaligned(&column[i]));
        b = xsimd::max(b, lanes::load_unaligned(&column[i + lanes::size]));
        c = xsimd::max(c, lanes::load_unaligned(&column[i + 2 * lanes::size]));
        d = xsimd::max(d, lanes::load_unaligned(&column[i + 3 * lanes::size]));
    }
    benchmark::DoNotOptimize(logitstat::simd::sum_lanes(a + b + c + d));
}
void agreement_bytes(benchmark::State& state) {
    const auto c = agreement_columns();
    for (auto _ : state) {
        touch(c.r);
        touch(c.q);
    }
    report_columns(state, positions, 8 * static_cast<std::int64_t>(positions));
}

using Counts = std::array<std::int64_t, thresholds.size()>;

template <class Real> void sweep_plain_loop(const Columns<Real>& c, std::size_t used, Counts& decided, Counts& wrong) {
    for (std::size_t i = 0; i < c.r.size(); ++i) {
        const double gap = static_cast<double>(c.best[i]) - static_cast<double>(c.second[i]);
        for (std::size_t j = 0; j < used; ++j) {
            if (gap >= thresholds[j]) {
                ++decided[j];
                if (c.r[i] != c.q[i]) { ++wrong[j]; }
            }
        }
    }
}

template <class Real, std::size_t Copies, std::size_t Used> void sweep_logitstat(benchmark::State& state) {
    const auto& pair = Pair<Real, Copies>::get();
    std::vector<logitstat::DecidedCount> counts;
    for (auto _ : state) {
        counts =
            logitstat::threshold_sweep(pair.reference, pair.candidate, std::span(thresholds).template first<Used>());
        benchmark::DoNotOptimize(counts.data());
    }
    Counts decided{}, wrong{};
    sweep_plain_loop(pair.columns(), Used, decided, wrong);
    double error = 0;
    for (std::size_t j = 0; j < Used; ++j) {
        error +=
            static_cast<double>(std::abs(counts[j].positions - decided[j]) + std::abs(counts[j].mismatches - wrong[j]));
    }
    state.counters["error"] = error;
    report_columns(state, Copies * positions, pair.columns().bytes());
}
template <class Real, std::size_t Copies> void sweep_plain(benchmark::State& state) {
    const auto c = Pair<Real, Copies>::get().columns();
    for (auto _ : state) {
        Counts decided{}, wrong{};
        sweep_plain_loop(c, thresholds.size(), decided, wrong);
        benchmark::DoNotOptimize(decided);
        benchmark::DoNotOptimize(wrong);
    }
    state.counters["error"] = 0;
    report_columns(state, Copies * positions, c.bytes());
}
template <class Real, std::size_t Copies> void sweep_bytes(benchmark::State& state) {
    const auto c = Pair<Real, Copies>::get().columns();
    for (auto _ : state) {
        touch(c.r);
        touch(c.q);
        touch(c.best);
        touch(c.second);
    }
    report_columns(state, Copies * positions, c.bytes());
}

template <class Real, std::size_t Copies> void register_sweeps(const std::string& columns) {
    const std::string group = "sweep over " + columns;
    benchmark::RegisterBenchmark((group + "/logitstat, 16 thresholds").c_str(), sweep_logitstat<Real, Copies, 16>);
    benchmark::RegisterBenchmark((group + "/logitstat, 1 threshold").c_str(), sweep_logitstat<Real, Copies, 1>);
    benchmark::RegisterBenchmark((group + "/plain loops, 16 thresholds").c_str(), sweep_plain<Real, Copies>);
    benchmark::RegisterBenchmark((group + "/reading the bytes").c_str(), sweep_bytes<Real, Copies>);
}

} // namespace

int main(int argc, char** argv) {
    benchmark::RegisterBenchmark("text trace/logitstat", read_logitstat)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("text trace/plain loops (getline, strtod)", read_plain)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("text trace/reading the bytes", read_bytes)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark("agreement/logitstat", agreement_logitstat);
    benchmark::RegisterBenchmark("agreement/plain loops", agreement_plain);
    benchmark::RegisterBenchmark("agreement/reading the bytes", agreement_bytes);
    register_sweeps<double, 1>("double columns, 1 million positions");
    register_sweeps<float, 1>("float columns, 1 million positions");
    register_sweeps<double, 16>("double columns, 16 million positions");
    register_sweeps<float, 16>("float columns, 16 million positions");
    return bench::run(argc, argv);
}

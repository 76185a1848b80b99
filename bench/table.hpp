#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "logitstat/report/format.hpp"

/// Benchmarks as the tables of bench/README.md: those named "GROUP/WAY" form one table a group, with the speed of each
/// way, its ratio to the way named "plain loops", and its error. Medians of repetitions that are interleaved at random,
/// so that a noisy neighbour meets every way alike.
namespace bench {

class TableReporter : public benchmark::BenchmarkReporter {
  public:
    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        for (const Run& run : runs) {
            if (run.error_occurred) { failures_.push_back(run.benchmark_name() + ": " + run.error_message); }
            if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median") { continue; }
            const std::string& name = run.run_name.function_name;
            const std::size_t slash = name.find('/');
            const std::string group = name.substr(0, slash);
            if (!rows_.contains(group)) { order_.push_back(group); }
            rows_[group].emplace_back(name.substr(slash + 1), run);
        }
    }

    void Finalize() override {
        for (const std::string& group : order_) {
            // Interleaved runs finish in any order; by name, ours comes first, then the peers, then the bare bytes.
            std::ranges::sort(rows_[group], {}, &std::pair<std::string, Run>::first);
            print(group, rows_[group]);
        }
        for (const std::string& failure : failures_) { GetErrorStream() << "FAILED " << failure << '\n'; }
    }

    bool failed() const { return !failures_.empty(); }

  private:
    static double counter(const Run& run, const std::string& name) {
        const auto found = run.counters.find(name);
        return found == run.counters.end() ? 0 : found->second.value;
    }

    /// Seconds of one iteration: of the thread, or by the clock where there are several (UseRealTime).
    static double seconds(const Run& run) {
        const bool real = !run.run_name.time_type.empty();
        return (real ? run.real_accumulated_time : run.cpu_accumulated_time) / static_cast<double>(run.iterations);
    }

    static std::string short_number(double x) {
        std::array<char, 32> text;
        std::snprintf(text.data(), text.size(), "%.2g", x);
        return text.data();
    }

    void print(const std::string& group, const std::vector<std::pair<std::string, Run>>& rows) {
        using logitstat::report::fixed;
        double plain = 0;
        for (const auto& [way, run] : rows) {
            if (way.starts_with("plain loops")) { plain = seconds(run); }
        }
        std::ostream& out = GetOutputStream();
        out << "| " << group << " | GB/s | million positions/s | times plain | error |\n|---|---:|---:|---:|---:|\n";
        for (const auto& [way, run] : rows) {
            const double time = seconds(run);
            const double positions = counter(run, "items_per_second");
            const auto error = run.counters.find("error");
            out << "| " << way << " | " << fixed(counter(run, "bytes_per_second") / 1e9, 2) << " | "
                << (positions > 0 ? fixed(positions / 1e6, positions < 1e6 ? 4 : 1) : "-") << " | "
                << fixed(plain / time, 2) << " | "
                << (error == run.counters.end() ? "-" : short_number(error->second.value)) << " |\n";
        }
        out << '\n';
    }

    std::vector<std::string> order_, failures_;
    std::map<std::string, std::vector<std::pair<std::string, Run>>> rows_;
};

/// Runs everything that is registered: seven interleaved repetitions unless the command line says otherwise.
inline int run(int argc, char** argv) {
    std::vector<std::string> defaults{argv[0], "--benchmark_repetitions=7", "--benchmark_min_time=0.05",
                                      "--benchmark_enable_random_interleaving=true"};
    std::vector<char*> arguments;
    for (std::string& argument : defaults) { arguments.push_back(argument.data()); }
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) { return 2; }
    TableReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    return reporter.failed() ? 1 : 0;
}

} // namespace bench

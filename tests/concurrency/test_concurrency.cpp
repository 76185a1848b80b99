#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/compare_logits_files.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/simd/kernel_unit.hpp"
#include "logitstat/simd/log_sum_exp.hpp"
#include "stats/random_pair.hpp"

// Threads that share what the library says can be shared: opened files, views and traces, read by several at once. Each
// must find what one finds alone, bit by bit; built with ThreadSanitizer, which reports two accesses that nothing
// orders even where the figures come out right. The library has no other state that threads share than what is
// initialised at its first use, so that first uses are tested here with all threads at a barrier.

// The tables of kernels that a program chooses from when it runs, as `logitstat::dispatch` defines them, with one set.
LOGITSTAT_KERNEL_UNIT(baseline, xsimd::default_arch, "baseline")
LOGITSTAT_KERNEL_CHOICE(false)

namespace {

using logitstat::LogitsFile;
using logitstat::token_id;
using testing::TemporaryFolder;

/// What `action` returns in each of `threads` threads, which begin together. An exception of one is thrown here.
template <class Result, class Action> std::vector<Result> together(std::size_t threads, const Action& action) {
    std::vector<Result> results(threads);
    std::vector<std::exception_ptr> errors(threads);
    std::barrier start(static_cast<std::ptrdiff_t>(threads));
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            start.arrive_and_wait();
            try {
                results[t] = action(t);
            } catch (...) { errors[t] = std::current_exception(); }
        });
    }
    for (std::thread& thread : running) { thread.join(); }
    for (const std::exception_ptr& error : errors) {
        if (error) { std::rethrow_exception(error); }
    }
    return results;
}

/// Is every thread's text the one that is found alone?
void check_alike(const std::string& alone, const std::function<std::string(std::size_t)>& action) {
    CHECK(alone.size() > 100);
    for (const std::size_t threads : {2u, 8u}) {
        CAPTURE(threads);
        for (const std::string& text : together<std::string>(threads, action)) { CHECK((text == alone)); }
    }
}

/// Every figure of a pair, bit by bit.
std::string report(const logitstat::LoadedTrace& reference, const logitstat::LoadedTrace& candidate) {
    const auto c = logitstat::compare(reference, candidate, {.worst = 50, .step_curve = true});
    return reference.source.path + candidate.source.path + oracle::describe(c);
}
std::string report(const logitstat::LogitsComparison& c) {
    std::ostringstream text;
    text << std::hexfloat << oracle::describe(c);
    for (const auto* figure :
         {&c.kl, &c.reverse_kl, &c.jensen_shannon, &c.total_variation, &c.logit_rms, &c.delta_p, &c.topk_overlap}) {
        text << '\n' << (*figure)->mean << ' ' << (*figure)->se.hac.value() << ' ' << (*figure)->max_index;
        for (const double quantile : (*figure)->quantiles) { text << ' ' << quantile; }
    }
    text << '\n' << c.logit_max << ' ' << c.censored_targets;
    return text.str();
}

/// Two traces of the same positions.
struct TwoTraces {
    std::string reference = testing::generated_rows(400, 5, 1), candidate = reference;
    TwoTraces() {
        const std::string other = testing::generated_rows(400, 5, 2);
        const auto line = [](const std::string& text, std::size_t at) {
            return text.substr(at, text.find('\n', at) + 1 - at);
        };
        candidate.clear(); // chunk, pos and target of the one, all else of the other
        for (std::size_t a = 0, b = 0; a < reference.size();) {
            const std::string ours = line(reference, a), theirs = line(other, b);
            const auto columns = [](const std::string& row, int skipped) {
                std::size_t at = 0;
                for (int i = 0; i < skipped; ++i) { at = row.find('\t', at) + 1; }
                return at;
            };
            candidate += ours.substr(0, columns(ours, 3)) + theirs.substr(columns(theirs, 3));
            a += ours.size();
            b += theirs.size();
        }
    }
};

/// Rows of normal logits, as an .npy file.
std::string npy_rows(std::size_t n, std::size_t vocabulary, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> values(n * vocabulary);
    for (float& x : values) { x = static_cast<float>(random() % 65536) / 4096.0f; }
    return testing::npy("<f4", "(" + std::to_string(n) + ", " + std::to_string(vocabulary) + ")",
                        testing::packed(values));
}

/// A .kld file of two chunks of 33 tokens, 16 evaluated positions each, of a vocabulary of `vocabulary`.
std::string kld_rows(std::int32_t vocabulary, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::int32_t> tokens(66);
    for (auto& token : tokens) { token = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocabulary)); }
    std::vector<testing::KldRowBytes> rows(32);
    for (auto& row : rows) {
        row.scale = 10.0f / 65535;
        row.min_log_prob = -10;
        row.q.resize(static_cast<std::size_t>(vocabulary));
        for (auto& q : row.q) { q = static_cast<std::uint16_t>(random() % 30000); }
        row.q[random() % row.q.size()] = 65535;
    }
    return testing::kld(33, vocabulary, 2, tokens, rows);
}

} // namespace

TEST_CASE("the first use of the kernels, by all threads at once") { // first: no other test may use them before
    std::vector<float> row(1000);
    for (std::size_t i = 0; i < row.size(); ++i) { row[i] = static_cast<float>(i * 37 % 101) / 8; }
    const auto tables = together<const logitstat::simd::KernelTable*>(8, [](std::size_t t) {
        return t % 2 == 0 ? &logitstat::simd::chosen_kernels() : logitstat::simd::supported_kernels().back();
    });
    for (const auto* const table : tables) { CHECK(table == &logitstat::simd::detail::baseline_kernels()); }
    const auto sums = together<double>(
        8, [&](std::size_t) { return logitstat::simd::log_sum_exp(std::span<const float>(row)).log_sum_exp(); });
    for (const double sum : sums) { CHECK(sum == sums[0]); }
}

TEST_CASE("text traces: the first reads of a program, at once, and comparisons through one trace") {
    const TwoTraces rows;
    const TemporaryFolder folder;
    const auto a = folder.write("a.tsv", "# columns\tchunk\tpos\ttarget\tnll\ttop_ids\ttop_logits\n" + rows.reference);
    const auto b = folder.write("b.tsv", rows.candidate);
    const auto from_files = [&](std::size_t) { return report(logitstat::read_trace(a), logitstat::read_trace(b)); };
    const auto first = together<std::string>(8, from_files);
    const auto reference = logitstat::read_trace(a), candidate = logitstat::read_trace(b);
    const std::string alone = report(reference, candidate);
    for (const std::string& text : first) { CHECK((text == alone)); }
    check_alike(alone, [&](std::size_t) { return report(reference, candidate); });
}

TEST_CASE("binary traces: comparisons through one mapping, and through mappings of their own") {
    const TwoTraces rows;
    const TemporaryFolder folder;
    const auto a = folder / "a.safetensors", b = folder / "b.safetensors";
    logitstat::write_binary_trace(a, logitstat::parse_text_trace<double>(rows.reference, "a"));
    logitstat::write_binary_trace(b, logitstat::parse_text_trace<double>(rows.candidate, "b"));
    const auto reference = logitstat::read_trace(a), candidate = logitstat::read_trace(b);
    REQUIRE(reference.binary_file() != nullptr);
    check_alike(report(reference, candidate), [&](std::size_t t) {
        return t % 2 == 0 ? report(reference, candidate) : report(logitstat::read_trace(a), logitstat::read_trace(b));
    });
}

TEST_CASE("full logits: comparisons through one mapping, while another thread gives back its pages") {
    const TemporaryFolder folder;
    const auto a = folder.write("a.npy", npy_rows(60, 257, 1)), b = folder.write("b.npy", npy_rows(60, 257, 2));
    LogitsFile reference = logitstat::read_logits(a);
    const LogitsFile candidate = logitstat::read_logits(b);
    logitstat::LogitsPositions positions;
    for (token_id t = 0; t < 60; ++t) { positions.target.push_back(t); }
    logitstat::set_chunks(positions, 60, 20);
    const auto compared = [&](std::size_t) {
        return report(logitstat::compare_logits<logitstat::serial>(logitstat::rows_of(reference),
                                                                   logitstat::rows_of(candidate), positions));
    };
    const std::string alone = compared(0);
    check_alike(alone, compared);
    check_alike(alone, [&](std::size_t t) { // one gives back what the others read
        if (t == 0) {
            for (std::size_t row = 0; row <= 60; ++row) { reference.release_before(row); }
        }
        return compared(t);
    });
    // The walk that gives back pages belongs to one comparison: each thread opens the files.
    check_alike(alone, [&](std::size_t) {
        LogitsFile mine = logitstat::read_logits(a), other = logitstat::read_logits(b);
        return report(logitstat::compare_logits<logitstat::serial>(mine, other, positions));
    });
}

TEST_CASE("a .kld file: each thread decodes into a buffer of its own") {
    const TemporaryFolder folder;
    const LogitsFile base = logitstat::read_logits(folder.write("base.kld", kld_rows(131, 1)));
    const LogitsFile candidate = logitstat::read_logits(folder.write("c.npy", npy_rows(32, 131, 3)));
    const auto compared = [&](std::size_t) {
        return report(logitstat::compare_logits<logitstat::serial>(
            logitstat::rows_of(base), logitstat::rows_of(candidate), logitstat::positions_of(*base.kld())));
    };
    check_alike(compared(0), compared);
}

TEST_CASE("an error in every thread, at once, is that of one") {
    const TwoTraces rows;
    const TemporaryFolder folder;
    const auto good = folder.write("good.tsv", rows.reference);
    const auto torn = folder.write("torn.tsv", rows.candidate.substr(0, rows.candidate.size() - 9));
    const auto fails = [&](std::size_t) {
        return testing::message_of<logitstat::parse_error>(
            [&] { report(logitstat::read_trace(good), logitstat::read_trace(torn)); });
    };
    const std::string alone = fails(0);
    for (const std::string& message : together<std::string>(8, fails)) { CHECK(message == alone); }
}

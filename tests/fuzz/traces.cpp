#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz_file.hpp"
#include "fuzz/target.hpp"
#include "io/invariants.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/report/json.hpp"
#include "logitstat/trace/converted.hpp"

namespace {

using namespace logitstat;
using testing::broken_invariant;

constexpr ReadOptions keep{.keep_non_finite = true};

/// A trace however it is held, so that what follows is compiled once.
struct Sourced : TraceView<double> {
    const TraceSource& source;

    template <trace_like T>
    Sourced(const T& trace) : TraceView<double>(trace.view()), source(trace.source) {} // NOLINT: implicit on purpose
};

/// A trace that was read is sound.
void check_trace(const Sourced& trace, bool keep_non_finite = false) {
    if (keep_non_finite) {
        check_shape(trace);
        fuzz::require(!first_defect(trace, true), "a trace that was read has no defect");
        return;
    }
    const std::string broken = broken_invariant(trace);
    fuzz::require(broken.empty(), "a trace that was read is sound: " + broken);
}

std::string written_text(const Sourced& trace, WriteOptions options = {}) {
    std::ostringstream out;
    write_text_trace(out, trace, trace.source, options);
    return std::move(out).str();
}
std::string written_binary(const Sourced& trace, WriteOptions options = {}) {
    return fuzz::written_by([&](const auto& path) { write_binary_trace(path, trace, options); });
}

bool same_source(const TraceSource& a, const TraceSource& b) {
    return a.metadata == b.metadata && a.skipped == b.skipped;
}

// ---- what is read
// ------------------------------------------------------------------------------------------------------

/// Text of six decimals is a fixed point: what was read from it is written as it was.
void rewrite_text(const Sourced& trace, WriteOptions write, ReadOptions read) {
    std::string text;
    try {
        text = written_text(trace, write);
    } catch (const std::invalid_argument&) { return; } // metadata that no text holds
    const Trace<double> again = parse_text_trace<double>(text, "again", read);
    fuzz::require(same_source(again.source, trace.source), "metadata and skipped lines survive text");
    fuzz::require(written_text(again, write) == text, "text that was written is written again as it was");
}

void rewrite_binary(const Sourced& trace, WriteOptions write, ReadOptions read) {
    std::string bytes;
    try {
        bytes = written_binary(trace, write);
    } catch (const std::invalid_argument&) { return; } // metadata that no text holds
    const LoadedTrace again = read_trace(fuzz::file_of<1>(bytes), read);
    fuzz::require(testing::same_data(Sourced(again), Sourced(trace)), "a binary trace holds what was written");
    fuzz::require(same_source(again.source, trace.source), "metadata and skipped lines survive a binary trace");
    fuzz::require(written_binary(again, write) == bytes, "a binary trace is written again as it was");
}

template <class Read> auto attempt(const std::string& name, const Read& read) {
    std::optional<decltype(read())> result;
    try {
        result.emplace(read());
    } catch (const parse_error& refused) {
        fuzz::require(refused.path() == name, "an error names the file");
        fuzz::require(std::string_view(refused.what()).starts_with(name), "an error begins with the file's name");
    }
    return result;
}

void read_text(std::string_view bytes) {
    const auto read = [&](ReadOptions options) {
        return attempt("t", [&] { return parse_text_trace<double>(bytes, "t", options); });
    };
    const auto strict = read({}), lenient = read(keep), recovered = read({.recover = true});
    if (strict) {
        check_trace(*strict);
        fuzz::require(lenient && testing::same_data(Sourced(*strict), Sourced(*lenient)),
                      "a sound trace is read by whoever is less strict");
        rewrite_text(*strict, {}, {});
        rewrite_binary(*strict, {}, {});
        if (bytes.ends_with('\n')) {
            fuzz::require(recovered && testing::same_data(Sourced(*strict), Sourced(*recovered)),
                          "nothing is recovered from a whole trace");
        }
    } else if (lenient) {
        check_trace(*lenient, true);
        rewrite_text(*lenient, {.keep_non_finite = true}, keep);
        rewrite_binary(*lenient, {.keep_non_finite = true}, keep);
    }
    if (recovered) { check_trace(*recovered); }
}

void read_binary(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    const auto read = [&](ReadOptions options) {
        return attempt(path.string(), [&] { return read_trace(path, options); });
    };
    const auto strict = read({}), lenient = read(keep);
    if (strict) {
        check_trace(*strict);
        fuzz::require(lenient && testing::same_data(Sourced(*strict), Sourced(*lenient)),
                      "a sound trace is read by whoever is less strict");
        rewrite_binary(*strict, {}, {});
    } else if (lenient) {
        check_trace(*lenient, true);
        rewrite_binary(*lenient, {.keep_non_finite = true}, keep);
    }
    const auto narrow = attempt(path.string(), [&] { return MappedTrace<float>(path); });
    if (narrow) { fuzz::require(broken_invariant(*narrow).empty(), "a trace of floats is sound"); }
}

/// A text trace that is read is identical to itself, in every report. Apart from `text_trace`, which is ten times as
/// fast.
void compare_text(std::string_view bytes) {
    const auto trace = attempt("t", [&] { return parse_text_trace<double>(bytes, "t"); });
    if (!trace) { return; }
    const Comparison self = compare(Sourced(*trace), Sourced(*trace));
    fuzz::require(self.verdict == Verdict::identical && self.identical_data && self.disagreements == 0,
                  "a trace is identical to itself");
    fuzz::require(self.positions == static_cast<std::int64_t>(trace->size()), "all positions are compared");
    fuzz::require(nlohmann::json::accept(json_report(self)), "a report is JSON");
}

// ---- what a program makes in memory and writes
// -------------------------------------------------------------------------

std::string some_text(fuzz::Bytes& from, std::string_view spare) {
    // Mostly harmless, so that what follows is reached; now and then whatever the bytes are.
    const std::uint8_t kind = from.byte();
    return kind < 200 ? std::string(spare.substr(0, kind % (spare.size() + 1))) : from.text(kind % 16);
}

/// A trace that may be sound or not, as the bytes have it: most often sound.
Trace<double> made_trace(fuzz::Bytes& from) {
    TraceSource source;
    for (std::size_t line = from.byte() % 4; line > 0; --line) {
        Metadata::Line words;
        for (std::size_t word = from.byte() % 4; word > 0; --word) {
            words.push_back(some_text(from, "model \xC3\xBC"));
        }
        source.metadata.add(std::move(words));
    }
    for (std::size_t line = from.byte() % 3; line > 0; --line) { source.skipped += some_text(from, "loading") + "\n"; }
    const std::size_t k = 1 + from.byte() % 5, n = from.byte() % 8;
    auto trace = Trace<double>::with_shape(n, k);
    trace.source = std::move(source);
    const auto real = [&] { // of any size, or any double at all
        const std::uint8_t kind = from.byte();
        if (kind < 16) { return from.take<double>(); }
        return std::ldexp(static_cast<double>(from.take<std::int16_t>()), kind % 64 - 32);
    };
    const auto usually = [&](std::int32_t value) { return from.byte() < 250 ? value : from.take<std::int32_t>(); };
    for (std::size_t i = 0; i < n; ++i) {
        trace.chunk[i] = usually(static_cast<std::int32_t>(i / 4));
        trace.pos[i] = usually(static_cast<std::int32_t>(i % 4));
        trace.target[i] = usually(static_cast<std::int32_t>(from.byte()));
        trace.nll[i] = real();
        double logit = real();
        for (std::size_t j = 0; j < k; ++j) {
            trace.top_ids[j * n + i] = usually(static_cast<std::int32_t>(from.byte() * k + j));
            trace.top_logits[j * n + i] = logit;
            const double step = real();
            logit -= from.byte() < 250 ? std::fabs(step) : step;
        }
    }
    return trace;
}

/// Writes a trace made of the bytes; a writer that takes it vouches for the reader.
template <class Write, class Read> void write_and_read(std::string_view bytes, const Write& write, const Read& check) {
    fuzz::Bytes from(bytes);
    const bool keep_non_finite = from.byte() % 4 == 0;
    const Trace<double> trace = made_trace(from);
    std::string written;
    try {
        written = write(trace, WriteOptions{keep_non_finite});
    } catch (const std::invalid_argument&) { return; }
    check(trace, written, WriteOptions{keep_non_finite}, ReadOptions{.keep_non_finite = keep_non_finite});
}

void write_text(std::string_view bytes) {
    const auto write = [](const auto& trace, WriteOptions options) { return written_text(trace, options); };
    write_and_read(bytes, write, [](const auto& trace, const std::string& text, WriteOptions to, ReadOptions from) {
        const auto again = parse_text_trace<double>(text, "again", from);
        check_trace(again, from.keep_non_finite);
        fuzz::require(again.k == trace.k && again.chunk == trace.chunk && again.pos == trace.pos &&
                          again.target == trace.target && again.top_ids == trace.top_ids,
                      "whole numbers survive text");
        fuzz::require(same_source(again.source, trace.source), "metadata and skipped lines survive text");
        fuzz::require(written_text(again, to) == text, "text that was written is written again as it was");
    });
}

void write_binary(std::string_view bytes) {
    const auto write = [](const auto& trace, WriteOptions options) { return written_binary(trace, options); };
    write_and_read(bytes, write, [](const auto& trace, const std::string& file, WriteOptions to, ReadOptions from) {
        const LoadedTrace again = read_trace(fuzz::file_of(file), from);
        check_trace(again, from.keep_non_finite);
        fuzz::require(testing::same_data(Sourced(again), Sourced(trace)), "a binary trace holds what was written");
        fuzz::require(same_source(again.source, trace.source), "metadata and skipped lines survive a binary trace");
        fuzz::require(written_binary(again, to) == file, "a binary trace is written again as it was");
    });
}

// ---- seeds
// -------------------------------------------------------------------------------------------------------------

/// Traces as programs make them: of several sizes, with metadata, with chatter, with extreme numbers.
std::vector<Trace<double>> made_traces() {
    std::vector<Trace<double>> traces;
    for (const std::size_t k : {2u, 3u, 5u, 70u}) {
        const std::size_t n = k == 70 ? 2 : 6;
        auto trace = Trace<double>::with_shape(n, k);
        for (std::size_t i = 0; i < n; ++i) {
            trace.chunk[i] = static_cast<std::int32_t>(i / 4);
            trace.pos[i] = static_cast<std::int32_t>(i % 4);
            trace.target[i] = static_cast<std::int32_t>(i * 7 % 5);
            trace.nll[i] = 0.25 * static_cast<double>(i);
            for (std::size_t j = 0; j < k; ++j) {
                trace.top_ids[j * n + i] = static_cast<std::int32_t>((i + j) % k);
                trace.top_logits[j * n + i] = 12.5 - 0.5 * static_cast<double>(j * (i % 3));
            }
        }
        if (k == 3) {
            trace.source.metadata.add({"model", "m", "tokens", "6", "chunk_tokens", "4"});
            trace.source.metadata.add({"columns", "chunk", "pos", "target", "nll", "top_ids", "top_logits"});
            trace.source.metadata.add({"a remark \xC3\xBC"});
        }
        if (k == 5) {
            trace.source.skipped = "loading \xFF 100%\n";
            trace.source.metadata.add({"logits", "log_probabilities"});
            trace.top_logits[0] = 1e308;
            trace.top_logits[(k - 1) * n] = -1e308;
            trace.nll[0] = 2147483647.0;
            trace.target[0] = 2147483647;
        }
        traces.push_back(std::move(trace));
    }
    return traces;
}

std::vector<std::string> text_seeds() {
    std::vector<std::string> seeds;
    for (const auto& trace : made_traces()) { seeds.push_back(written_text(trace)); }
    const std::string row = "0\t0\t5\t1.250000\t7,8,9\t3.500000,2.500000,-1.500000";
    seeds.push_back(row); // cut, CR LF, another form of numbers, values that are not finite
    seeds.push_back("\xEF\xBB\xBF# k\tv\r\n" + row + "\r\n" + "0\t1\t6\t0.5\t4,3,2\t9,8e-3,7.25E-4\r\n");
    seeds.push_back("0\t0\t5\tinf\t7,8\tnan,-inf\n");
    seeds.push_back("llm_load: 5,6\t7\n" + row + "\n");
    seeds.push_back(row + "\n" + std::string(9, '\0'));
    return seeds;
}

struct Type {
    const char* name;
    std::size_t width;
};

/// A binary trace of three positions with two candidates as another writer may have it.
std::string foreign_trace(Type real, Type whole, const std::string& shape_of_ids = "[2, 3]") {
    std::string header = R"({"__metadata__": {"format": "logitstat-trace", "version": "1"})", data;
    const auto add = [&](const char* name, Type type, const std::string& shape, std::size_t values) {
        const std::size_t begin = data.size();
        data.append(values * type.width, '\0');
        header += ", \"" + std::string(name) + R"(": {"dtype": ")" + type.name + R"(", "shape": )" + shape +
                  R"(, "data_offsets": [)" + std::to_string(begin) + ", " + std::to_string(data.size()) + "]}";
    };
    add("nll", real, "[3]", 3);
    add("top_logits", real, "[2, 3]", 6);
    for (const char* name : {"chunk", "pos", "target"}) { add(name, whole, "[3]", 3); }
    add("top_ids", whole, shape_of_ids, 6);
    return testing::safetensors_bytes(header + "}", data);
}

std::vector<std::string> binary_seeds() {
    std::vector<std::string> seeds;
    for (const auto& trace : made_traces()) {
        seeds.push_back(written_binary(trace));
        if (trace.k == 3) {
            seeds.push_back(
                fuzz::written_by([&](const auto& path) { write_binary_trace(path, converted<float>(trace)); }));
        }
    }
    const auto trace = made_traces().front();
    seeds.push_back(fuzz::written_by([&](const auto& path) { // other types, as other writers have them
        static const std::vector<std::int64_t> wide{0, 0, 0, 0, 1, 1};
        const auto view = trace.view();
        const std::vector<Tensor> tensors{tensor_over<double>("nll", {6}, view.nll),
                                          tensor_over<double>("top_logits", {2, 6}, view.top_logits),
                                          tensor_over<std::int64_t>("chunk", {6}, std::span(wide)),
                                          tensor_over<std::int32_t>("pos", {6}, view.pos),
                                          tensor_over<std::int32_t>("target", {6}, view.target),
                                          tensor_over<std::int32_t>("top_ids", {2, 6}, view.top_ids)};
        write_safetensors(path, tensors, {{"format", "logitstat-trace"}, {"version", "1"}, {"model", "m"}});
    }));
    const Type float32{"F32", 4}, int32{"I32", 4};
    for (const Type real : {Type{"F16", 2}, {"BF16", 2}, {"F64", 8}, int32}) {
        seeds.push_back(foreign_trace(real, int32));
    }
    for (const Type whole : {Type{"I16", 2}, {"U8", 1}, {"U16", 2}, {"U32", 4}, {"I64", 8}, float32}) {
        seeds.push_back(foreign_trace(float32, whole));
    }
    for (const char* shape : {"[6]", "[1, 6]", "[3, 2]", "[6, 1]"}) {
        seeds.push_back(foreign_trace(float32, int32, shape));
    }
    return seeds;
}

/// Nothing but numbers that decide what is made.
std::vector<std::string> made_seeds() {
    std::vector<std::string> seeds{"", std::string(400, '\x20'), std::string(400, '\x33')};
    for (std::uint32_t state = 1; seeds.size() < 12;) {
        std::string bytes(600, '\0');
        for (char& byte : bytes) { byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24); }
        bytes[0] = static_cast<char>(seeds.size());
        seeds.push_back(std::move(bytes));
    }
    return seeds;
}

} // namespace

std::vector<fuzz::Target> fuzz::trace_targets() {
    return {{"text_trace", read_text, text_seeds},
            {"binary_trace", read_binary, binary_seeds},
            {"compare", compare_text, text_seeds},
            {"write_text", write_text, made_seeds},
            {"write_binary", write_binary, made_seeds}};
}

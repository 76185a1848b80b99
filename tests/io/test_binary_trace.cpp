#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/foreign_trace.hpp"
#include "io/helpers.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/io/binary_trace_reader.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/trace/converted.hpp"

namespace test_binary_trace {

using namespace testing;
using logitstat::LoadedTrace;
using logitstat::MappedTrace;
using logitstat::parse_error;
using logitstat::parse_text_trace;
using logitstat::read_trace;
using logitstat::Trace;
using logitstat::trace_like;
using logitstat::write_binary_trace;

namespace {

static_assert(trace_like<MappedTrace<float>> && trace_like<MappedTrace<double>> && trace_like<LoadedTrace>);
static_assert(std::is_same_v<LoadedTrace::real_type, double>);
static_assert(!std::is_copy_constructible_v<LoadedTrace> && !std::is_copy_constructible_v<MappedTrace<float>>);

const std::string header_text = "# model\ta model.gguf\n# corpus\twiki.txt\ttokens\t1078\n# x-unknown\t\tlast\n"
                                "# a remark\n#  two spaces \n# model\tagain\n# format\tgguf\tversion\t3\n"
                                "# columns\tchunk\tpos\ttarget\tnll\ttop_ids\ttop_logits\n";

std::string text_of(const auto& trace) {
    std::ostringstream out;
    logitstat::write_text_trace(out, trace, trace.source);
    return out.str();
}

} // namespace

// ---- round trips ---------------------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("a trace comes back bit by bit, in place, whatever its shape", Real, float, double) {
    TemporaryFolder folder;
    for (std::size_t k = 2; k <= 20; ++k) {
        for (const std::size_t n : std::initializer_list<std::size_t>{1, 2, 7, 33}) {
            CAPTURE(k);
            CAPTURE(n);
            const auto trace =
                parse_text_trace<Real>(header_text + generated_rows(n, k, static_cast<std::uint32_t>(k * n)), "t");
            const auto path = folder / "t.safetensors";
            write_binary_trace(path, trace);
            MappedTrace<Real> opened(path);
            const MappedTrace<Real> back = std::move(opened);
            CHECK(same_data(back, trace));
            CHECK(broken_invariant(back) == "");
            CHECK(back.source.metadata == trace.source.metadata);
            CHECK(back.source.path == path.string());
            CHECK(back.source.warnings.empty());
            // In place: the columns are the file's bytes.
            const auto in_file = [&](const char* name) {
                return static_cast<const void*>(back.file().find(name)->bytes.data());
            };
            CHECK(back.nll.data() == in_file("nll"));
            CHECK(back.top_logits.data() == in_file("top_logits"));
            CHECK(back.chunk.data() == in_file("chunk"));
            CHECK(back.top_ids.data() == in_file("top_ids"));
            // And once more, from the mapping.
            write_binary_trace(folder / "again.safetensors", back);
            CHECK(content(folder / "again.safetensors") == content(path));
        }
    }
}

TEST_CASE("extreme values and the sign of zero survive") {
    TemporaryFolder folder;
    auto trace = sample();
    trace.nll = {-0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()};
    trace.top_logits[0] = std::numeric_limits<double>::max();
    trace.top_logits[6] = std::numeric_limits<double>::lowest();
    trace.chunk = {0, 0, std::numeric_limits<std::int32_t>::max()};
    trace.top_ids[0] = std::numeric_limits<std::int32_t>::max();
    write_binary_trace(folder / "t", trace);
    CHECK(same_data(read_trace(folder / "t"), trace));
}

TEST_CASE("text to binary to text is the same, byte by byte: chatter, remarks, order, bytes of any encoding") {
    TemporaryFolder folder;
    const std::string chatter = "[Model] Loading...\n\n 50 %\r 99 %\x1b[0m \\x41 \"quoted\"\n";
    for (const std::string& text :
         {header_text + tsv(rows), chatter + header_text + tsv(rows), tsv(rows), chatter + tsv(rows),
          "caf\xE9 \xC3\xA9\n# model\tm\xFCller\tdevice\t\xC3\xBC\n" + tsv(rows), // Latin-1 beside UTF-8
          "caf\xC3\xA9\n# model\t\xE6\x97\xA5\xE6\x9C\xAC\n" + tsv(rows), "# \n#\n# \t\n" + tsv(rows)}) {
        CAPTURE(text);
        const auto trace = parse_text_trace(text, "t.tsv");
        CHECK((text_of(trace) == text || text.find("#\n") != text.npos)); // "#" is written "# "
        write_binary_trace(folder / "t.safetensors", trace);
        const auto back = read_trace(folder / "t.safetensors");
        CHECK(text_of(back) == text_of(trace));
        CHECK(back.source.skipped == trace.source.skipped);
        CHECK(back.source.metadata == trace.source.metadata);
        CHECK(back.source.warnings == std::vector<std::string>{});
        write_binary_trace(folder / "u.safetensors", back);
        CHECK(content(folder / "u.safetensors") == content(folder / "t.safetensors"));
    }
}

TEST_CASE("the metadata can be read by other tools") {
    TemporaryFolder folder;
    write_binary_trace(folder / "t", parse_text_trace("loading\n" + header_text + tsv(rows), "t.tsv"));
    std::string lines = header_text;
    lines.pop_back();
    CHECK(logitstat::SafetensorsFile(folder / "t").metadata() ==
          logitstat::SafetensorsMetadata{{"format", "logitstat-trace"},
                                         {"version", "1"},
                                         {"corpus", "wiki.txt"},
                                         {"model", "a model.gguf"},
                                         {"tokens", "1078"},
                                         {"x-unknown", ""},
                                         {"header_lines", lines},
                                         {"skipped_lines", "loading\n"}});
}

TEST_CASE("floats widen exactly, halves too; doubles are not rounded to float") {
    TemporaryFolder folder;
    const auto trace = parse_text_trace<float>(header_text + generated_rows(33, 5, 3), "t");
    write_binary_trace(folder / "f", trace);
    const auto widened = read_trace(folder / "f");
    CHECK(same_data(widened, logitstat::converted<double>(trace)));
    CHECK(static_cast<const void*>(widened.chunk.data()) == widened.binary_file()->find("chunk")->bytes.data());
    for (std::size_t i = 0; i < trace.size(); ++i) { CHECK(widened.nll[i] == static_cast<double>(trace.nll[i])); }
    // Once it is widened it can be stored as float again without loss.
    write_binary_trace(folder / "g", logitstat::converted<float>(widened));
    CHECK(content(folder / "g") == content(folder / "f"));

    CHECK(refusal<float>(foreign(sample()).bytes()) ==
          "tensor 'nll': is of type F64, which float cannot hold: read it as double");
    Foreign mixed = foreign(logitstat::converted<float>(sample()));
    mixed["top_logits"] = foreign(sample())["top_logits"];
    CHECK(same_data(read_trace(folder.write("m", mixed.bytes())), sample()));
    CHECK(refusal<float>(mixed.bytes()) ==
          "tensor 'top_logits': is of type F64, which float cannot hold: read it as double");

    Foreign half = foreign(sample()); // its values have few digits
    const auto view = sample();
    half["nll"] = {"nll", "F16", {3}, bytes_as<Eigen::half>(std::span<const double>(view.nll))};
    half["top_logits"] = {
        "top_logits", "BF16", {3, 3}, bytes_as<Eigen::bfloat16>(std::span<const double>(view.top_logits))};
    const auto path = folder.write("h", half.bytes());
    CHECK(same_data(read_trace(path), sample()));
    CHECK(same_data(MappedTrace<float>(path), parse_text_trace<float>(tsv(rows), "")));
}

// ---- files of other writers ----------------------------------------------------------------------------------------

TEST_CASE_TEMPLATE("a foreign file is read at any alignment", Real, float, double) {
    TemporaryFolder folder;
    const auto trace = parse_text_trace<Real>(generated_rows(13, 5, 8), "t");
    for (std::size_t spaces = 0; spaces < 8; ++spaces) {
        CAPTURE(spaces);
        const auto path = folder.write("f", foreign(trace).bytes(spaces));
        const MappedTrace<Real> back(path);
        CHECK(same_data(back, trace));
        CHECK(reinterpret_cast<std::uintptr_t>(back.nll.data()) % alignof(Real) == 0);
        CHECK(same_data(read_trace(path), logitstat::converted<double>(trace)));
    }
}

TEST_CASE("integers of any type that fit, and those that do not") {
    TemporaryFolder folder;
    const auto trace = sample();
    const auto check = [&]<class T>(T, const std::string& dtype) {
        CAPTURE(dtype);
        Foreign file = foreign(trace);
        for (const char* name : {"chunk", "pos", "target", "top_ids"}) {
            const std::vector<std::int32_t> values = [&] {
                std::vector<std::int32_t> all(file[name].data.size() / 4);
                std::memcpy(all.data(), file[name].data.data(), file[name].data.size());
                return all;
            }();
            file[name].dtype = dtype;
            file[name].data = bytes_as<T>(std::span<const std::int32_t>(values));
        }
        CHECK(same_data(read_trace(folder.write("i", file.bytes())), trace));
        if constexpr (std::is_signed_v<T>) {
            put(file["target"], 1, T(-1));
            CHECK(refusal(file.bytes()) == "tensor 'target': position 1 (chunk 0, pos 1): negative target");
        }
        if constexpr (sizeof(T) > 4 || (sizeof(T) == 4 && std::is_unsigned_v<T>)) {
            put(file["top_ids"], 5, T(2147483648u));
            CHECK(refusal(file.bytes()) ==
                  "tensor 'top_ids': position 2 (chunk 1, pos 0): 2147483648 does not fit 32 bits with a sign");
            put(file["chunk"], 2, std::numeric_limits<T>::max());
            CHECK(refusal(file.bytes()) ==
                  "tensor 'chunk': position 2: " + std::to_string(std::numeric_limits<T>::max()) +
                      " does not fit 32 bits with a sign");
        }
    };
    check(std::int8_t{}, "I8");
    check(std::int16_t{}, "I16");
    check(std::int32_t{}, "I32");
    check(std::int64_t{}, "I64");
    check(std::uint8_t{}, "U8");
    check(std::uint16_t{}, "U16");
    check(std::uint32_t{}, "U32");
    check(std::uint64_t{}, "U64");
}

TEST_CASE("flat keys alone are enough, more tensors do no harm, and contradictions are told") {
    TemporaryFolder folder;
    Foreign file = foreign(sample());
    file.metadata = R"({"tokens":"12","version":"1","device":"TPU \u00fc","format":"logitstat-trace"})";
    file.tensors.push_back({"entropy", "F32", {3}, std::string(12, 'x')});
    const auto plain = read_trace(folder.write("f", file.bytes()));
    CHECK(same_data(plain, sample()));
    CHECK(plain.source.metadata.find("device") == "TPU \xC3\xBC");
    CHECK(plain.source.metadata.lines().size() == 2);
    CHECK(plain.source.warnings.empty());

    file.metadata = R"({"format":"logitstat-trace","version":"1","model":"other","added":"by a tool",)"
                    R"("header_lines":"# model\tm\tdevice\td"})";
    const auto path = folder.write("g", file.bytes());
    const auto both = read_trace(path);
    CHECK(both.source.metadata.find("model") == "m");
    CHECK(both.source.metadata.find("added") == "by a tool");
    CHECK(both.source.warnings ==
          std::vector<std::string>{path.string() +
                                   ": its __metadata__ says 'model' is 'other', its header_lines 'm', which is taken"});

    const auto with = [&](const std::string& metadata) {
        file.metadata = metadata;
        return refusal(file.bytes());
    };
    CHECK(with("{}") ==
          "not a binary trace: the __metadata__ of this safetensors file has no format 'logitstat-trace'");
    CHECK(with(R"({"format":"pt"})") ==
          "not a binary trace: the __metadata__ of this safetensors file has no format 'logitstat-trace'");
    CHECK(with(R"({"format":"logitstat-trace"})") ==
          "version unknown of the binary trace: this reader knows version 1");
    CHECK(with(R"({"format":"logitstat-trace","version":"2"})") ==
          "version '2' of the binary trace: this reader knows version 1");
    CHECK(with(R"({"format":"logitstat-trace","version":"1","header_lines":"# a\nb"})") ==
          "__metadata__: a line of header_lines without '#': 'b'");
    CHECK(with(R"({"format":"logitstat-trace","version":"1","header_lines_latin1":"# \u0100"})") ==
          "__metadata__: header_lines_latin1 holds a character above U+00FF");
    CHECK(with(R"({"format":"logitstat-trace","version":"1","skipped_lines":"a\n","skipped_lines_latin1":"a\n"})") ==
          "__metadata__ has both skipped_lines and skipped_lines_latin1");
}

} // namespace test_binary_trace

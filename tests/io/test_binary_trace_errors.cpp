#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/foreign_trace.hpp"
#include "io/helpers.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/read_trace.hpp"

namespace test_binary_trace_errors {

using namespace testing;
using logitstat::LoadedTrace;
using logitstat::MappedTrace;
using logitstat::parse_error;
using logitstat::parse_text_trace;
using logitstat::read_trace;
using logitstat::Trace;
using logitstat::write_binary_trace;

// ---- what is refused -----------------------------------------------------------------------------------------------

TEST_CASE("tensors that are no trace") {
    for (const char* name : {"chunk", "pos", "target", "nll", "top_ids", "top_logits"}) {
        CAPTURE(name);
        Foreign file = foreign(sample());
        file.remove(name);
        CHECK(refusal(file.bytes()) == "tensor '" + std::string(name) + "': is missing");
        file = foreign(sample());
        const auto shape = file[name].shape;
        const bool planes = shape.size() == 2;
        const bool sets_shape = file[name].name == "nll" || file[name].name == "top_ids";
        file[name].shape = planes ? std::vector<std::size_t>{9} : std::vector<std::size_t>{3, 1};
        CHECK(refusal(file.bytes()) == "tensor '" + std::string(name) + "': shape " + (planes ? "[9]" : "[3, 1]") +
                                           ", expected " +
                                           (sets_shape ? (planes ? "[k, n]" : "[n]")
                                            : planes   ? "[3, 3]"
                                                       : "[3]"));
    }
    Foreign file = foreign(sample());
    file["nll"].dtype = "I64";
    CHECK(refusal(file.bytes()) == "tensor 'nll': is of type I64, expected F32 or F64");
    file = foreign(sample());
    file["target"].dtype = "F32";
    CHECK(refusal(file.bytes()) == "tensor 'target': is of type F32, expected I32 or another integer type");
    file = foreign(sample());
    file["top_ids"].shape = {1, 9};
    CHECK(refusal(file.bytes()) == "tensor 'top_ids': holds 1 token id a position, at least 2 are needed for a gap");
    file = foreign(sample());
    file["pos"] = {"pos", "I32", {2}, std::string(8, '\0')};
    CHECK(refusal(file.bytes()) == "tensor 'pos': shape [2], expected [3]");
    file = foreign(sample());
    file["top_logits"].shape = {9, 1}; // the number of values is right
    CHECK(refusal(file.bytes()) == "tensor 'top_logits': shape [9, 1], expected [3, 3]");
    file["nll"] = {"nll", "F64", {0}, ""};
    CHECK(refusal(file.bytes()) == "tensor 'nll': holds no position");
}

TEST_CASE_TEMPLATE("contents that no reader takes, and where", Real, float, double) {
    const auto trace = parse_text_trace<Real>(tsv(rows), "t"); // planes of three: [rank][position]
    constexpr Real infinity = std::numeric_limits<Real>::infinity(), nan = std::numeric_limits<Real>::quiet_NaN();
    const auto spoilt = [&](const char* name, std::size_t index, auto value) {
        Foreign file = foreign(trace);
        put(file[name], index, value);
        return refusal<Real>(file.bytes());
    };
    constexpr std::int32_t minus = -1;
    CHECK(spoilt("chunk", 0, minus) == "tensor 'chunk': position 0 (chunk -1, pos 0): negative chunk");
    CHECK(spoilt("pos", 1, minus) == "tensor 'pos': position 1 (chunk 0, pos -1): negative pos");
    CHECK(spoilt("pos", 1, std::int32_t{0}) ==
          "tensor 'pos': position 1 (chunk 0, pos 0): chunk and pos do not increase");
    CHECK(spoilt("chunk", 1, std::int32_t{2}) ==
          "tensor 'pos': position 2 (chunk 1, pos 0): chunk and pos do not increase");
    CHECK(spoilt("target", 2, minus) == "tensor 'target': position 2 (chunk 1, pos 0): negative target");
    CHECK(spoilt("nll", 2, nan) == "tensor 'nll': position 2 (chunk 1, pos 0): not finite");
    CHECK(spoilt("nll", 0, -infinity) == "tensor 'nll': position 0 (chunk 0, pos 0): not finite");
    CHECK(spoilt("top_ids", 7, minus) == "tensor 'top_ids': position 1 (chunk 0, pos 1): negative token id (rank 3)");
    CHECK(spoilt("top_ids", 3 + 2, std::int32_t{1}) ==
          "tensor 'top_ids': position 2 (chunk 1, pos 0): token id repeats");
    CHECK(spoilt("top_logits", 4, nan) == "tensor 'top_logits': position 1 (chunk 0, pos 1): not finite (rank 2)");
    CHECK(spoilt("top_logits", 0, infinity) == "tensor 'top_logits': position 0 (chunk 0, pos 0): not finite (rank 1)");
    CHECK(spoilt("top_logits", 8, Real(4.5)) ==
          "tensor 'top_logits': position 2 (chunk 1, pos 0): logits are not descending");

    // The writer refuses the same before the first byte.
    TemporaryFolder folder;
    const auto refused = [&](const std::function<void(Trace<Real>&)>& spoil) {
        auto bad = trace;
        spoil(bad);
        const auto text = message_of<std::invalid_argument>([&] { write_binary_trace(folder / "t", bad); });
        CHECK(folder.names().empty());
        return text;
    };
    CHECK(refused([&](auto& t) { t.nll[1] = nan; }) == "trace: non-finite nll at position 1 (chunk 0, pos 1)");
    CHECK(refused([&](auto& t) { t.top_ids[6] = t.top_ids[0]; }) == "position 0: token id repeats");
    CHECK(refused([&](auto& t) { t.top_logits[4] = Real(9.5); }) == "position 1: logits are not descending");
    CHECK(refused([&](auto& t) { t.target.pop_back(); }) == "trace: column target has 2 values, expected 3");
    CHECK(refused([&](auto& t) { t = Trace<Real>::with_shape(0, 2); }) ==
          "a trace without positions cannot be written");
    CHECK(refused([&](auto& t) {
              t.source.metadata.add({"k", "a\nb"});
          }) == R"(metadata with a tab, a line break or a control byte: 'a\x0ab')");
}

TEST_CASE("what merely looks wrong is a warning, as for a text trace") {
    TemporaryFolder folder;
    const std::string text =
        "# chunks\t2\tchunk_tokens\t8\n# columns\tpos\tchunk\n" + tsv("0 0 5 -1.250000 7,8 3.500000,2.500000\n");
    const auto from_text = parse_text_trace(text, "NAME");
    REQUIRE(from_text.source.warnings.size() == 3);
    write_binary_trace(folder / "t", from_text);
    auto warnings = read_trace(folder / "t").source.warnings;
    for (std::string& warning : warnings) { warning = replaced(warning, (folder / "t").string(), "NAME"); }
    CHECK(warnings == from_text.source.warnings);
}

// ---- options -------------------------------------------------------------------------------------------------------

TEST_CASE("non-finite values are kept when asked, in either format, and compare leaves their positions out") {
    TemporaryFolder folder;
    const std::string text =
        tsv("0 0 5 nan 7,8 3.5,2.5\n0 1 5 1.5 7,8 inf,2.5\n0 2 5 1.5 7,8 3.5,-inf\n0 3 5 1.5 7,8 3.5,2.5\n"
            "0 4 5 inf 8,7 nan,nan\n0 5 5 2.5 8,7 3.5,2.5\n");
    const auto path = folder.write("t.tsv", text);
    CHECK(message_of<parse_error>([&] { read_trace(path); }) == path.string() + ":1:7: nll is not finite: 'nan'");
    const auto kept = read_trace(path, {.keep_non_finite = true});
    REQUIRE(kept.size() == 6);
    CHECK(std::isnan(kept.nll[0]));
    CHECK(kept.logits(0)[1] == std::numeric_limits<double>::infinity());

    const auto binary =
        folder.write("t.safetensors", foreign(parse_text_trace(text, "t", {.keep_non_finite = true})).bytes());
    CHECK(message_of<parse_error>([&] { read_trace(binary); }) ==
          binary.string() + ": tensor 'nll': position 0 (chunk 0, pos 0): not finite");
    const auto mapped = read_trace(binary, {.keep_non_finite = true});
    CHECK(same_data(mapped, kept));

    const auto c = logitstat::compare(kept, mapped, {.non_finite = logitstat::non_finite_policy::skip});
    CHECK(c.skipped_non_finite == 4);
    CHECK(c.positions == 2);
    CHECK_THROWS_AS(logitstat::compare(kept, mapped), std::invalid_argument);

    // Everything else stays as strict.
    const auto refused = [&](const std::string& row) {
        return message_of<parse_error>([&] { parse_text_trace(tsv(row), "t", {.keep_non_finite = true}); });
    };
    CHECK(refused("0 0 5 nanx 7,8 3,2\n") == "t:1:7: trailing garbage after nll: 'nanx'");
    CHECK(refused("0 0 5 1e999 7,8 3,2\n") == "t:1:7: nll is out of range: '1e999'");
    CHECK(refused("0 0 5 nan 7,8 2,3\n") == "t:1:17: logits are not descending: '3'");
    CHECK(refused("0 0 5 1 7,8 -inf,3\n") == "t:1:18: logits are not descending: '3'");
}

TEST_CASE("recover drops a last line without a newline, whatever it looks like, and nothing else") {
    const std::string whole = "loading\n# model\tm\n" + tsv(row0 + row1);
    const std::string tail = tsv(row2);
    const auto recovered = [](const std::string& text) { return parse_text_trace(text, "t", {.recover = true}); };
    for (std::size_t size = 1; size < tail.size(); ++size) { // the last of them is a whole row
        CAPTURE(size);
        const auto trace = recovered(whole + tail.substr(0, size));
        CHECK(trace.size() == 2);
        REQUIRE(trace.source.warnings.size() == 1);
        CHECK(trace.source.warnings[0] ==
              "t:5: the last line has no newline and was dropped: " + logitstat::detail::excerpt(tail.substr(0, size)));
    }
    CHECK(recovered(whole + tail).size() == 3);
    CHECK(recovered(whole + tail).source.warnings.empty());
    const auto error = [&](const std::string& text) { return message_of<parse_error>([&] { recovered(text); }); };
    CHECK(contains(error(tail.substr(0, 20)), "t: no data rows"));
    CHECK(contains(error("loading\n" + tail.substr(0, 20)), "t: no data rows"));
    CHECK(contains(error(whole + "done\n" + tail.substr(0, 9)), "t:5:1: expected 6"));
    CHECK(contains(error(whole + "\n"), "t:5:1: expected 6")); // a finished line is not dropped
    CHECK(contains(error(""), "the file is empty"));

    TemporaryFolder folder;
    CHECK(read_trace(folder.write("t", whole + "0\t2"), {.recover = true}).size() == 2);
    write_binary_trace(folder / "b", sample());
    CHECK(read_trace(folder / "b", {.recover = true}).size() == 3);
    const std::string bytes = content(folder / "b");
    CHECK_THROWS_AS(read_trace(folder.write("c", bytes.substr(0, bytes.size() - 1)), {.recover = true}), parse_error);
}

TEST_CASE("a loaded trace keeps its columns when it moves") {
    TemporaryFolder folder;
    write_binary_trace(folder / "b", sample());
    const auto text = folder.write("t.tsv", tsv(rows));
    for (const auto& path : {folder / "b", text}) {
        std::vector<LoadedTrace> many;
        for (int i = 0; i < 9; ++i) { many.push_back(read_trace(path)); } // grows, and so moves
        for (const auto& one : many) { CHECK(same_data(one, sample())); }
        CHECK((many[0].binary_file() == nullptr) == (path == text));
    }
}

// ---- damage --------------------------------------------------------------------------------------------------------

TEST_CASE("a binary trace that is cut at any byte is refused") {
    TemporaryFolder folder;
    write_binary_trace(folder / "t", sample());
    const std::string bytes = content(folder / "t");
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(read_trace(folder.write("cut", bytes.substr(0, size))), parse_error);
    }
}

TEST_CASE_TEMPLATE("a damaged binary trace is refused or valid", Real, float, double) {
    TemporaryFolder folder;
    write_binary_trace(folder / "t",
                       parse_text_trace<Real>("# model\ta model\ttokens\t1078\n" + generated_rows(12, 3, 5), "t"));
    const std::string valid = content(folder / "t");
    std::uint64_t length = 0;
    std::memcpy(&length, valid.data(), 8);
    std::mt19937 random(20240602);
    const auto below = [&](std::size_t n) { return random() % n; };
    int refused = 0, read = 0;
    for (int i = 0; i < 10000; ++i) {
        std::string bytes = valid;
        for (std::size_t rounds = 1 + below(3); rounds-- > 0;) {
            const bool in_header = below(3) == 0;
            const std::size_t at = in_header ? below(length + 8) : 8 + length + below(valid.size() - 8 - length);
            if (in_header && below(2) == 0) { // digits of shapes, offsets and names of types
                const auto digit = bytes.find_first_of("0123456789", at);
                if (digit != bytes.npos) { bytes[digit] = static_cast<char>('0' + below(10)); }
            } else if (below(2) == 0) {
                bytes[at] = static_cast<char>(random() & 255);
            } else {
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
            }
        }
        const auto path = folder.write("m", bytes);
        CAPTURE(i);
        const bool keep = below(4) == 0;
        try {
            const MappedTrace<Real> trace(path, {.keep_non_finite = keep});
            if (!keep) { CHECK(broken_invariant(trace) == ""); }
            ++read;
        } catch (const parse_error& e) {
            CHECK(std::string_view(e.what()).starts_with(path.string() + ": "));
            ++refused;
        }
    }
    CHECK(refused > 2000);
    CHECK(read > 1000);
}

} // namespace test_binary_trace_errors

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"

namespace test_text_trace_writer {

using logitstat::Metadata;
using logitstat::parse_text_trace;
using logitstat::Trace;
using namespace testing;

namespace {

template <class T> std::string written(const T& trace, const Metadata& metadata = {}) {
    std::ostringstream out;
    logitstat::write_text_trace(out, trace, metadata);
    return out.str();
}

/// The message of the refusal; checks that nothing was written before it.
template <class T> std::string refusal(const T& trace, const Metadata& metadata = {}) {
    std::ostringstream out;
    const std::string message =
        message_of<std::invalid_argument>([&] { logitstat::write_text_trace(out, trace, metadata); });
    CHECK(out.str() == "");
    return message;
}

template <class Real> Trace<Real> valid() { return parse_text_trace<Real>(tsv(rows), "t.tsv"); }

const std::string metadata_text = "# model\ta model.gguf\n# corpus\twiki.txt\ttokens\t1078\n# x-unknown\t\tlast\n"
                                  "# a remark\n# columns\tchunk\tpos\n";

} // namespace

TEST_CASE_TEMPLATE("text to trace to text is the same, byte by byte", Real, float, double) {
    const auto round_trip = [](const std::string& text) {
        const auto trace = parse_text_trace<Real>(text, "t.tsv");
        return written(trace, trace.source.metadata);
    };
    SUBCASE("small") {
        const std::string text = metadata_text + tsv(rows);
        CHECK(round_trip(text) == text);
    }
    SUBCASE("signs of zero and extremes that six decimals can hold") {
        const std::string text =
            tsv("0 0 5 -0.000000 7,8,9 0.000000,-0.000000,-8192.000000\n"
                "2147483647 2147483647 0 0.015625 2147483647,0,1 1048576.000000,0.500000,0.500000\n");
        CHECK(round_trip(text) == text);
    }
    SUBCASE("what is not of the writers' form becomes it") {
        CHECK(round_trip("\xEF\xBB\xBFloading\n#model\tm\r\n" + tsv("0 0 5 1 7,8 2,1e0")) ==
              tsv("#_model m\n0 0 5 1.000000 7,8 2.000000,1.000000\n"));
    }
}

TEST_CASE("text to trace to text is the same over several blocks of output") {
    for (const std::size_t k : std::initializer_list<std::size_t>{2, 7, 70}) {
        const std::string text = metadata_text + generated_rows(3000, k, 17);
        REQUIRE(text.size() > (1 << 17));
        const auto trace = parse_text_trace(text, "t.tsv");
        CHECK((written(trace, trace.source.metadata) == text)); // not decomposed: a failure would print megabytes
    }
}

TEST_CASE("trace to text to trace keeps what six decimals can tell") {
    auto trace = valid<double>();
    trace.nll = {0.1234564, 1e-9, 123456.7891234};
    trace.top_logits[0] = std::numeric_limits<double>::max();
    trace.top_logits[6] = std::numeric_limits<double>::lowest();
    const auto back = parse_text_trace(written(trace), "t.tsv");
    CHECK(same_bits(back.nll, {0.123456, 0.0, 123456.789123}));
    CHECK(same_bits(back.top_logits, trace.top_logits));
    CHECK(written(trace.view()) == written(trace)); // a view writes as its trace does
}

TEST_CASE_TEMPLATE("the writer refuses what the reader would refuse, before the first byte", Real, float, double) {
    auto trace = valid<Real>(); // planes of three: [rank][position]
    constexpr Real infinity = std::numeric_limits<Real>::infinity(), nan = std::numeric_limits<Real>::quiet_NaN();
    REQUIRE(written(trace) == tsv(rows));

    SUBCASE("NaN nll") {
        trace.nll[1] = nan;
        CHECK(refusal(trace) == "trace: non-finite nll at position 1 (chunk 0, pos 1)");
    }
    SUBCASE("infinite nll") {
        trace.nll[2] = infinity;
        CHECK(refusal(trace) == "trace: non-finite nll at position 2 (chunk 1, pos 0)");
    }
    SUBCASE("infinite logit") {
        trace.top_logits[8] = -infinity;
        CHECK(refusal(trace) == "trace: non-finite logit of rank 3 at position 2 (chunk 1, pos 0)");
    }
    SUBCASE("NaN logit") {
        trace.top_logits[0] = nan;
        CHECK(refusal(trace) == "trace: non-finite logit of rank 1 at position 0 (chunk 0, pos 0)");
    }
    SUBCASE("ascending") {
        trace.top_logits[4] = Real(9.5);
        CHECK(refusal(trace) == "position 1: logits are not descending");
    }
    SUBCASE("repeated id") {
        trace.top_ids[6] = trace.top_ids[0];
        CHECK(refusal(trace) == "position 0: token id repeats");
    }
    SUBCASE("negative id") {
        trace.top_ids[8] = -1;
        CHECK(refusal(trace) == "position 2: negative token id (rank 3)");
    }
    SUBCASE("negative target") {
        trace.target[0] = -1;
        CHECK(refusal(trace) == "position 0: negative target");
    }
    SUBCASE("negative chunk") {
        trace.chunk[0] = -1;
        CHECK(refusal(trace) == "position 0: negative chunk");
    }
    SUBCASE("negative pos") {
        trace.pos[2] = -1;
        CHECK(refusal(trace) == "position 2: negative pos");
    }
    SUBCASE("repeated position") {
        trace.pos[1] = 0;
        CHECK(refusal(trace) == "position 1: chunk and pos do not increase");
    }
    SUBCASE("chunk goes back") {
        trace.chunk = {1, 1, 0};
        CHECK(refusal(trace) == "position 2: chunk and pos do not increase");
    }
    SUBCASE("k of 1") {
        CHECK(refusal(Trace<Real>::with_shape(3, 1)) == "trace: k is 1, at least 2 candidates are needed");
    }
    SUBCASE("columns of unequal length") {
        trace.target.pop_back();
        CHECK(refusal(trace) == "trace: column target has 2 values, expected 3");
    }
    SUBCASE("empty") { CHECK(refusal(Trace<Real>::with_shape(0, 2)) == "a trace without positions cannot be written"); }
}

TEST_CASE("metadata that would not be read back is refused") {
    const auto with = [](Metadata::Line words) {
        Metadata metadata;
        metadata.add({"model", "m"});
        metadata.add(std::move(words));
        return metadata;
    };
    CHECK(refusal(valid<double>(), with({"key", "a\tb"})) ==
          R"(metadata with a tab, a line break or a control byte: 'a\x09b')");
    CHECK(refusal(valid<double>(), with({"key", "a\nb"})) ==
          R"(metadata with a tab, a line break or a control byte: 'a\x0ab')");
    CHECK(refusal(valid<double>(), with({"key", "a\r"})) ==
          R"(metadata with a tab, a line break or a control byte: 'a\x0d')");
    CHECK(refusal(valid<double>(), with({"ke\ty"})) ==
          R"(metadata with a tab, a line break or a control byte: 'ke\x09y')");
    CHECK(refusal(valid<double>(), with({"key", std::string(1, '\0')})) ==
          R"(metadata with a tab, a line break or a control byte: '\x00')");
    CHECK(refusal(valid<double>(), with({"key", "\x1b[0m"})) ==
          R"(metadata with a tab, a line break or a control byte: '\x1b[0m')");

    const Metadata odd = with({" # key", "caf\xC3\xA9", "", "#", " "});
    CHECK(parse_text_trace(written(valid<double>(), odd), "t.tsv").source.metadata == odd);
}

TEST_CASE("what a reader takes off the lines ahead of the data is written once more") {
    const auto round_trip = [](const std::string& skipped) {
        auto trace = valid<double>();
        trace.source.skipped = skipped;
        std::ostringstream out;
        logitstat::write_text_trace(out, trace, trace.source);
        const auto again = parse_text_trace(out.str(), "t.tsv");
        CHECK(same_data(again, trace));
        return again.source.skipped;
    };
    for (const std::string skipped : {"loading\n", "loading\r\n", "\r\n", "a\r\r\n\nb\r\n", "\xEF\xBB\xBF\n",
                                      "\xEF\xBB\xBF# x\n", "\xEF\xBB\xBF\xEF\xBB\xBFx\n", "x\n\xEF\xBB\xBF\n"}) {
        CAPTURE(skipped);
        CHECK(round_trip(skipped) == skipped);
    }
}

TEST_CASE("a file appears with the trace's own metadata, or not at all") {
    TemporaryFolder folder;
    const std::string text = metadata_text + tsv(rows);
    auto trace = parse_text_trace<float>(text, "t.tsv");
    logitstat::write_text_trace(folder / "t.tsv", trace);
    CHECK(content(folder / "t.tsv") == text);

    trace.nll[1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(message_of<std::invalid_argument>([&] { logitstat::write_text_trace(folder / "t.tsv", trace); }) != "");
    CHECK(message_of<std::invalid_argument>([&] { logitstat::write_text_trace(folder / "new.tsv", trace); }) != "");
    CHECK(content(folder / "t.tsv") == text);
    CHECK(folder.names() == std::set<std::string>{"t.tsv"});
}

} // namespace test_text_trace_writer

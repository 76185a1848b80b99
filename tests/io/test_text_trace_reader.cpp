#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_reader.hpp"

namespace test_text_trace_reader {

using logitstat::parse_error;
using logitstat::parse_text_trace;
using namespace testing;

namespace {

template <class Real = double> logitstat::Trace<Real> parse(const std::string& text) {
    return parse_text_trace<Real>(text, "t.tsv");
}

using Line = logitstat::Metadata::Line;

} // namespace

TEST_CASE_TEMPLATE("columns are filled plane by plane", Real, float, double) {
    const auto trace = parse<Real>(tsv(rows));
    CHECK(trace.k == 3);
    CHECK(trace.size() == 3);
    CHECK(trace.chunk == logitstat::Column<std::int32_t>{0, 0, 1});
    CHECK(trace.pos == logitstat::Column<std::int32_t>{0, 1, 0}); // pos may start again with a new chunk
    CHECK(trace.target == logitstat::Column<std::int32_t>{5, 6, 7});
    CHECK(same_bits(trace.nll, {Real(1.25), Real(0.5), Real(2)}));
    CHECK(trace.top_ids == logitstat::Column<std::int32_t>{7, 4, 1, 8, 3, 5, 9, 2, 6});
    CHECK(same_bits(trace.top_logits, {Real(3.5), Real(9), Real(4), Real(2.5), Real(8), Real(4), Real(-1.5), Real(7),
                                       Real(0.25)})); // two equal logits: they descend
    CHECK(trace.source.path == "t.tsv");
    CHECK(trace.source.skipped_lines() == 0);
    CHECK(trace.source.warnings.empty());
    CHECK(trace.source.metadata.empty());
    CHECK(broken_invariant(trace) == "");
}

TEST_CASE("metadata keeps its order, unknown keys and keys without a value") {
    const auto trace = parse("# model\ta model.gguf\n#device\tCUDA\n"
                             "# corpus\twiki.txt\ttokens\t1078\n# x-unknown\t\tlast\n# a remark\n#\n"
                             "# columns\tchunk\tpos\tdevice\n" +
                             tsv(rows));
    CHECK(trace.source.metadata.lines() == std::vector<Line>{{"model", "a model.gguf"},
                                                             {"device", "CUDA"},
                                                             {"corpus", "wiki.txt", "tokens", "1078"},
                                                             {"x-unknown", "", "last"},
                                                             {"a remark"},
                                                             {""},
                                                             {"columns", "chunk", "pos", "device"}});
    CHECK(trace.source.metadata.find("tokens") == "1078");
    CHECK(trace.source.skipped_lines() == 0);
    REQUIRE(trace.source.warnings.size() == 1); // other columns than these would be read wrongly without a word
    CHECK(trace.source.warnings[0].find("'columns' line names other columns") != std::string::npos);
    CHECK(same_data(trace, parse(tsv(rows))));
}

TEST_CASE("line ends and byte order mark leave no mark on the trace") {
    const std::string text = "# model\tm\n\nchatter\n" + tsv(rows);
    const auto expected = parse(text);
    const auto check_same = [&](const std::string& variant) {
        const auto trace = parse(variant);
        CHECK(same_data(trace, expected));
        CHECK(trace.source.metadata == expected.source.metadata);
        CHECK(trace.source.skipped_lines() == 2);
        CHECK(trace.source.warnings.empty());
    };
    SUBCASE("CRLF everywhere") { check_same(replaced(text, "\n", "\r\n")); }
    SUBCASE("CRLF here and there") {
        // Every subset of the six line ends.
        for (unsigned subset = 0; subset < 64; ++subset) {
            std::string mixed;
            unsigned line = 0;
            for (const char c : text) {
                if (c == '\n' && ((subset >> line++) & 1) != 0) { mixed += '\r'; }
                mixed += c;
            }
            CAPTURE(subset);
            check_same(mixed);
        }
    }
    SUBCASE("byte order mark") { check_same("\xEF\xBB\xBF" + text); }
    SUBCASE("byte order mark and CRLF") { check_same("\xEF\xBB\xBF" + replaced(text, "\n", "\r\n")); }
    SUBCASE("no newline at the end") { check_same(text.substr(0, text.size() - 1)); }
    SUBCASE("a carriage return at the end") { check_same(text.substr(0, text.size() - 1) + "\r"); }
}

TEST_CASE("byte order mark directly ahead of the data") { CHECK(parse("\xEF\xBB\xBF" + tsv(rows)).size() == 3); }

TEST_CASE("a last row without newline") {
    const auto warnings = [](const std::string& last_row) { return parse(tsv(row0 + last_row)).source.warnings; };
    SUBCASE("as many decimals as its other numbers: whole") {
        CHECK(warnings("0 1 6 0.500000 4,3,2 9.000000,8.000000,7.000000").empty());
        CHECK(warnings("0 1 6 0.50 4,3,2 9.00,8.00,-7.25").empty());
    }
    SUBCASE("where decimals vary it may be cut, which nobody can tell") {
        const std::vector<std::string> expected{
            "t.tsv:2: the last row has no newline and may be cut inside its last number '7'"};
        CHECK(warnings("0 1 6 0.5 4,3,2 9.25,8.125,7") == expected);
        CHECK(warnings("0 1 6 0.5 4,3,2 9,8,7") == expected);   // no decimals at all
        CHECK(warnings("0 1 6 5e-1 4,3,2 9,8,7") == expected);  // an exponent
        CHECK(warnings("0 1 6 0.5 4,3,2 9.5,8,7") == expected); // only one differs
    }
    SUBCASE("with a carriage return it is whole, whatever its decimals") {
        CHECK(warnings("0 1 6 0.50 4,3,2 9.00,8.00,7\r").empty());
    }
    SUBCASE("with a newline it is whole, whatever its decimals") {
        CHECK(warnings("0 1 6 0.50 4,3,2 9.00,8.00,7\n").empty());
    }
}

TEST_CASE("chatter ahead of the data is skipped and counted") {
    const auto skipped = [](const std::string& chatter) {
        const auto trace = parse(chatter + tsv(rows));
        CHECK(same_data(trace, parse(tsv(rows))));
        return trace.source.skipped_lines();
    };
    CHECK(skipped("loading model\n") == 1);
    CHECK(skipped("\n\n \n\t\n") == 4);
    CHECK(skipped("a\n# model\tm\nb\r\n") == 2);
    CHECK(skipped("chunk\tpos\ttarget\tnll\ttop_ids\ttop_logits\n") == 1); // a header line without '#'
    CHECK(skipped("llama_model_loader: - kv 0: general.architecture str\n12 layers\t3 heads\n") == 2);
    CHECK(skipped("progress 10%\r progress 100%\r\n\x1b[32mready\x1b[0m\n") == 2);
    CHECK(skipped("\xff\xfe invalid UTF-8 \xc3\n") == 1);
    CHECK(skipped(std::string(1 << 20, '.') + "\n") == 1); // a megabyte
    CHECK(skipped("7\n3.5\n1,2,3\n") == 3);
}

TEST_CASE_TEMPLATE("a row of a megabyte is read", Real, float, double) {
    constexpr std::size_t k = 60000;
    const auto row = generated_rows(1, k, 1);
    REQUIRE(row.size() > 1 << 20);
    const auto trace = parse<Real>(row);
    CHECK(trace.k == k);
    CHECK(trace.size() == 1);
    CHECK(broken_invariant(trace) == "");
    CHECK(trace.top_ids[k - 1] % static_cast<std::int32_t>(k) == static_cast<std::int32_t>(k - 1));
}

TEST_CASE("each k from 2 over the border where the search for repeated ids changes") {
    for (const std::size_t k : std::initializer_list<std::size_t>{2, 3, 63, 64, 65, 66, 200}) {
        const auto trace = parse(generated_rows(9, k, 3));
        CAPTURE(k);
        CHECK(trace.k == k);
        CHECK(trace.size() == 9);
        CHECK(broken_invariant(trace) == "");
    }
}

TEST_CASE("the shortest rows that there can be are all read") {
    std::string text;
    for (char chunk = '0'; chunk <= '9'; ++chunk) {
        for (char pos = '0'; pos <= '9'; ++pos) { text += tsv(std::string{chunk, ' ', pos} + " 0 0 0,1 0,0\n"); }
    }
    CHECK(parse(text).size() == 100);
    CHECK(parse(text.substr(0, text.size() - 1)).size() == 100);
}

TEST_CASE("the widest values are read") {
    const auto trace = parse(
        tsv("2147483647 2147483647 2147483647 0.0 2147483647,0 1.7976931348623157e308,-1.7976931348623157e308\n"));
    CHECK(trace.chunk[0] == 2147483647);
    CHECK(trace.pos[0] == 2147483647);
    CHECK(trace.target[0] == 2147483647);
    CHECK(trace.top_ids[0] == 2147483647);
    CHECK(trace.top_logits[0] == std::numeric_limits<double>::max());
    CHECK(trace.top_logits[1] == std::numeric_limits<double>::lowest());
    CHECK(parse(tsv("3 9 0 0 1,2 2,1\n7 2 0 0 1,2 2,1\n7 8 0 0 1,2 2,1\n")).size() == 3); // gaps in chunk and pos
}

TEST_CASE_TEMPLATE("negative zero is a valid value and keeps its sign", Real, float, double) {
    const auto trace = parse<Real>(tsv("0 0 5 -0.000000 7,8,9 0.000000,-0.000000,0.000000\n"));
    CHECK(same_bits(trace.nll, {Real(-0.0)}));
    CHECK(same_bits(trace.top_logits, {Real(0.0), Real(-0.0), Real(0.0)})); // they are equal, so they descend
    CHECK(trace.source.warnings.empty());
}

TEST_CASE("numbers are the nearest ones, as strtod and strtof read them") {
    std::mt19937_64 random(7);
    const auto check_number = [](const std::string& number) {
        const std::string row = "0\t0\t5\t" + number + "\t7,8\t" + number + "," + number + "\n";
        const double as_double = std::strtod(number.c_str(), nullptr);
        const float as_float = std::strtof(number.c_str(), nullptr);
        const auto doubles = parse<double>(row);
        const auto floats = parse<float>(row);
        CAPTURE(number);
        CHECK(same_bits(doubles.nll, {as_double}));
        CHECK(same_bits(doubles.top_logits, {as_double, as_double}));
        CHECK(same_bits(floats.nll, {as_float}));
        CHECK(same_bits(floats.top_logits, {as_float, as_float}));
    };
    for (const char* number : {"0", "-0.0", "1e2", "1E-2", "1.", ".5", "-.5", "1e+10", "0.1", "16777217", "1e-30",
                               "9007199254740993", "0.30000000000000004", "1.00000005960464477539062500000000000001",
                               "1.17549435e-38", "000012.500", "340282346638528859811704183484516925440"}) {
        check_number(number);
    }
    for (int i = 0; i < 3000; ++i) {
        const auto value = static_cast<double>(static_cast<std::int64_t>(random()) >> (random() % 40));
        const int decimals = static_cast<int>(random() % 12);
        std::string number = std::to_string(static_cast<long long>(value));
        if (decimals > 0) {
            number +=
                "." +
                std::string(static_cast<std::size_t>(decimals), '0').replace(0, 1, std::to_string(random() % 10)) +
                std::to_string(random() % 1000);
        }
        check_number(number);
    }
}

TEST_CASE("what is readable but looks wrong becomes a warning") {
    SUBCASE("an NLL below zero by more than rounding") {
        const std::string row = "0\t1\t6\t-0.002\t4,3,2\t9,8,7\n";
        const std::vector<std::string> expected{"t.tsv: an NLL below zero (a probability above 1) at position 1"};
        CHECK(parse(tsv(row0) + row).source.warnings == expected);
        CHECK(parse(tsv(row0) + replaced(row, "-0.002", "-0.0005")).source.warnings.empty());
    }
    SUBCASE("fewer positions than the metadata announces") {
        const std::vector<std::string> expected{"t.tsv: holds 3 positions, its metadata announces 4 (chunks times "
                                                "chunk_tokens): a run that stopped early?"};
        CHECK(parse("# chunks\t2\tchunk_tokens\t2\n" + tsv(rows)).source.warnings == expected);
        CHECK(parse("# chunks\t3\tchunk_tokens\t1\n" + tsv(rows)).source.warnings.empty());
        CHECK(parse("# chunks\t9\n" + tsv(rows)).source.warnings.empty());
        CHECK(parse("# chunks\tmany\tchunk_tokens\t2\n" + tsv(rows)).source.warnings.empty());
        CHECK(parse("# chunks\t99999999999999999999\tchunk_tokens\t99999999999\n" + tsv(rows)).source.warnings.size() <=
              1);
    }
}

} // namespace test_text_trace_reader

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "logitstat/report/figures.hpp"
#include "logitstat/report/format.hpp"
#include "programs/run_program.hpp"

namespace test_format {

using namespace logitstat::report;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
} // namespace

TEST_CASE("fixed: decimals, rounding, huge values, no negative zero, no NaN") {
    CHECK(fixed(1.5, 0) == "2");
    CHECK(fixed(0.125, 2) == "0.12"); // exact tie: to even
    CHECK(fixed(-3.14159, 3) == "-3.142");
    CHECK(fixed(1234567.0, 1) == "1234567.0");
    CHECK(fixed(999'999'999'999'999.0, 1) == "999999999999999.0");
    CHECK(fixed(1e15, 2) == "1.00e+15");
    CHECK(fixed(-std::numeric_limits<double>::max(), 4) == "-1.7977e+308");
    CHECK(fixed(std::numeric_limits<double>::denorm_min(), 3) == "0.000");
    CHECK(fixed(-0.0, 2) == "0.00");
    CHECK(fixed(-0.001, 2) == "0.00");
    CHECK(fixed(-0.0, 0) == "0");
    CHECK(fixed(-0.006, 2) == "-0.01");
    CHECK(fixed(infinity, 2) == "inf");
    CHECK(fixed(-infinity, 2) == "-inf");
    CHECK(fixed(not_a_number, 2) == "n/a");
    CHECK(fixed(-not_a_number, 2) == "n/a");
    CHECK(fixed(std::optional<double>(2.5), 1) == "2.5");
    CHECK(fixed(std::optional<double>(), 1) == "n/a");
}

TEST_CASE("figure: a small value keeps two significant digits") {
    CHECK(figure(0.0, 4) == "0.0000");
    CHECK(figure(-0.0, 4) == "0.0000");
    CHECK(figure(1.25, 4) == "1.2500");
    CHECK(figure(0.001, 4) == "0.0010");
    CHECK(figure(0.00099, 4) == "9.9e-04");
    CHECK(figure(-3.21e-9, 6) == "-3.2e-09");
    CHECK(figure(infinity, 4) == "inf");
    CHECK(figure(not_a_number, 4) == "n/a");
    CHECK(figure(std::optional<double>(), 4) == "n/a");
}

TEST_CASE("with_sign: plus, minus, none for zero") {
    CHECK(with_sign(0.25, 2) == "+0.25");
    CHECK(with_sign(-0.25, 2) == "-0.25");
    CHECK(with_sign(0.0, 3) == "0.000");
    CHECK(with_sign(-0.0, 3) == "0.000");
    CHECK(with_sign(1e-9, 3) == "+1.0e-09");
    CHECK(with_sign(-1e-9, 3) == "-1.0e-09");
    CHECK(with_sign(1e300, 1) == "+1.0e+300");
    CHECK(with_sign(-1e300, 1) == "-1.0e+300");
    CHECK(with_sign(infinity, 1) == "+inf");
    CHECK(with_sign(-infinity, 1) == "-inf");
    CHECK(with_sign(not_a_number, 1) == "n/a");
    CHECK(with_sign(std::optional<double>(), 1) == "n/a");
}

TEST_CASE("shortest: reads back as the same double") {
    CHECK(shortest(2) == "2");
    CHECK(shortest(0.1) == "0.1");
    CHECK(shortest(0.5) == "0.5");
    for (const double x : {1.0 / 3, 0.1 + 0.2, 1e-300, 123456.789, std::numeric_limits<double>::max()}) {
        CHECK(std::stod(shortest(x)) == x);
    }
}

TEST_CASE("percent: of a rate; a rate that is not zero does not look like zero") {
    CHECK(percent(0.0) == "0.00 %");
    CHECK(percent(1.0) == "100.00 %");
    CHECK(percent(0.140625) == "14.06 %");
    CHECK(percent(0.5, 0) == "50 %");
    CHECK(percent(1.0 / 3, 1) == "33.3 %");
    CHECK(percent(0.00005) == "0.01 %");
    CHECK(percent(0.00004) == "<0.01 %");
    CHECK(percent(1e-7, 3) == "<0.001 %");
    CHECK(percent(not_a_number) == "n/a");
    CHECK(percent(std::optional<double>(0.25)) == "25.00 %");
    CHECK(percent(std::optional<double>()) == "n/a");
}

TEST_CASE("counts, padding, ranks, places") {
    CHECK(counted(0, "position") == "0 positions");
    CHECK(counted(1, "position") == "1 position");
    CHECK(counted(5'000'000'000, "line") == "5000000000 lines");
    CHECK(pad_left("ab", 4) == "  ab");
    CHECK(pad_right("ab", 4) == "ab  ");
    CHECK(pad_left("abcde", 4) == "abcde"); // never cut
    CHECK(pad_right("abcde", 4) == "abcde");
    CHECK(cell_left("ab", 4) == "  ab");
    CHECK(cell_left("abcd", 4) == " abcd"); // apart from its neighbour
    CHECK(cell_right("ab", 4) == "ab  ");
    CHECK(cell_right("abcde", 4) == "abcde ");
    CHECK(rank_name(1, 8) == "rank 1");
    CHECK(rank_name(12, 8) == "rank 12");
    CHECK(rank_name(std::nullopt, 8) == "beyond top-8");
    logitstat::Disagreement at;
    at.index = 17;
    at.chunk = 2;
    at.pos = 5;
    CHECK(place(at) == "position 17 (chunk 2, pos 5)");
}

TEST_CASE("printable: nothing that drives a terminal or breaks a line; text in any script stays") {
    CHECK(printable("") == "");
    CHECK(printable("plain text, 100 %") == "plain text, 100 %");
    CHECK(printable("\x1b[31mred\x1b[0m") == "?[31mred?[0m");
    CHECK(printable(std::string("a\0b\tc\nd\re\x7f", 10)) == "a?b?c?d?e?");
    CHECK(printable("Zürich ß àé モデル \xf0\x9f\x98\x80") == "Zürich ß àé モデル \xf0\x9f\x98\x80");
    CHECK(printable("\xc2\x9b"
                    "31m") == "?31m"); // CSI of the 8-bit control set
    CHECK(printable("\xc2\xa0"
                    "x") == "\xc2\xa0"
                            "x"); // the first that is no control
    CHECK(printable("a\xe2\x80\xae"
                    "b") == "a?b"); // right-to-left override
    CHECK(printable("a\xe2\x80\xa8"
                    "b") == "a?b"); // line separator
    CHECK(printable("a\xff"
                    "b\xc3") == "a?b?");       // no UTF-8; cut sequence
    CHECK(printable("\xc0\xaf") == "??");      // overlong
    CHECK(printable("\xe0\x80\xaf") == "???"); // overlong
    CHECK(printable("\xe0\x9f\xbf") == "???"); // overlong, the last
    CHECK(printable("\xf0\x8f\xbf\xbf") == "????");
    CHECK(printable("\xe0\xa0\x80\xf4\x8f\xbf\xbf") == "\xe0\xa0\x80\xf4\x8f\xbf\xbf");
    CHECK(printable("\xed\xa0\x80") == "???");      // surrogate
    CHECK(printable("\xf4\x90\x80\x80") == "????"); // beyond Unicode
    CHECK(printable("\xe3\x83") == "??");
    CHECK(printable("\x80"
                    "a\x9b") == "?a?");
}

TEST_CASE("printable gives UTF-8 without controls for every byte pair") {
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) {
            const std::string shown = printable(std::string{static_cast<char>(a), static_cast<char>(b), 'x'});
            bool controls = false;
            for (const char c : shown) { controls = controls || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
            if (controls || !test::is_utf8(shown) || !shown.ends_with('x')) { FAIL("bytes " << a << ", " << b); }
        }
    }
}

TEST_CASE("arm_name: model and device, as far as stated") {
    logitstat::TraceSource source;
    CHECK(arm_name(source) == "");
    source.metadata.add({"device", "GPU\x1b"});
    CHECK(arm_name(source) == "unnamed model on GPU?");
    source.metadata.add({"model", "m.gguf"});
    CHECK(arm_name(source) == "m.gguf on GPU?");
}

} // namespace test_format

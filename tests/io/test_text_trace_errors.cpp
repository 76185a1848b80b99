#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/text_trace_reader.hpp"

namespace test_text_trace_errors {

using logitstat::parse_error;
using namespace testing;

namespace {

/// One file that must be refused. ' ' is a tab, '_' a space, and '^' (not part of the file) stands where the error must
/// point; a file without '^' is refused as a whole. `says` is the message after "PATH:LINE:COLUMN: ".
struct BadFile {
    std::string name;
    std::string text;
    std::string says;
};

template <class Real> void check_refused(const BadFile& bad) {
    CAPTURE(bad.name);
    CAPTURE(sizeof(Real));
    std::string text = tsv(bad.text), where;
    std::size_t line = 0, column = 0;
    if (const std::size_t mark = text.find('^'); mark != std::string::npos) {
        text.erase(mark, 1);
        const std::string before = text.substr(0, mark);
        line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
        column = mark - (line == 1 ? 0 : before.rfind('\n') + 1) + 1;
        where = ":" + std::to_string(line) + ":" + std::to_string(column);
    }
    try {
        const auto trace = logitstat::parse_text_trace<Real>(text, "folder/bad.tsv");
        FAIL_CHECK("accepted, with " << trace.size() << " rows");
    } catch (const parse_error& e) {
        const std::string what = e.what();
        CHECK(what == "folder/bad.tsv" + where + ": " + bad.says);
        CHECK(e.path() == "folder/bad.tsv");
        CHECK(e.line() == line);
        CHECK(e.column() == column);
        // Whatever the file holds: one line of printable text, short enough for a terminal.
        CHECK(what.size() < 250);
        CHECK(std::all_of(what.begin(), what.end(), [](char c) { return c >= 0x20 && c < 0x7f; }));
    }
}

void check_refused(const BadFile& bad) {
    check_refused<double>(bad);
    check_refused<float>(bad);
}

const std::string neither = ": neither a text trace (tab-separated lines) nor a binary trace (safetensors)";
const std::string cut = " (the file ends inside this line)";

const std::vector<BadFile> bad_files{
    // ---- fields
    {"five fields", "^0 0 5 1.25 7,8\n", R"(expected 6 tab-separated fields, found 5: '0\x090\x095\x091.25\x097,8')"},
    {"three fields", row0 + "^0 1 6\n", R"(expected 6 tab-separated fields, found 3: '0\x091\x096')"},
    {"one field", row0 + "^0\n" + row1, "expected 6 tab-separated fields, found 1: '0'"},
    {"seven fields", "^0 0 5 1 7,8 2,1 9\n",
     R"(expected 6 tab-separated fields, found 7: '0\x090\x095\x091\x097,8\x092,1\x099')"},
    {"tab at the end", "^0 0 5 1 7,8 2,1 \n",
     R"(expected 6 tab-separated fields, found 7: '0\x090\x095\x091\x097,8\x092,1\x09')"},
    {"doubled tab", row0 + "^0  1 6 1 7,8,9 3,2,1\n",
     R"(expected 6 tab-separated fields, found 7: '0\x09\x091\x096\x091\x097,8,9\x093,2,1')"},
    {"spaces for tabs", row0 + "^0_1_6_0.5_4,3,2_9,8,7\n",
     "expected 6 tab-separated fields, found 1: '0 1 6 0.5 4,3,2 9,8,7'"},
    {"long line is cut", row0 + "^0 " + std::string(5000, 'y') + "\n",
     R"(expected 6 tab-separated fields, found 2: '0\x09)" + std::string(38, 'y') + "...'"},
    {"control bytes are escaped", row0 + "0 1 6 ^1\x1b[2J\a\x7f\xC3\xA9 4,3,2 9,8,7\n",
     R"(trailing garbage after nll: '1\x1b[2J\x07\x7f\xc3\xa9')"},
    {"NUL in a row", "#" + std::string(5000, 'x') + "\n0 0 5 ^1" + std::string(1, '\0') + " 7,8 2,1\n",
     R"(trailing garbage after nll: '1\x00')"},
    {"two carriage returns", "0 0 5 1 7,8 2,^1\r\r\n", R"(trailing garbage after logit: '1\x0d')"},
    {"carriage returns alone", "^0 0 5 1 7,8 2,1\r0 1 5 1 7,8 2,1\r",
     R"(expected 6 tab-separated fields, found 11: '0\x090\x095\x091\x097,8\x092,1\x0d0\x091\x095\x091\x097,8\x092,1')"},
    // ---- the lists
    {"more ids than logits", "0 0 5 1 ^7,8,9 2,1\n", R"(3 token ids but 2 logits: '7,8,9\x092,1')"},
    {"more logits than ids", "0 0 5 1 ^7,8 3,2,1\n", R"(2 token ids but 3 logits: '7,8\x093,2,1')"},
    {"more ids in a later row", row0 + "0 1 6 1 ^4,3,2,1 3,2,1\n", R"(4 token ids but 3 logits: '4,3,2,1\x093,2,1')"},
    {"fewer ids in a later row", row0 + "0 1 6 1 ^4,3 3,2,1\n", R"(2 token ids but 3 logits: '4,3\x093,2,1')"},
    {"fewer logits in a later row", row0 + "0 1 6 1 ^4,3,2 3,2\n" + row2,
     R"(3 token ids but 2 logits: '4,3,2\x093,2')"},
    {"k grows", row0 + "0 1 6 1 ^4,3,2,1 4,3,2,1\n" + row2,
     "k changes: 4 token ids, the rows before have 3: '4,3,2,1'"},
    {"k shrinks", row0 + "0 1 6 1 ^4,3 3,2\n" + row2, "k changes: 2 token ids, the rows before have 3: '4,3'"},
    {"k is 1", "0 0 5 1 ^7 2\n", "1 token id, at least 2 are needed for a gap: '7'"},
    {"k falls to 1", row0 + "0 1 6 1 ^4 3\n", "k changes: 1 token ids, the rows before have 3: '4'"},
    {"adjacent ids repeat", "0 0 5 1 7,^7,9 3,2,1\n", "token id repeats in the row: '7'"},
    {"distant ids repeat", row0 + "0 1 6 1 7,8,9 3,2,1\n1 0 7 1 4,3,^4 3,2,1\n", "token id repeats in the row: '4'"},
    {"same id, other digits", "0 0 5 1 7,8,^07 3,2,1\n", "token id repeats in the row: '07'"},
    {"logits ascend", "0 0 5 1 7,8,9 3,2,^2.000001\n", "logits are not descending: '2.000001'"},
    {"logits ascend at once", row0 + "0 1 6 1 4,3,2 -2,^-1,-3\n", "logits are not descending: '-1'"},
    // ---- the order
    {"position repeats", row0 + "^" + row0,
     "chunk and pos do not increase: 0, 0 after 0, 0: "
     "'0\\x090\\x095\\x091.250000\\x097,8,9\\x093.500000,2.500000,-...'"},
    {"pos goes back", row0 + "0 7 6 1 4,3,2 3,2,1\n^0 6 6 1 4,3,2 3,2,1\n",
     R"(chunk and pos do not increase: 0, 6 after 0, 7: '0\x096\x096\x091\x094,3,2\x093,2,1')"},
    {"chunk goes back", row2 + "^0 1 6 1 4,3,2 3,2,1\n",
     R"(chunk and pos do not increase: 0, 1 after 1, 0: '0\x091\x096\x091\x094,3,2\x093,2,1')"},
    // ---- lines that are none, once the data have begun
    {"chatter inside", row0 + "^loading...\n" + row1, "expected 6 tab-separated fields, found 1: 'loading...'"},
    {"chatter after", rows + "^done\n", "expected 6 tab-separated fields, found 1: 'done'"},
    {"chatter after, no newline", rows + "^done", "expected 6 tab-separated fields, found 1: 'done'" + cut},
    {"metadata inside", row0 + "^#_model x\n" + row1, R"(expected 6 tab-separated fields, found 2: '# model\x09x')"},
    {"metadata after", rows + "^#\n", "expected 6 tab-separated fields, found 1: '#'"},
    {"blank line inside", row0 + "^\n" + row1, "expected 6 tab-separated fields, found 1: ''"},
    {"blank line after", rows + "^\n", "expected 6 tab-separated fields, found 1: ''"},
    {"blank CRLF line after", rows + "^\r\n", "expected 6 tab-separated fields, found 1: ''"},
    {"header inside", row0 + "^chunk pos target nll ids logits\n", R"(chunk is not an integer: 'chunk')"},
    // ---- the first row is damaged: it must not pass for chatter
    {"first row torn on the right", "# a b\nloading\n^0 0 5\n" + row1,
     R"(expected 6 tab-separated fields, found 3: '0\x090\x095')"},
    {"first row torn on the left", "^0 5 1.25 7,8,9 3,2,1\n" + row1,
     R"(expected 6 tab-separated fields, found 5: '0\x095\x091.25\x097,8,9\x093,2,1')"},
    {"first chunk damaged", "^x 0 5 1 7,8,9 3,2,1\n" + row1, "chunk is not an integer: 'x'"},
    {"first tab damaged", "^0x0 5 1 7,8,9 3,2,1\n" + row1,
     R"(expected 6 tab-separated fields, found 5: '0x0\x095\x091\x097,8,9\x093,2,1')"},
    {"second tab damaged", "^0 0x5 1 7,8,9 3,2,1\n" + row1,
     R"(expected 6 tab-separated fields, found 5: '0\x090x5\x091\x097,8,9\x093,2,1')"},
    {"first row broken in two early", "^0 0\n5 1.25 7,8,9 3,2,1\n" + row1,
     R"(expected 6 tab-separated fields, found 2: '0\x090')"},
    {"only the end of a first row", "^1.25 7,8,9 3,2,1\n" + row1,
     R"(expected 6 tab-separated fields, found 3: '1.25\x097,8,9\x093,2,1')"},
    {"chatter before the first chunk", "^load0 0 5 1 7,8,9 3,2,1\n" + row1, "chunk is not an integer: 'load0'"},
    // ---- the last row is cut
    {"cut inside the last number", row0 + "0 1 6 0.500000 4,3,2 9.000000,8.000000,^7.00000",
     "the last row is cut: its last number has not 6 decimals as the others have: '7.00000'" + cut},
    {"cut at the point", row0 + "0 1 6 0.500000 4,3,2 9.000000,8.000000,^7.",
     "the last row is cut: its last number has not 6 decimals as the others have: '7.'" + cut},
    {"cut before the point", row0 + "0 1 6 0.500000 4,3,2 9.000000,8.000000,^7",
     "the last row is cut: its last number has not 6 decimals as the others have: '7'" + cut},
    {"cut after the sign", row0 + "0 1 6 0.500000 4,3,2 9.000000,8.000000,^-", "logit is not a number: '-'" + cut},
    {"cut after a comma", row0 + "0 1 6 0.500000 4,3,2 9.000000,8.000000,^", "logit is not a number: ''" + cut},
    {"cut after a logit", row0 + "0 1 6 0.500000 ^4,3,2 9.000000,8.000000",
     R"(3 token ids but 2 logits: '4,3,2\x099.000000,8.000000')" + cut},
    {"cut after the ids", row0 + "^0 1 6 0.500000 4,3,2",
     R"(expected 6 tab-separated fields, found 5: '0\x091\x096\x090.500000\x094,3,2')" + cut},
    {"cut in the only row", "0 0 5 1.25 7,8 2.00,^1.0",
     "the last row is cut: its last number has not 2 decimals as the others have: '1.0'" + cut},
    // ---- no trace at all
    {"empty", "", "the file is empty"},
    {"only a byte order mark", "\xEF\xBB\xBF", "the file is empty"},
    {"only metadata", "# model x\n# device y\n", "no data rows" + neither},
    {"only chatter", "hello\n\nworld", "no data rows (lines skipped: 3, the first 'hello')" + neither},
    {"only a newline", "\n", "no data rows" + neither},
    {"a table with other columns", "chunk pos target nll ids logits\na b c d e f\n",
     R"(no data rows (lines skipped: 2, the first 'chunk\x09pos\x09target\x09nll\x09ids\x09logits'))" + neither},
    {"gzip", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10),
     R"(not a text trace: control byte at offset 0, the file begins '\x1f\x8b\x08\x00\x00\x00\x00\x00...')"},
    {"safetensors", std::string("\x58\0\0\0\0\0\0\0{\"nll\":", 15),
     R"(not a text trace: control byte at offset 1, the file begins 'X\x00\x00\x00\x00\x00\x00\x00...')"},
    {"npy", std::string("\x93NUMPY\x01\0v\0", 10),
     R"(not a text trace: control byte at offset 6, the file begins '\x93NUMPY\x01\x00...')"},
    {"UTF-16", std::string("\xFF\xFE#\0\n\0", 6),
     R"(not a text trace: control byte at offset 3, the file begins '\xff\xfe#\x00\x0a\x00')"},
    {"NULs after the head of a text", "#_model\n" + std::string(16, '\0') + rows,
     R"(not a text trace: control byte at offset 8, the file begins '# model\x0a...')"},
};

/// Every place of a row where a number stands.
struct Place {
    const char* what;
    bool integer;
    const char* before; ///< in the row "0 1 6 0.5 4,3,2 9,8,7", around the number
    const char* after;
};
const std::vector<Place> places{
    {"chunk", true, "", " 1 6 0.5 4,3,2 9,8,7"},    {"pos", true, "0 ", " 6 0.5 4,3,2 9,8,7"},
    {"target", true, "0 1 ", " 0.5 4,3,2 9,8,7"},   {"nll", false, "0 1 6 ", " 4,3,2 9,8,7"},
    {"token id", true, "0 1 6 0.5 ", ",3,2 9,8,7"}, {"token id", true, "0 1 6 0.5 4,", ",2 9,8,7"},
    {"token id", true, "0 1 6 0.5 4,3,", " 9,8,7"}, {"logit", false, "0 1 6 0.5 4,3,2 ", ",8,7"},
    {"logit", false, "0 1 6 0.5 4,3,2 9,", ",7"},   {"logit", false, "0 1 6 0.5 4,3,2 9,8,", ""},
};

/// Text that is no number there. `says` goes after the name of the column when it begins with a space, else before it.
struct BadNumber {
    const char* text;
    const char* says;
};
const std::vector<BadNumber> bad_integers{
    {"", " is not an integer"},
    {"x", " is not an integer"},
    {"+1", " is not an integer"},
    {"_1", " is not an integer"},
    {"-", " is not an integer"},
    {"--1", " is not an integer"},
    {"nan", " is not an integer"},
    {".5", " is not an integer"},
    {"2147483648", " does not fit 32 bits"},
    {"-2147483649", " does not fit 32 bits"},
    {"99999999999999999999", " does not fit 32 bits"},
    {"-1", "negative "},
    {"-2147483648", "negative "},
    {"1_", "trailing garbage after "},
    {"1x", "trailing garbage after "},
    {"1.0", "trailing garbage after "},
    {"1e3", "trailing garbage after "},
    {"0x10", "trailing garbage after "},
    {"1-", "trailing garbage after "},
};
const std::vector<BadNumber> bad_reals{
    {"", " is not a number"},
    {"x", " is not a number"},
    {"+1.0", " is not a number"},
    {"_1.0", " is not a number"},
    {"-", " is not a number"},
    {".", " is not a number"},
    {"--1", " is not a number"},
    {"e5", " is not a number"},
    {"1e400", " is out of range"},
    {"-1e400", " is out of range"},
    {"nan", " is not finite"},
    {"NaN", " is not finite"},
    {"-nan", " is not finite"},
    {"nan(1)", " is not finite"},
    {"inf", " is not finite"},
    {"-inf", " is not finite"},
    {"INF", " is not finite"},
    {"infinity", " is not finite"},
    {"1.0_", "trailing garbage after "},
    {"1.0x", "trailing garbage after "},
    {"1.0.0", "trailing garbage after "},
    {"0x1p3", "trailing garbage after "},
    {"1e", "trailing garbage after "},
    {"1.0f", "trailing garbage after "},
    {"1..0", "trailing garbage after "},
    {"infx", " is not finite"},
};

} // namespace

TEST_CASE("every bad file is refused with its place and its text") {
    for (const BadFile& bad : bad_files) { check_refused(bad); }
}

TEST_CASE("a bad number is refused in every field, in the first, an inner and the last row") {
    for (const Place& place : places) {
        for (const BadNumber& bad : place.integer ? bad_integers : bad_reals) {
            const std::string number = bad.text, says = bad.says;
            const std::string reason = says.starts_with(' ') ? place.what + says : says + place.what;
            const std::string row = place.before + ("^" + number) + place.after;
            const std::string message = reason + ": '" + tsv(number) + "'";
            const std::string name = "'" + number + "' as " + place.what;
            check_refused({name + ", first row", row + "\n" + row2, message});
            check_refused({name + ", inner row", row0 + row + "\n" + row2, message});
            check_refused({name + ", last row", row0 + row + "\n", message});
        }
    }
}

TEST_CASE("an id that repeats among more than 64 is refused at the repetition") {
    for (const std::size_t first : std::initializer_list<std::size_t>{0, 57}) {
        std::string ids, logits;
        for (std::size_t j = 0; j < 100; ++j) {
            ids += (j == 0 ? "" : ",") + (j == 99 ? "^" + std::to_string(1000 + first) : std::to_string(1000 + j));
            logits += (j == 0 ? "" : ",") + std::to_string(200 - j);
        }
        check_refused({"k of 100", "0 0 5 1 " + ids + " " + logits + "\n",
                       "token id repeats in the row: '" + std::to_string(1000 + first) + "'"});
    }
}

TEST_CASE("a number that only float cannot hold is refused when floats are asked for") {
    const std::string text = tsv("0 0 5 1 7,8 1e39,1\n");
    CHECK(logitstat::parse_text_trace<double>(text, "t").top_logits.front() == 1e39);
    check_refused<float>({"1e39", "0 0 5 1 7,8 ^1e39,1\n", "logit is out of range: '1e39'"});
}

TEST_CASE("a damaged line of a megabyte is refused with a short message") {
    std::string ids = "0", logits = "0";
    for (int j = 1; j < 100000; ++j) {
        ids += "," + std::to_string(j);
        logits += "," + std::to_string(-j);
    }
    const std::string ids_shown = "'" + ids.substr(0, 40) + "...'";
    check_refused({"a logit too many", "0 0 5 1 ^" + ids + " " + logits + ",-100000\n",
                   "100000 token ids but 100001 logits: " + ids_shown});
    const std::size_t last = logits.rfind(',') + 1;
    check_refused({"the last logit",
                   "0 0 5 1 " + ids + " " + logits.substr(0, last) + "^" + logits.substr(last) + "x\n",
                   "trailing garbage after logit: '-99999x'"});
    check_refused({"a long value", "0 0 5 1 7,8 2,^1" + std::string(1000000, 'x') + "\n",
                   "trailing garbage after logit: '1" + std::string(39, 'x') + "...'"});
    check_refused({"a long last row", row0 + "0 1 6 1.0 4,3,2 9.0,8.0,^7." + std::string(1000000, '5'),
                   "the last row is cut: its last number has not 1 decimals as the others have: '7." +
                       std::string(38, '5') + "...'" + cut});
}

} // namespace test_text_trace_errors

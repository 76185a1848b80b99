#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "programs/run_program.hpp"

namespace test_golden {

// The complete reports on the example pair, byte for byte, as tests/golden/ has them. After a change that is meant:
//   LOGITSTAT_UPDATE_GOLDEN=1 build/dev/tests/test_programs -tc="golden:*"
// writes them anew; then read the difference. The programs run in the folder of the data, so that no path is in them.

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Where a number that begins at `at` ends; `at` when none begins there. Digits inside a word begin none.
std::size_t number_end(std::string_view text, std::size_t at) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const bool inside_word = is_digit(before) || before == '.' || before == '_' || (before | 0x20) >= 'a';
    const std::size_t digit = at + (text[at] == '-' ? 1 : 0);
    if (inside_word || digit >= text.size() || !is_digit(text[digit])) { return at; }
    double ignored = 0;
    return static_cast<std::size_t>(std::from_chars(text.data() + at, text.data() + text.size(), ignored).ptr -
                                    text.data());
}

/// Equal, but for numbers that differ by at most 1e-12 of their size: another libm rounds another way.
bool same_but_for_rounding(std::string_view a, std::string_view b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
        const std::size_t a_end = number_end(a, i), b_end = number_end(b, j);
        if (a_end > i && b_end > j) {
            double x = 0, y = 0;
            std::from_chars(a.data() + i, a.data() + a_end, x);
            std::from_chars(b.data() + j, b.data() + b_end, y);
            if (!(std::abs(x - y) <= 1e-12 * std::abs(y))) { return false; }
            i = a_end;
            j = b_end;
        } else if (a[i++] != b[j++]) {
            return false;
        }
    }
    return i == a.size() && j == b.size();
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        lines.push_back(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(text.size(), lines.back().size() + 1));
    }
    return lines;
}

enum class exact { yes, but_for_rounding };

/// Runs a program in the folder of the example data and holds its output against a file of tests/golden/.
/// The example pair fails, which is status 1.
void check_golden(const std::string& name, std::vector<std::string> command, exact how = exact::yes) {
    command.insert(command.begin(), {"sh", "-c", "cd \"$0\" && exec \"$@\"", EXAMPLE_DATA});
    const test::Finished run = test::run(command);
    CHECK(run.status == 1);
    CHECK(run.err == "");
    const std::string path = std::string(GOLDEN_FILES "/") + name;
    const char* update = std::getenv("LOGITSTAT_UPDATE_GOLDEN");
    if (update != nullptr && std::string(update) == "1") {
        std::ofstream(path, std::ios::binary) << run.out;
        MESSAGE("written: " << path);
        return;
    }
    const std::string golden = test::read_file(path);
    const auto actual = lines_of(run.out), expected = lines_of(golden);
    for (std::size_t i = 0; i < std::max(actual.size(), expected.size()); ++i) {
        const std::string got(i < actual.size() ? actual[i] : "(the end)"),
            wanted(i < expected.size() ? expected[i] : "(the end)");
        if (got != wanted && (how == exact::yes || !same_but_for_rounding(got, wanted))) {
            FAIL_CHECK(name << ":" << i + 1 << ":\n  expected: " << wanted << "\n  got:      " << got);
            return;
        }
    }
    CHECK(run.out.ends_with("\n") == golden.ends_with("\n"));
}

const std::vector<std::string> pair{COMPARE_TRACES, "float32.tsv", "int4.tsv", "--top", "3"},
    pairs{CORRECTNESS_MATRIX, "pairs.tsv"};

std::vector<std::string> with(std::vector<std::string> command, const std::string& flag) {
    command.insert(command.end(), {flag, "-"});
    return command;
}

} // namespace

TEST_CASE("golden: compare_traces on the example pair") {
    check_golden("compare_traces.txt", pair);
    check_golden("compare_traces.md", with(pair, "--markdown"));
    check_golden("compare_traces.json", with(pair, "--json"), exact::but_for_rounding);
}

TEST_CASE("golden: correctness_matrix on the example pairs") {
    check_golden("correctness_matrix.txt", pairs);
    check_golden("correctness_matrix.md", with(pairs, "--markdown"));
    check_golden("correctness_matrix.json", with(pairs, "--json"), exact::but_for_rounding);
    check_golden("correctness_matrix.csv", with(pairs, "--csv"), exact::but_for_rounding);
}

TEST_CASE("the comparison of golden numbers tells rounding from change") {
    const auto same = same_but_for_rounding;
    CHECK(same("", ""));
    CHECK(same("\"p\": 0.014516139447834198,", "\"p\": 0.014516139447834211,"));
    CHECK(same("a,-1.5e-07,3", "a,-1.5000000000000001e-07,3"));
    CHECK(same("1,2.0", "1.0,2"));
    CHECK_FALSE(same("\"p\": 0.01451613944783,", "\"p\": 0.01451613944793,"));
    CHECK_FALSE(same("1", "-1"));
    CHECK_FALSE(same("1", "2"));
    CHECK_FALSE(same("0", "1e-300"));
    CHECK_FALSE(same("1", ""));
    CHECK_FALSE(same("1", "1,"));
    CHECK_FALSE(same("1 ", "1"));
    CHECK_FALSE(same("a", "b"));
    CHECK_FALSE(same("w1.0", "w1")); // a name, not a number
    CHECK_FALSE(same("null", "0"));
    CHECK_FALSE(same("1,2", "1,,2"));
}

} // namespace test_golden

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "programs/run_program.hpp"
#include "report/markdown_tables.hpp"
#include "stats/close.hpp"

namespace test_correctness_matrix {

// correctness_matrix as a user runs it: many pairs in; one verdict, tables, JSON and CSV out.

using nlohmann::json;
using test::contains;
using test::Finished;
using test::small_trace;
using test::TempFolder;
namespace fs = std::filesystem;

namespace {

Finished matrix(std::vector<std::string> arguments, const test::RunOptions& options = {}) {
    arguments.insert(arguments.begin(), CORRECTNESS_MATRIX);
    return test::run(arguments, options);
}

/// The JSON of a matrix, which must have been everything on standard output.
json figures(std::vector<std::string> arguments, int status) {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Finished run = matrix(arguments);
    CHECK(run.status == status);
    CHECK(run.err == "");
    CHECK(test::is_utf8(run.out));
    CHECK_FALSE(test::shows_nan_or_inf(run.out));
    return json::parse(run.out);
}

/// Exit status 2, nothing on standard output, one line on standard error that holds each of `parts`.
void check_refused(const Finished& run, const std::vector<std::string>& parts) {
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(test::count_lines(run.err) == 1);
    CHECK(run.err.ends_with("\n"));
    CHECK(run.err.starts_with("correctness_matrix: "));
    CHECK_FALSE(contains(run.err, "\x1b"));
    for (const std::string& part : parts) {
        CAPTURE(part);
        CHECK(contains(run.err, part));
    }
}

/// A trace of 64 positions in chunks of 16, and with another `noise` a candidate of the same tokens: best tokens move
/// by a rank, or out of the list.
std::string random_trace(std::uint32_t seed, std::uint32_t noise = 0) {
    std::mt19937 base(seed), moved(noise);
    std::string text;
    for (int i = 0; i < 64; ++i) {
        int ids[] = {10 + i, 100 + i, 200 + i};
        const auto gap = static_cast<int>(base() % 48);
        int nll = static_cast<int>(base() % 64);
        if (noise > 0) {
            const auto draw = moved() % 100;
            if (draw < 8) { std::swap(ids[0], ids[1]); }
            if (draw >= 8 && draw < 10) { std::swap(ids[0], ids[2]); }
            if (draw == 10) { ids[0] = 300 + i; }
            nll += static_cast<int>(moved() % 5);
        }
        const auto sixteenths = [](int x) {
            return std::to_string(x / 16) + "." + std::to_string(10000 + x % 16 * 625).substr(1) + "00";
        };
        text += std::to_string(i / 16) + "\t" + std::to_string(i % 16) + "\t" + std::to_string(10 + i) + "\t" +
                sixteenths(nll) + "\t" + std::to_string(ids[0]) + "," + std::to_string(ids[1]) + "," +
                std::to_string(ids[2]) + "\t" + sixteenths(160 + gap) + "," + sixteenths(160) + "," + sixteenths(96) +
                "\n";
    }
    return text;
}

const std::string header = "name\ttag\treference\tcandidate\n";

/// A folder with one pair for each thing that a pair can be, at --decided 2.
struct Zoo : TempFolder {
    Zoo() {
        const std::string decided = "10,5 9.000000,4.000000 0.100000", unsure = "7,11 3.500000,3.000000 1.000000";
        const std::string wrong = "5,10 9.000000,4.000000 0.100000", moved = "11,7 3.250000,3.125000 0.900000";
        write("reference.tsv", small_trace({decided, unsure}));
        write("pass.tsv", small_trace({decided, moved}));
        write("fail.tsv", small_trace({wrong, moved}));
        write("short.tsv", small_trace({decided}));
        write("unsure.tsv", small_trace({unsure}));
        write("moved.tsv", small_trace({moved}));
    }
    static std::string row(const std::string& kind) {
        return kind + "\t\t" + (kind == "inconclusive" ? "unsure.tsv\tmoved.tsv" : "reference.tsv\t") +
               (kind == "identical"      ? "reference.tsv"
                : kind == "error"        ? "missing.tsv"
                : kind == "inconclusive" ? ""
                                         : kind + ".tsv") +
               "\n";
    }
    std::string manifest(const std::vector<std::string>& kinds) const {
        std::string text = header;
        for (const std::string& kind : kinds) { text += row(kind); }
        return write("pairs.tsv", text);
    }
};

/// A manifest of `count` random pairs, the last one being the first reference with itself.
std::string random_manifest(const TempFolder& folder, std::uint32_t count) {
    std::string text = header;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::string number = std::to_string(i);
        folder.write("a" + number, random_trace(i + 1));
        folder.write("b" + number, random_trace(i + 1, i + 1000));
        text += "model " + number + "\tw" + number + "\ta" + number + "\tb" + number + "\n";
    }
    return folder.write("pairs.tsv", text + "self\t\ta0\ta0\n");
}

using CsvRow = std::vector<std::string>;

/// The rows of a CSV text, strictly by RFC 4180 with LF. Throws when a quote is misplaced or the last line has no end.
std::vector<CsvRow> csv_rows(const std::string& text) {
    std::vector<CsvRow> rows(1, CsvRow(1));
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string& field = rows.back().back();
        if (text[i] == '"') {
            if (!field.empty()) { throw std::runtime_error("a quote inside a plain field"); }
            for (++i;; ++i) {
                if (i + 1 >= text.size()) { throw std::runtime_error("a quote without end"); }
                if (text[i] == '"' && text[i + 1] != '"') { break; }
                if (text[i] == '"') { ++i; }
                field += text[i];
            }
            if (text[i + 1] != ',' && text[i + 1] != '\n') { throw std::runtime_error("text after a quoted field"); }
        } else if (text[i] == ',') {
            rows.back().emplace_back();
        } else if (text[i] == '\n') {
            rows.emplace_back(1);
        } else if (text[i] == '\r') {
            throw std::runtime_error("a bare CR");
        } else {
            field += text[i];
        }
    }
    if (rows.back() != CsvRow(1)) { throw std::runtime_error("the last line has no end"); }
    rows.pop_back();
    return rows;
}

/// The rows below the header, as column -> text; every row must have as many fields as the header.
std::vector<std::map<std::string, std::string>> csv_table(const std::string& text) {
    const auto rows = csv_rows(text);
    REQUIRE(rows.size() > 0);
    CHECK(std::set<std::string>(rows[0].begin(), rows[0].end()).size() == rows[0].size());
    std::vector<std::map<std::string, std::string>> table;
    for (std::size_t r = 1; r < rows.size(); ++r) {
        REQUIRE(rows[r].size() == rows[0].size());
        table.emplace_back();
        for (std::size_t i = 0; i < rows[r].size(); ++i) { table.back()[rows[0][i]] = rows[r][i]; }
    }
    return table;
}

/// A field holds this JSON number exactly, or is empty where that is null.
bool is_number(const std::string& field, const json& number) {
    if (number.is_null() || field.empty()) { return number.is_null() && field.empty(); }
    return json::parse(field).get<double>() == number.get<double>();
}

} // namespace

// ---- what it reports -----------------------------------------------------------------------------------------------

TEST_CASE("correctness_matrix: each pair is what compare_traces makes of it") {
    const TempFolder folder;
    const auto manifest = random_manifest(folder, 3);
    const std::vector<std::string> options{"--decided", "1", "--thresholds", "0,1,1.5", "--confidence",     "0.9",
                                           "--ulps",    "3", "--lag",        "2",       "--max-mismatches", "1"};
    auto arguments = options;
    arguments.insert(arguments.begin(), manifest);
    const json out = figures(arguments, 1);
    CHECK(out["confidence"] == 0.9);
    REQUIRE(out["pairs"].size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        const json& pair = out["pairs"][i];
        const std::string number = i < 3 ? std::to_string(i) : "0";
        CHECK(pair["name"] == (i < 3 ? "model " + number : "self"));
        CHECK(pair["tag"] == (i < 3 ? "w" + number : ""));
        CHECK(pair["reference"] == folder.path("a" + number));
        CHECK(pair["candidate"] == folder.path((i < 3 ? "b" : "a") + number));
        CHECK(pair["error"].is_null());
        std::vector<std::string> single{
            COMPARE_TRACES, pair["reference"], pair["candidate"], "--top", "0", "--json", "-"};
        single.insert(single.end(), options.begin(), options.end());
        CHECK(pair["comparison"] == json::parse(test::run(single).out));
    }
}

TEST_CASE("correctness_matrix: totals are sums over the pairs, the largest gap is the largest of them") {
    const TempFolder folder;
    const auto manifest = random_manifest(folder, 7);
    const json out = figures({manifest, "--thresholds", "0,0.5,2.5", "--decided", "1"}, 1);
    std::map<std::string, int> verdicts;
    std::map<int, int> ranks; // 0: beyond top-k
    int positions = 0, disagreements = 0, hard = 0, ties = 0, decided = 0, wrong = 0;
    std::vector<int> judged(3), mismatched(3);
    double largest = -1;
    std::string where;
    for (const json& pair : out["pairs"]) {
        const json& c = pair["comparison"];
        ++verdicts[c["verdict"]];
        positions += c["positions"].get<int>();
        disagreements += c["top1"]["disagreements"].get<int>();
        hard += c["ties"]["hard"].get<int>();
        ties += c["ties"]["candidate"].get<int>();
        decided += c["decided"]["positions"].get<int>();
        wrong += c["decided"]["mismatches"].get<int>();
        for (std::size_t j = 0; j < 3; ++j) {
            judged[j] += c["sweep"][j]["positions"].get<int>();
            mismatched[j] += c["sweep"][j]["mismatches"].get<int>();
        }
        for (const json& r : c["ranks"]) {
            ranks[r["rank"].is_null() ? 1000 : r["rank"].get<int>()] += r["count"].get<int>();
        }
        const json& gap = c["largest_gap_at_disagreement"]["gap"];
        if (!gap.is_null() && gap > largest) {
            largest = gap;
            where = pair["name"];
        }
    }
    const json& t = out["totals"];
    CHECK(t["pairs"] == 8);
    CHECK(t["errors"] == 0);
    CHECK(t["verdicts"] == json(verdicts));
    CHECK(positions == 8 * 64);
    CHECK(t["positions"] == positions);
    CHECK(t["disagreements"] == disagreements);
    CHECK((hard > 0 && t["ties"]["hard"] == hard));
    CHECK((ties > 0 && t["ties"]["candidate"] == ties));
    CHECK(t["decided"]["threshold"] == 1.0);
    CHECK(t["decided"]["positions"] == decided);
    CHECK((wrong > 0 && t["decided"]["mismatches"] == wrong));
    REQUIRE(t["sweep"].size() == 3);
    for (std::size_t j = 0; j < 3; ++j) {
        CHECK(t["sweep"][j]["threshold"] == std::vector{0.0, 0.5, 2.5}[j]);
        CHECK(t["sweep"][j]["positions"] == judged[j]);
        CHECK(t["sweep"][j]["mismatches"] == mismatched[j]);
    }
    CHECK(ranks.size() == 3); // 2, 3 and beyond
    REQUIRE(t["ranks"].size() == ranks.size());
    auto expected = ranks.begin();
    for (const json& r : t["ranks"]) { // ascending, beyond top-k last
        CHECK((r["rank"].is_null() ? 1000 : r["rank"].get<int>()) == expected->first);
        CHECK(r["count"] == expected->second);
        ++expected;
    }
    CHECK(t["largest_gap_at_disagreement"]["gap"] == largest);
    CHECK(t["largest_gap_at_disagreement"]["name"] == where);
    CHECK(where != "model 0"); // not simply the first

    const std::string text = matrix({manifest, "--thresholds", "0,0.5,2.5", "--decided", "1"}).out;
    CHECK(contains(text, "top-1 disagrees at " + std::to_string(disagreements) + " of 512 positions, " +
                             std::to_string(wrong) + " of " + std::to_string(decided) + " decided (gap >= 1)"));
    CHECK(contains(text, " in " + where + " "));
}

TEST_CASE("correctness_matrix: the pooled bound is that of the pooled count") {
    const TempFolder folder;
    std::vector<std::string> rows(50, "1,2 9.000000,4.000000 1.000000");
    folder.write("a", small_trace(rows));
    rows[0] = "2,1 9.000000,4.000000 1.000000";
    folder.write("b", small_trace(rows));
    const auto manifest = folder.write("pairs.tsv", header + "x\t1\ta\tb\nx\t2\ta\ta\n");
    const json t = figures({manifest}, 1)["totals"];
    CHECK(t["decided"]["rate"] == 0.01);
    // R: binom.test(1, 100)$conf.int; binom.test(1, 100, alternative="less")$conf.int[2]
    CHECK(expected::close(t["decided"]["interval"][0].get<double>(), 0.000253146032977421, 1e-12));
    CHECK(expected::close(t["decided"]["interval"][1].get<double>(), 0.0544593853920806, 1e-12));
    CHECK(expected::close(t["decided"]["upper_bound"].get<double>(), 0.0465598114535389, 1e-12));
    const std::string text = matrix({manifest}).out;
    const std::string pooled = text.substr(text.find("pooled rate of decided mismatches: "));
    CHECK(contains(pooled.substr(0, pooled.find('\n')), "0.03 to 5.45 %"));
    // The same with conf.level=0.9.
    const json at_90 = figures({manifest, "--confidence", "0.9"}, 1)["totals"];
    for (const json& count : {at_90["decided"], at_90["sweep"][2]}) {
        CHECK(expected::close(count["interval"][0].get<double>(), 0.000512801416262292, 1e-12));
        CHECK(expected::close(count["interval"][1].get<double>(), 0.0465598114535389, 1e-12));
        CHECK(expected::close(count["upper_bound"].get<double>(), 0.038339497495387, 1e-12));
    }
}

TEST_CASE("correctness_matrix: Holm's p-values are those of R") {
    // R, sandwich: p <- of each pair's differences d, 2*pt(-abs(mean(d)) / se, 3) with the larger of the two errors,
    // se <- max(sd(d)/2, sqrt(NeweyWest(lm(d ~ 1), lag=1, prewhite=FALSE, adjust=TRUE))), and 1 where all of d is 0;
    // p.adjust(p, "holm")
    const TempFolder folder;
    const std::vector<std::vector<double>> sixteenths{{1, 2, 3, 5},     {1, -1, 2, -2}, {2, 3, 2, 4},
                                                      {-1, -2, -4, -3}, {1, 2, 3, 5},   {0, 0, 0, 0}};
    const std::vector<double> p{0.060089310237719, 1, 0.0104770887552763, 0.0364631154446815, 0.060089310237719, 1},
        holm{0.240357240950876, 1, 0.0628625325316579, 0.182315577223408, 0.240357240950876, 1};
    const auto row = [](double nll) { return "1,2 9.000000,4.000000 " + std::to_string(nll); };
    folder.write("a", small_trace(std::vector(4, row(2))));
    folder.write("one", small_trace({row(2)}));
    std::string text = header + "missing\t\ta\tnone\n";
    for (std::size_t i = 0; i < p.size(); ++i) {
        std::vector<std::string> rows;
        for (const double d : sixteenths[i]) { rows.push_back(row(2 + d / 16)); }
        folder.write("b" + std::to_string(i), small_trace(rows));
        text += "m" + std::to_string(i) + "\t\ta\tb" + std::to_string(i) + "\n";
    }
    // Pairs that have no p take no part: one that cannot be compared, and one of a single position.
    const auto manifest = folder.write("pairs.tsv", text + "one\t\tone\tone\n");
    const json out = figures({manifest}, 2);
    REQUIRE(out["pairs"].size() == 8);
    CHECK(out["pairs"][0]["p_holm"].is_null());
    CHECK(out["pairs"][7]["p_holm"].is_null());
    CHECK(out["pairs"][7]["comparison"]["nll_difference"]["p"].is_null());
    const auto csv = csv_table(matrix({manifest, "--csv", "-"}).out);
    const auto tables = test::markdown_tables(matrix({manifest, "--markdown", "-"}).out);
    for (std::size_t i = 0; i < p.size(); ++i) {
        const json& pair = out["pairs"][i + 1];
        CHECK(expected::close(pair["comparison"]["nll_difference"]["p"].get<double>(), p[i], 1e-12));
        CHECK(expected::close(pair["p_holm"].get<double>(), holm[i], 1e-12));
        CHECK(is_number(csv[i + 1].at("p_holm"), pair["p_holm"]));
    }
    const auto shown = test::markdown_row(tables, "m2");
    REQUIRE(shown.size() == 9);
    CHECK(shown[7] == "0.063");
}

TEST_CASE("correctness_matrix: the Markdown is the tables of a correctness document") {
    const Zoo zoo;
    zoo.write("prefill.tsv", "# prefill\t3\n" + test::read_file(zoo.path("pass.tsv")));
    const auto manifest =
        zoo.write("pairs.tsv", header + "a\tw1\treference.tsv\tpass.tsv\nb\t\treference.tsv\tfail.tsv\n"
                                        "c\t\treference.tsv\tmissing.tsv\nd\t\treference.tsv\tprefill.tsv\n");
    const Finished run = matrix({manifest, "--markdown", "-"});
    CHECK(run.status == 1);
    CHECK(run.err == "");
    CHECK(run.out.starts_with("**fail** (2 pass, 1 fail, 1 error)\n"));
    CHECK(contains(run.out, "- top-1 disagrees at 4 of 6 positions, 1 of 3 decided (gap \\>= 2)\n"));
    CHECK(contains(run.out, "- largest reference gap at a disagreement: 5.000 in b, rank 2\n"));
    const auto tables = test::markdown_tables(run.out);
    REQUIRE(tables.size() == 4);
    CHECK(tables[0] ==
          test::MarkdownTable{
              {"pair", "tag", "top-1 disagreement", "decided mismatches", "excluded at 95 %", "largest gap",
               "perplexity change", "p (Holm)", "verdict"},
              {"a", "w1", "1 / 2 (50.00 %)", "0 / 1", "above 95.00 %", "0.500", "-4.877 %", "1.000", "pass"},
              {"b", "", "2 / 2 (100.00 %)", "1 / 1", "nothing", "5.000", "-4.877 %", "1.000", "fail"},
              {"c", "", "-", "-", "-", "-", "-", "-", "error"},
              {"d", "", "1 / 2 (50.00 %)", "0 / 1", "above 95.00 %", "0.500", "-4.877 %", "1.000", "pass"}});
    CHECK(tables[1] == test::MarkdownTable{{"pair", "tag", "gap >= 0.5", "gap >= 1", "gap >= 2"},
                                           {"a", "w1", "1 / 2", "0 / 1", "0 / 1"},
                                           {"b", "", "2 / 2", "1 / 1", "1 / 1"},
                                           {"d", "", "1 / 2", "0 / 1", "0 / 1"},
                                           {"all pairs", "", "4 / 6", "1 / 3", "1 / 3"}});
    CHECK(tables[2] == test::MarkdownTable{{"reference's token in the candidate", "disagreements"}, {"rank 2", "4"}});
    REQUIRE(tables[3].size() == 4);
    CHECK(tables[3][1][0] == "a");
    CHECK(tables[3][1][2].starts_with("1.7333 ± ")); // exp(0.55)
    CHECK(tables[3][1][3].starts_with("1.6487 ± ")); // exp(0.5)
    for (const char* heading :
         {"## Results", "## Mismatches / decided positions, by threshold", "## Where the disagreements land",
          "## Perplexity", "## What is not compared, or not like for like"}) {
        CHECK(contains(run.out, std::string("\n") + heading + "\n\n"));
    }
    const std::string notes = run.out.substr(run.out.find("not like for like"));
    CHECK(contains(notes, "\n- c: not compared: "));
    CHECK(contains(notes, "missing.tsv: cannot open"));
    CHECK(contains(notes, "\n- d: not like for like: prefill is not stated in the reference, '3' in the candidate\n"));
    CHECK(contains(run.out, "The candidate gives both tokens the same logit at 0 of them."));
}

TEST_CASE("correctness_matrix: sections without content are left out") {
    const Zoo zoo;
    const auto headings = [&](const std::vector<std::string>& kinds, const std::string& flag = "--quiet") {
        const std::string text = matrix({zoo.manifest(kinds), "--markdown", "-", flag}).out;
        CHECK_NOTHROW(test::markdown_tables(text));
        std::vector<std::string> found;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("## ")) { found.push_back(line.substr(3, 7)); }
        }
        return found;
    };
    CHECK(headings({"pass"}) == std::vector<std::string>{"Results", "Mismatc", "Where t", "Perplex"});
    CHECK(headings({"identical"}) == std::vector<std::string>{"Results", "Mismatc", "Perplex"});
    CHECK(headings({"error"}) == std::vector<std::string>{"Results", "What is"});
    const std::string text = matrix({zoo.manifest({"identical"})}).out;
    CHECK(contains(text, "no disagreement in any pair\n"));
    CHECK(contains(text, "verdict: identical (1 identical)\n"));
    CHECK(contains(matrix({zoo.manifest({"error"})}).out, "no pair could be compared\nverdict: error (1 error)\n"));
    CHECK(contains(matrix({zoo.manifest({"inconclusive"})}).out,
                   "pooled rate of decided mismatches: no position was decided, nothing is excluded\n"));
}

TEST_CASE("correctness_matrix: the text has a line for each pair, in order, the totals, the verdict, what went wrong") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass", "error", "identical", "inconclusive", "fail"});
    const Finished run = matrix({manifest});
    CHECK(run.err == "");
    CHECK_FALSE(contains(run.out, "\x1b"));
    CHECK_FALSE(test::shows_nan_or_inf(run.out));
    std::vector<std::string> lines;
    std::istringstream text(run.out);
    for (std::string line; std::getline(text, line);) {
        CHECK_FALSE(line.ends_with(" "));
        lines.push_back(line);
    }
    REQUIRE(lines.size() == 13);
    CHECK(lines[0].starts_with("pair "));
    const std::vector<std::string> kinds{"pass", "error", "identical", "inconclusive", "fail"};
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(lines[i + 1].starts_with(kinds[i] + " "));
        CHECK(lines[i + 1].ends_with(" " + kinds[i]));
        CHECK(lines[i + 1].rfind("  ") + 2 == lines[0].find("verdict")); // the columns stand below their heads
    }
    CHECK(contains(lines[4], " 0 / 0  "));
    CHECK(contains(lines[4], "  nothing  "));
    CHECK(lines[7] == "top-1 disagrees at 4 of 7 positions, 1 of 3 decided (gap >= 2)");
    CHECK(lines[9] == "largest reference gap at a disagreement: 5.000 in fail, rank 2");
    CHECK(lines[10] == "verdict: fail (1 identical, 1 pass, 1 fail, 1 inconclusive, 1 error)");
    CHECK(contains(run.out, "\nerror: " + zoo.path("missing.tsv") + ": cannot open: No such file or directory\n"));
    CHECK(contains(matrix({manifest, "--color", "always"}).out, "\x1b[1;31mfail\x1b[0m"));
    CHECK(contains(matrix({zoo.manifest({"pass"}), "--color", "always"}).out, "\x1b[1;32mpass\x1b[0m"));
    CHECK(contains(matrix({zoo.manifest({"inconclusive"}), "--color", "always"}).out, "\x1b[1;33minconclusive\x1b[0m"));
    CHECK(contains(matrix({zoo.manifest({"error"}), "--color", "always"}).out, "\x1b[1;31merror\x1b[0m"));
    CHECK(contains(matrix({manifest}, {.environment = {}, .terminal = true, .out_file = {}}).out, "\x1b["));
}

TEST_CASE("correctness_matrix: every CSV field is the JSON's figure") {
    const TempFolder folder;
    random_manifest(folder, 3);
    folder.write("c", "# prefill\t3\n" + random_trace(1, 1000));
    const auto manifest =
        folder.write("pairs.tsv", header + "x\tt\ta0\tb0\nx\tu\ta1\tb1\ny\t\ta0\ta0\nz\t\ta0\tnone\nw\t\ta0\tc\n");
    const std::vector<std::string> options{manifest, "--confidence", "0.9", "--decided", "1.5"};
    auto csv_options = options;
    csv_options.insert(csv_options.end(), {"--csv", "-"});
    const json out = figures(options, 1);
    const auto table = csv_table(matrix(csv_options).out);
    REQUIRE(table.size() == 5);
    for (std::size_t i = 0; i < table.size(); ++i) {
        CAPTURE(i);
        const json& pair = out["pairs"][i];
        const json& c = pair["comparison"];
        const auto& row = table[i];
        for (const char* key : {"name", "tag", "reference", "candidate"}) { CHECK(row.at(key) == pair[key]); }
        if (c.is_null()) {
            CHECK(row.at("verdict") == "error");
            CHECK(row.at("error") == pair["error"]);
            CHECK(contains(row.at("error"), "none: cannot open"));
            for (const auto& [key, value] : row) {
                CHECK((value.empty() ||
                       std::set<std::string>{"name", "reference", "candidate", "verdict", "error"}.contains(key)));
            }
            continue;
        }
        const std::map<std::string, json> expected{{"positions", c["positions"]},
                                                   {"skipped_non_finite", c["skipped_non_finite"]},
                                                   {"chunks", c["chunks"]},
                                                   {"disagreements", c["top1"]["disagreements"]},
                                                   {"threshold", c["decided"]["threshold"]},
                                                   {"decided", c["decided"]["positions"]},
                                                   {"mismatches", c["decided"]["mismatches"]},
                                                   {"mismatch_rate", c["decided"]["rate"]},
                                                   {"upper_bound", c["decided"]["upper_bound"]},
                                                   {"largest_gap", c["largest_gap_at_disagreement"]["gap"]},
                                                   {"largest_gap_rank", c["largest_gap_at_disagreement"]["rank"]},
                                                   {"logit_delta_p50", c["logit_delta"]["p50"]},
                                                   {"logit_delta_p99", c["logit_delta"]["p99"]},
                                                   {"logit_delta_max", c["logit_delta"]["max"]},
                                                   {"reference_perplexity", c["perplexity"]["reference"]},
                                                   {"candidate_perplexity", c["perplexity"]["candidate"]},
                                                   {"perplexity_percent", c["perplexity"]["percent"]},
                                                   {"nll_difference", c["nll_difference"]["mean"]},
                                                   {"se_iid", c["nll_difference"]["se"]["iid"]},
                                                   {"se_clustered", c["nll_difference"]["se"]["clustered"]},
                                                   {"se_hac", c["nll_difference"]["se"]["hac"]},
                                                   {"p", c["nll_difference"]["p"]},
                                                   {"p_holm", pair["p_holm"]},
                                                   {"sign_test_p", c["nll_difference"]["sign_test_p"]},
                                                   {"mcnemar_p", c["mcnemar"]["p"]},
                                                   {"warnings", c["warnings"].size()}};
        CHECK(row.size() == expected.size() + 8); // four names, verdict and its reason, error, se_believed
        for (const auto& [key, value] : expected) {
            const std::string column = key;
            CAPTURE(column);
            REQUIRE(row.contains(column));
            CHECK(is_number(row.at(column), value));
        }
        CHECK(row.at("verdict") == c["verdict"]);
        CHECK(row.at("verdict_reason") == c["verdict_reason"]);
        CHECK(row.at("error") == "");
        CHECK(row.at("se_believed") == c["nll_difference"]["believed"]["se"]);
    }
    CHECK(table[2].at("largest_gap") == "");
    CHECK(table[4].at("warnings") == "1");
}

// ---- verdicts and exit statuses ------------------------------------------------------------------------------------

TEST_CASE("correctness_matrix: fail beats error beats inconclusive beats pass beats identical") {
    const Zoo zoo;
    const std::vector<std::string> worst_first{"fail", "error", "inconclusive", "pass", "identical"};
    const std::vector<int> status{1, 2, 3, 0, 0};
    for (unsigned chosen = 1; chosen < 32; ++chosen) {
        std::vector<std::string> kinds;
        for (unsigned i = 0; i < 5; ++i) {
            if ((chosen >> i & 1) != 0) { kinds.insert(chosen % 2 != 0 ? kinds.end() : kinds.begin(), worst_first[i]); }
        }
        const auto worst = static_cast<std::size_t>(
            std::find_if(worst_first.begin(), worst_first.end(),
                         [&](const auto& kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }) -
            worst_first.begin());
        CAPTURE(chosen);
        const json out = figures({zoo.manifest(kinds)}, status[worst]);
        CHECK(out["verdict"] == worst_first[worst]);
        CHECK(out["totals"]["pairs"] == kinds.size());
        CHECK(out["totals"]["errors"] == (chosen >> 1 & 1));
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            const json& pair = out["pairs"][i];
            CHECK(pair["name"] == kinds[i]);
            CHECK((kinds[i] == "error" ? pair["comparison"].is_null() : pair["comparison"]["verdict"] == kinds[i]));
        }
    }
}

TEST_CASE("correctness_matrix: the exit status is the same for each output and with --quiet") {
    const Zoo zoo;
    for (const auto& [kind, status] :
         std::map<std::string, int>{{"fail", 1}, {"error", 2}, {"inconclusive", 3}, {"pass", 0}}) {
        const auto manifest = zoo.manifest({"pass", kind == "pass" ? "identical" : kind});
        for (const std::vector<std::string>& more :
             {std::vector<std::string>{}, {"--csv", "-"}, {"--json", "-"}, {"--markdown", "-"}, {"-q"}}) {
            auto arguments = more;
            arguments.insert(arguments.begin(), manifest);
            const Finished run = matrix(arguments);
            CHECK(run.status == status);
            CHECK(run.err == "");
            CHECK(run.out.empty() == (more == std::vector<std::string>{"-q"}));
        }
    }
}

TEST_CASE("correctness_matrix: the rules of a pass reach every pair") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"fail", "pass"});
    CHECK(matrix({manifest}).status == 1);
    CHECK(matrix({manifest, "--max-mismatches", "1"}).status == 0);
    CHECK(matrix({manifest, "--max-mismatches", "1", "--min-decided", "2"}).status == 3);
    CHECK(matrix({manifest, "--decided", "6"}).status == 3);
    CHECK(matrix({zoo.manifest({"pass"}), "--max-rate", "0.9"}).status == 3); // one position excludes above 95 %
    CHECK(matrix({zoo.manifest({"pass"}), "--max-rate", "0.9", "--confidence", "0.8"}).status == 0);
    zoo.write("prefill.tsv", "# prefill\t3\n" + test::read_file(zoo.path("pass.tsv")));
    const auto unlike =
        zoo.write("pairs.tsv", header + "a\t\treference.tsv\tprefill.tsv\nb\t\treference.tsv\tpass.tsv\n");
    CHECK(matrix({unlike}).status == 0);
    const json strict = figures({unlike, "--strict"}, 2);
    CHECK(contains(strict["pairs"][0]["error"], "prefill"));
    CHECK(strict["pairs"][1]["comparison"]["verdict"] == "pass");
}

TEST_CASE("correctness_matrix: each report says of which pair a limit is not kept, and by how much") {
    const TempFolder folder;
    const std::string float32 = EXAMPLE_DATA "/float32.tsv", int4 = EXAMPLE_DATA "/int4.tsv";
    const auto manifest = folder.write("pairs.tsv", header + "same\t\t" + float32 + "\t" + float32 + "\nmoved\t\t" +
                                                        float32 + "\t" + int4 + "\n");
    const std::vector<std::string> options{manifest, "--max-mismatches", "1000", "--max-ppl-increase"};
    const auto report = [&](const std::string& percent, int status, const std::vector<std::string>& format) {
        auto words = options;
        words.push_back(percent);
        words.insert(words.end(), format.begin(), format.end());
        const Finished run = matrix(words);
        CHECK(run.status == status);
        return run.out;
    };
    // The interval of compare_traces for this pair.
    const std::string figure = "perplexity increase 6.305 % (0.461 to 12.488 %)",
                      above = " is above the limit of 0.400 %",
                      unknown = " is not shown to be above or within the limit of 2.000 %";
    CHECK(report("0.4", 1, {}).ends_with("\nmoved: " + figure + above + "\n"));
    CHECK(report("2", 3, {}).ends_with("\nmoved: " + figure + unknown + "\n"));
    CHECK(contains(report("0.4", 1, {"--markdown", "-"}),
                   "\n\n## Limits exceeded or in doubt\n\n- moved: " + figure + above + "\n\n## Perplexity\n"));
    const auto rows = csv_table(report("0.4", 1, {"--csv", "-"}));
    CHECK(rows.at(0).at("verdict") == "identical");
    CHECK(rows.at(0)
              .at("verdict_reason")
              .ends_with("; perplexity increase 0.000 % (0.000 to 0.000 %) is within the limit of "
                         "0.400 %"));
    CHECK(rows.at(1).at("verdict_reason").starts_with(figure + above + "; 9 mismatches at the 284 positions"));
    CHECK_FALSE(contains(report("20", 0, {}), "\nmoved: "));
    CHECK_FALSE(contains(report("20", 0, {"--markdown", "-"}), "in doubt"));
}

TEST_CASE("correctness_matrix: bad pairs of every sort are reported and stop nothing") {
    const Zoo zoo;
    zoo.write("torn.tsv", "0\t0\t10\t1.0\t1,2\n");
    zoo.write("empty.tsv", "");
    fs::create_directory(zoo.path("folder"));
    const auto manifest =
        zoo.write("pairs.tsv", header + "1\t\treference.tsv\tmissing.tsv\n2\t\ttorn.tsv\treference.tsv\n"
                                        "3\t\treference.tsv\tempty.tsv\n4\t\treference.tsv\tfolder\n"
                                        "5\t\treference.tsv\tshort.tsv\n6\t\treference.tsv\tpass.tsv\n");
    const json out = figures({manifest}, 2);
    const std::vector<std::string> reasons{"missing.tsv: cannot open", "torn.tsv", "empty.tsv: the file is empty",
                                           "folder: is a directory", "not comparable"};
    for (std::size_t i = 0; i < reasons.size(); ++i) { CHECK(contains(out["pairs"][i]["error"], reasons[i])); }
    CHECK(out["pairs"][5]["comparison"]["verdict"] == "pass");
    CHECK(out["totals"]["errors"] == 5);
    CHECK(out["totals"]["positions"] == 2);
    CHECK(out["totals"]["verdicts"] == json{{"pass", 1}});
    const Finished text = matrix({manifest});
    CHECK(contains(text.out, "verdict: error (1 pass, 5 errors)"));
    for (const std::string& reason : reasons) { CHECK(contains(text.out, reason)); }
}

// ---- folders, threads, progress ------------------------------------------------------------------------------------

TEST_CASE("correctness_matrix: two folders, by equal names or by a pattern") {
    const Zoo zoo;
    for (const char* side : {"metal", "rocm"}) { fs::create_directory(zoo.path(side)); }
    const auto copy = [&](const std::string& from, const std::string& to) {
        zoo.write(to, test::read_file(zoo.path(from)));
    };
    copy("reference.tsv", "metal/metal_llama_w1.tsv");
    copy("pass.tsv", "rocm/rocm_llama_w1.tsv");
    copy("reference.tsv", "metal/metal_gemma_w256.tsv");
    copy("fail.tsv", "rocm/rocm_gemma_w256.tsv");
    copy("reference.tsv", "metal/same.tsv");
    copy("reference.tsv", "rocm/same.tsv");
    const json equal = figures({zoo.path("metal"), zoo.path("rocm")}, 2);
    REQUIRE(equal["pairs"].size() == 5); // those that go by other names on the other side have no partner
    CHECK(equal["totals"]["errors"] == 4);
    CHECK(equal["pairs"][4]["name"] == "same.tsv");
    CHECK(equal["pairs"][4]["comparison"]["verdict"] == "identical");
    std::vector<std::string> by_pattern{
        zoo.path("metal"), zoo.path("rocm"), "--pattern", "[^_]+_(.*)_(w[0-9]+)\\.tsv", "--json", "-"};
    const Finished run = matrix(by_pattern);
    CHECK(run.status == 1);
    CHECK(contains(run.err, "2 files left out by --pattern, such as "));
    by_pattern.push_back("--strict");
    check_refused(matrix(by_pattern), {"2 files left out by --pattern"});
    const json named = json::parse(run.out);
    REQUIRE(named["pairs"].size() == 2);
    CHECK(named["pairs"][0]["name"] == "gemma");
    CHECK(named["pairs"][0]["tag"] == "w256");
    CHECK(named["pairs"][0]["comparison"]["verdict"] == "fail");
    CHECK(named["pairs"][1]["name"] == "llama");
    CHECK(named["pairs"][1]["candidate"] == zoo.path("rocm/rocm_llama_w1.tsv"));
    CHECK(matrix({zoo.path("metal"), zoo.path("rocm"), "--pattern", "same.*"}).status == 0);
    const auto refused = [&](const std::string& pattern, const std::vector<std::string>& parts) {
        check_refused(matrix({zoo.path("metal"), zoo.path("rocm"), "--pattern", pattern}), parts);
    };
    refused("nothing", {"no file of", "pairs up"});
    refused("(", {"bad pattern '('"});
    refused("(metal|rocm)?.*", {"the same name"});
}

TEST_CASE("correctness_matrix: the number of threads changes no byte of any report") {
    const TempFolder folder;
    const auto manifest = random_manifest(folder, 9);
    folder.write("pairs.tsv", test::read_file(manifest) + "missing\t\ta0\tnone\n");
    const auto reports = [&](std::vector<std::string> threads) {
        threads.insert(threads.begin(), manifest);
        threads.insert(threads.end(),
                       {"--json", folder.path("j"), "--markdown", folder.path("m"), "--csv", folder.path("c")});
        const Finished run = matrix(threads);
        CHECK(run.status == 1);
        CHECK(run.err == "");
        return std::vector{run.out, test::read_file(folder.path("j")), test::read_file(folder.path("m")),
                           test::read_file(folder.path("c"))};
    };
    const auto one = reports({"--threads", "1"});
    CHECK(test::count_lines(one[3]) == 12);
    for (const std::string threads : {"1", "2", "8", "0", "100"}) { CHECK(reports({"--threads", threads}) == one); }
    CHECK(reports({}) == one);
    for (const std::string bad : {"", "-1", "x", "1.5", "2x"}) {
        check_refused(matrix({manifest, "--threads", bad}), {"--threads"});
    }
}

TEST_CASE("correctness_matrix: progress is for a terminal, and only when the work is long") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass", "identical"});
    const std::string slow =
        zoo.write("slow.tsv", header + "slow\t\tpipe\tpass.tsv\nquick\t\treference.tsv\tpass.tsv\n");
    const auto run = [&](const std::string& script, bool terminal) {
        return test::run(
            {"sh", "-c", script, "sh", CORRECTNESS_MATRIX, manifest, slow, zoo.path("pipe"), zoo.path("reference.tsv")},
            {.environment = {}, .terminal = terminal, .out_file = {}});
    };
    const Finished quick = run("exec \"$1\" \"$2\" 2>&1 >/dev/null", true);
    CHECK(quick.status == 0);
    CHECK(quick.out == "");
    if (test::run({"mkfifo", zoo.path("pipe")}).status != 0) {
        MESSAGE("SKIPPED: no mkfifo");
        return;
    }
    // One pair's reference comes through a pipe, and late.
    const std::string late = "(sleep 1.2; cat \"$5\" >\"$4\") & exec \"$1\" \"$3\" --threads 1 ";
    const Finished file = run(late + ">/dev/null", false);
    CHECK(file.status == 0);
    CHECK(file.out == "");
    CHECK(file.err == "");
    const Finished terminal = run(late + "2>&1 >/dev/null", true);
    CHECK(terminal.status == 0);
    CHECK(terminal.out == "\r1 of 2 pairs\r2 of 2 pairs\r\x1b[K"); // and wiped
}

// ---- arguments and outputs -----------------------------------------------------------------------------------------

TEST_CASE("correctness_matrix: bad usage") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass"});
    fs::create_directory(zoo.path("folder"));
    check_refused(matrix({}), {"MANIFEST", "--help"});
    check_refused(matrix({""}), {"MANIFEST"});
    check_refused(matrix({zoo.path("folder")}), {"folder", "needs a folder of candidates", "--help"});
    check_refused(matrix({manifest, zoo.path("folder")}), {"CANDIDATES goes with a folder"});
    check_refused(matrix({manifest, manifest}), {"CANDIDATES goes with a folder"});
    check_refused(matrix({manifest, ""}), {"CANDIDATES"});
    check_refused(matrix({manifest, "--pattern", ".*"}), {"--pattern goes with two folders"});
    check_refused(matrix({zoo.path("folder"), zoo.path("none")}), {"none: cannot read the folder"});
    check_refused(matrix({zoo.path("folder"), manifest}), {"pairs.tsv: cannot read the folder"});
    check_refused(matrix({manifest, zoo.path("folder"), "more"}), {"more"});
    check_refused(matrix({zoo.path("none.tsv")}), {"none.tsv: cannot open"});
    check_refused(matrix({zoo.path("reference.tsv")}), {"reference.tsv:1:1: ", "name tag reference candidate"});
    check_refused(matrix({zoo.write("bad.tsv", header + "a\tb\n")}), {"bad.tsv:2:1: ", "4 tab-separated fields"});
    check_refused(matrix({manifest, "--frobnicate"}), {"--frobnicate"});
    check_refused(matrix({manifest, "--top", "3"}), {"--top"}); // an option of the other program
    check_refused(matrix({manifest, "--decided", "x"}), {"--decided", "'x'"});
    check_refused(matrix({manifest, "--max-rate", "0"}), {"--max-rate"});
    for (const std::string output : {"--json", "--markdown", "--csv"}) {
        check_refused(matrix({manifest, output}), {output});
        check_refused(matrix({manifest, output, ""}), {output});
    }
}

TEST_CASE("correctness_matrix: --help and --version") {
    const Finished help = matrix({"--help"});
    CHECK(help.status == 0);
    CHECK(help.err == "");
    for (const char* part : {"Usage: correctness_matrix", "MANIFEST", "CANDIDATES", "--pattern", "--threads", "--csv",
                             "--json", "--markdown", "--max-rate", "Exit status", "  0  ", "  1  ", "  2  ", "  3  "}) {
        CAPTURE(part);
        CHECK(contains(help.out, part));
    }
    const Finished version = matrix({"--version"});
    CHECK(version.status == 0);
    CHECK(version.out.starts_with("correctness_matrix "));
    CHECK(test::count_lines(version.out) == 1);
}

TEST_CASE("correctness_matrix: reports in files come beside the text; the same bytes as on standard output") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass", "error"});
    const std::set<std::string> before = zoo.names();
    const Finished plain = matrix({manifest});
    const Finished all =
        matrix({manifest, "--json", zoo.path("r.json"), "--markdown", zoo.path("r.md"), "--csv", zoo.path("r.csv")});
    CHECK(all.status == 2);
    CHECK(all.out == plain.out);
    std::set<std::string> after = before;
    after.insert({"r.json", "r.md", "r.csv"});
    CHECK(zoo.names() == after);
    for (const auto& [flag, name] :
         std::map<std::string, std::string>{{"--json", "r.json"}, {"--markdown", "r.md"}, {"--csv", "r.csv"}}) {
        CHECK(matrix({manifest, flag, "-"}).out == test::read_file(zoo.path(name)));
    }
    CHECK(matrix({manifest, "-q", "--csv", zoo.path("r.csv")}).out == "");
}

TEST_CASE("correctness_matrix: outputs that would share a place, or overwrite an input, are refused") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass", "fail"});
    const std::set<std::string> before = zoo.names();
    const std::string text = test::read_file(manifest);
    const std::vector<std::string> flags{"--json", "--markdown", "--csv"};
    for (std::size_t i = 0; i < 3; ++i) {
        for (const std::string input : {"pairs.tsv", "reference.tsv", "pass.tsv", "fail.tsv", "./fail.tsv"}) {
            CAPTURE(input);
            check_refused(matrix({manifest, flags[i], zoo.path(input)}),
                          {input, "a report would overwrite this input"});
        }
        for (std::size_t j = 0; j < i; ++j) {
            check_refused(matrix({manifest, flags[i], "-", flags[j], "-"}),
                          {flags[i] + " -", flags[j] + " -", "standard output"});
            check_refused(matrix({manifest, flags[i], zoo.path("x"), flags[j], zoo.path("./x")}), {"the same file"});
        }
    }
    CHECK(zoo.names() == before);
    CHECK(test::read_file(manifest) == text);
    CHECK(test::read_file(zoo.path("pass.tsv")).size() > 10);
    // In folders too.
    for (const char* side : {"a", "b"}) {
        fs::create_directory(zoo.path(side));
        zoo.write(std::string(side) + "/t.tsv", test::read_file(zoo.path("reference.tsv")));
    }
    check_refused(matrix({zoo.path("a"), zoo.path("b"), "--csv", zoo.path("b/t.tsv")}), {"overwrite this input"});
}

TEST_CASE("correctness_matrix: an output that cannot be written is an error, and nothing else appears") {
    const Zoo zoo;
    const auto manifest = zoo.manifest({"pass"});
    zoo.write("earlier.json", "earlier");
    const std::set<std::string> before = zoo.names();
    check_refused(matrix({manifest, "--csv", zoo.path("none/x.csv")}), {"none/x.csv", "cannot write"});
    check_refused(matrix({manifest, "--json", zoo.path("earlier.json"), "--markdown", zoo.path("new.md"), "--csv",
                          zoo.path("none/x")}),
                  {"none/x"});
    check_refused(matrix({manifest, "--json", "-", "--csv", zoo.path()}), {"directory"});
    if (fs::exists("/dev/full")) {
        check_refused(matrix({manifest, "--json", zoo.path("earlier.json"), "--csv", "/dev/full"}),
                      {"/dev/full", "No space left"});
        check_refused(matrix({manifest, "--csv", zoo.path("new.csv")},
                             {.environment = {}, .terminal = false, .out_file = "/dev/full"}),
                      {"standard output"});
    }
    check_refused(matrix({manifest, "--json", zoo.path("new.json"), "--max-rate", "2"}), {"--max-rate"});
    check_refused(matrix({zoo.path("none.tsv"), "--json", zoo.path("new.json")}), {"none.tsv"});
    CHECK(zoo.names() == before);
    CHECK(test::read_file(zoo.path("earlier.json")) == "earlier");
}

TEST_CASE("correctness_matrix: names that try to break a format or a terminal") {
    const Zoo zoo;
    const std::string hostile = "a|b,c\"d`e*_<i>\\ \x1b[31m\x07\xff\xc2\x9b"
                                "2J";
    const std::string rows = hostile + "\t" + hostile + "\treference.tsv\tpass.tsv\n" + hostile +
                             "\t\treference.tsv\tmissing " + hostile + "\n=1+1\t\treference.tsv\tfail.tsv\n";
    const auto manifest = zoo.write("pairs.tsv", header + rows);
    const Finished text = matrix({manifest}), markdown = matrix({manifest, "--markdown", "-"});
    for (const std::string& report : {text.out, markdown.out}) {
        CHECK(test::is_utf8(report));
        for (const char* control : {"\x1b", "\x07", "\xc2\x9b"}) { CHECK_FALSE(contains(report, control)); }
    }
    CHECK(contains(text.out, "a|b,c\"d`e*_<i>\\ ?[31m?"));
    const auto tables = test::markdown_tables(markdown.out);
    REQUIRE(tables.size() == 4);
    CHECK(tables[0].size() == 4);
    CHECK(tables[0][1][0].starts_with("a|b,c\"d`e*_<i>\\ ?[31m?"));
    CHECK(tables[0][1][1] == tables[0][1][0]);
    CHECK(tables[0][1].back() == "pass");
    CHECK(contains(markdown.out, "\n- a\\|b,c\"d\\`e\\*\\_\\<i\\>\\\\ ?\\[31m?")); // in the notes too
    for (std::size_t start = 0, end = 0; start < markdown.out.size(); start = end + 1) {
        end = markdown.out.find('\n', start);
        const std::string line = markdown.out.substr(start, end - start);
        CHECK((line.empty() || line[0] == '|' || line[0] == '-' || line[0] == '#' || line[0] == '*' ||
               line.starts_with("The candidate gives")));
    }

    const json out = figures({manifest}, 1);
    CHECK(out["pairs"][0]["name"].get<std::string>().starts_with("a|b,c\"d`e*_<i>\\ \x1b[31m\x07"));
    const auto table = csv_table(matrix({manifest, "--csv", "-"}).out);
    REQUIRE(table.size() == 3);
    CHECK(table[0].at("name") == hostile); // data: not one byte lost
    CHECK(table[0].at("tag") == hostile);
    CHECK(table[0].at("verdict") == "pass");
    CHECK(table[1].at("candidate") == zoo.path("missing " + hostile));
    CHECK(table[2].at("name") == "=1+1");
}

TEST_CASE("correctness_matrix: file names with line breaks, in folders") {
    const Zoo zoo;
    const std::string name = "two\r\nlines\n\n# \"x\",y\x1b[2J\xfe";
    for (const char* side : {"a", "b"}) { fs::create_directory(zoo.path(side)); }
    zoo.write("a/" + name, test::read_file(zoo.path("reference.tsv")));
    zoo.write("b/" + name, test::read_file(zoo.path("pass.tsv")));
    zoo.write("a/alone\n", "");
    const std::vector<std::string> folders{zoo.path("a"), zoo.path("b")};
    const auto with = [&](const std::string& flag) {
        const Finished run = matrix({folders[0], folders[1], flag, "-"});
        CHECK(run.status == 2);
        CHECK(run.err == "");
        return run.out;
    };
    const auto table = csv_table(with("--csv"));
    REQUIRE(table.size() == 2);
    CHECK(table[0].at("name") == "alone\n");
    CHECK(table[1].at("name") == name);
    CHECK(table[1].at("reference") == zoo.path("a/" + name));
    CHECK(json::parse(with("--json"))["pairs"][0]["name"] == "alone\n");
    const std::string markdown = with("--markdown");
    CHECK(test::is_utf8(markdown));
    CHECK(test::markdown_tables(markdown)[0].size() == 3);
    CHECK(contains(markdown, "| two??lines??# \"x\",y?\\[2J? |"));
    const Finished text = matrix(folders);
    CHECK(test::is_utf8(text.out));
    CHECK_FALSE(contains(text.out, "\x1b"));
    CHECK(contains(text.out, "two??lines??# \"x\",y?[2J?  "));
    CHECK(contains(text.out, "\nalone?: "));
}

} // namespace test_correctness_matrix

// The published figures of real traces, from their files to the verdict: every column of the producers' table at the
// precision that they print.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "logitstat/logitstat.hpp"

namespace {

namespace fs = std::filesystem;
using logitstat::Comparison;
using Row = std::map<std::string, std::string>; // column -> printed figure

int passed = 0, failed = 0, named = 0;

void check(bool ok, const Row& row, const std::string& what, const std::string& expected, const std::string& actual) {
    ++(ok ? passed : failed);
    if (!ok) {
        std::printf("FAILED: %s %s: %s: expected %s, got %s\n", row.at("model").c_str(), row.at("width").c_str(),
                    what.c_str(), expected.c_str(), actual.c_str());
    }
}

std::string shown(const std::optional<double>& x) {
    std::ostringstream out;
    out.precision(12);
    if (!x) { return "-"; }
    out << *x;
    return out.str();
}

/// Does `figure` print as `text`, which has been rounded to its last digit? A `-` says that there is no figure.
bool prints_as(const std::optional<double>& figure, const std::string& text) {
    if (text == "-" || !figure) { return text == "-" && !figure; }
    char* end = nullptr;
    const double printed = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') { return false; }
    const std::size_t point = text.find('.');
    const auto decimals = point == std::string::npos ? 0.0 : static_cast<double>(text.size() - point - 1);
    // A hair above half a unit: printed ties are rounded either way. False for NaN.
    return std::abs(*figure - printed) <= 0.500001 * std::pow(10.0, -decimals);
}

std::string ranks_of(const Comparison& c) {
    std::string text;
    for (const auto& [rank, count] : c.ranks) {
        text += (text.empty() ? "" : ",") + (rank ? std::to_string(*rank) : ">k") + ":" + std::to_string(count);
    }
    return text.empty() ? "-" : text;
}

std::optional<double> number(auto x) { return static_cast<double>(x); }

/// How each column of figures is computed.
const std::map<std::string, std::function<std::optional<double>(const Comparison&)>, std::less<>> figures{
    {"positions", [](const Comparison& c) { return number(c.positions); }},
    {"top1_disagree", [](const Comparison& c) { return number(c.disagreements); }},
    {"decided05", [](const Comparison& c) { return number(c.sweep.at(0).positions); }},
    {"mismatch05", [](const Comparison& c) { return number(c.sweep.at(0).mismatches); }},
    {"decided10", [](const Comparison& c) { return number(c.sweep.at(1).positions); }},
    {"mismatch10", [](const Comparison& c) { return number(c.sweep.at(1).mismatches); }},
    {"decided20", [](const Comparison& c) { return number(c.decided.positions); }},
    {"mismatch20", [](const Comparison& c) { return number(c.decided.mismatches); }},
    {"largest_gap", [](const Comparison& c) { return c.largest_gap ? number(c.largest_gap->gap) : std::nullopt; }},
    {"delta_p50", [](const Comparison& c) { return c.logit_delta.p50; }},
    {"delta_p90", [](const Comparison& c) { return c.logit_delta.p90; }},
    {"delta_p99", [](const Comparison& c) { return c.logit_delta.p99; }},
    {"delta_max", [](const Comparison& c) { return c.logit_delta.max; }},
    {"ppl_ref", [](const Comparison& c) { return number(c.reference_perplexity.value); }},
    {"ppl_cand", [](const Comparison& c) { return number(c.candidate_perplexity.value); }},
    {"ppl_pct", [](const Comparison& c) { return number(c.nll_difference.perplexity_percent); }},
    {"dnll_mean", [](const Comparison& c) { return number(c.nll_difference.mean); }},
    {"dnll_se", [](const Comparison& c) { return c.nll_difference.se.iid; }},
    {"dnll_higher", [](const Comparison& c) { return number(c.nll_difference.higher); }},
    {"dnll_lower", [](const Comparison& c) { return number(c.nll_difference.lower); }},
    {"dnll_max_abs", [](const Comparison& c) { return number(std::abs(c.nll_difference.largest)); }},
};

/// What three of the pairs are known for.
void check_known(const Row& row, const Comparison& c) {
    const std::string pair = row.at("model") + " " + row.at("width");
    const auto says = [&](const std::string& sentence) {
        check(logitstat::text_report(c).find(sentence) != std::string::npos, row, "text report", sentence,
              "no such words");
    };
    const auto is = [&](const std::string& what, const std::optional<double>& figure, const std::string& expected) {
        check(prints_as(figure, expected), row, what, expected, shown(figure));
    };
    if (pair == "granite-4.0-h-tiny w1ctx512") {
        ++named;
        is("mean difference", c.nll_difference.mean, "0.0200");
        is("its iid SE", c.nll_difference.se.iid, "0.0196");
        is("higher", number(c.nll_difference.higher), "66");
        is("lower", number(c.nll_difference.lower), "58");
    } else if (pair == "gemma-3-4b-it w1") {
        ++named;
        check(c.verdict == logitstat::Verdict::pass, row, "verdict", "pass", std::string(to_string(c.verdict)));
        is("decided", number(c.decided.positions), "2");
        is("mismatches", number(c.decided.mismatches), "0");
        is("bound in percent", 100 * c.rate(c.decided).upper_bound, "77.6"); // 1 - 0.05^(1/2)
        says("PASS: no mismatch at the 2 positions that the reference had decided (gap >= 2)\n"
             "           only mismatch rates above 77.7"); // rounded up, so that what is said to be excluded is
    } else if (pair == "nemotron-3-nano-30b-a3b w1") {
        ++named;
        check(c.verdict == logitstat::Verdict::inconclusive, row, "verdict", "inconclusive",
              std::string(to_string(c.verdict)));
        check(exit_code(c.verdict) == 3, row, "exit status", "3", std::to_string(exit_code(c.verdict)));
        says("INCONCLUSIVE: the reference had decided no position (gap >= 2): there is nothing to judge by");
    }
}

std::string bytes_of(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Every trace of the folder: to the binary format and back, byte by byte.
void check_round_trips(const fs::path& traces) {
    const fs::path folder = fs::temp_directory_path() / ("logitstat-real-" + std::to_string(std::random_device{}()));
    fs::create_directory(folder);
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(traces)) {
        if (entry.path().extension() != ".tsv") { continue; }
        ++files;
        const Row row{{"model", entry.path().filename().string()}, {"width", ""}};
        std::string outcome = "the same";
        try {
            logitstat::write_binary_trace(folder / "t.safetensors", logitstat::read_trace(entry.path()));
            logitstat::write_text_trace(folder / "t.tsv", logitstat::read_trace(folder / "t.safetensors"));
            if (bytes_of(folder / "t.tsv") != bytes_of(entry.path())) { outcome = "other bytes"; }
        } catch (const std::exception& error) { outcome = error.what(); }
        check(outcome == "the same", row, "text to binary to text", "the same", outcome);
    }
    check(files >= 10, {{"model", "all traces"}, {"width", ""}}, "files", "at least 10", std::to_string(files));
    std::error_code ignored;
    fs::remove_all(folder, ignored);
}

/// All pairs at once: the sums over the table.
void check_matrix(const std::vector<Row>& rows, const fs::path& traces) {
    const Row all{{"model", "all pairs"}, {"width", ""}};
    std::vector<logitstat::PairSpec> specs;
    std::map<std::string, double> sums;
    std::map<std::string, std::int64_t> ranks, verdicts;
    double largest = -1;
    std::string where;
    for (const Row& row : rows) {
        specs.push_back({row.at("model"), row.at("width"), traces / row.at("reference"), traces / row.at("candidate")});
        for (const auto& [column, text] : row) { sums[column] += std::strtod(text.c_str(), nullptr); }
        ++verdicts[row.at("verdict")];
        std::istringstream list(row.at("ranks"));
        for (std::string item; std::getline(list, item, ',') && item != "-";) {
            ranks[item.substr(0, item.find(':'))] += std::stoll(item.substr(item.find(':') + 1));
        }
        if (std::strtod(row.at("largest_gap").c_str(), nullptr) > largest) {
            largest = std::strtod(row.at("largest_gap").c_str(), nullptr);
            where = specs.back().label();
        }
    }
    const logitstat::Matrix matrix = logitstat::compare_pairs(specs);
    const logitstat::MatrixTotals& t = matrix.totals;
    const auto is = [&](const std::string& what, std::int64_t actual, double expected) {
        check(static_cast<double>(actual) == expected, all, what, shown(expected), std::to_string(actual));
    };
    is("pairs", t.pairs, static_cast<double>(rows.size()));
    is("errors", t.errors, 0);
    is("positions", t.positions, sums["positions"]);
    is("disagreements", t.disagreements, sums["top1_disagree"]);
    is("decided", t.decided.positions, sums["decided20"]);
    is("mismatches", t.decided.mismatches, sums["mismatch20"]);
    const std::string suffix[] = {"05", "10", "20"};
    for (std::size_t j = 0; j < 3; ++j) {
        is("decided" + suffix[j], t.sweep.at(j).positions, sums["decided" + suffix[j]]);
        is("mismatch" + suffix[j], t.sweep.at(j).mismatches, sums["mismatch" + suffix[j]]);
    }
    is("number of ranks", static_cast<std::int64_t>(t.ranks.size()), static_cast<double>(ranks.size()));
    for (const auto& [rank, count] : t.ranks) {
        const std::string name = rank ? std::to_string(*rank) : ">k";
        is("rank " + name, count, static_cast<double>(ranks[name]));
    }
    for (const auto& [verdict, count] : t.verdicts) {
        is(std::string(to_string(verdict)), count, static_cast<double>(verdicts[std::string(to_string(verdict))]));
    }
    check(t.largest_gap_pair.has_value(), all, "largest gap", "one", "none");
    if (t.largest_gap_pair) {
        const logitstat::MatrixPair& pair = matrix.pairs[*t.largest_gap_pair];
        check(pair.spec.label() == where, all, "pair of the largest gap", where, pair.spec.label());
        check(prints_as(pair.comparison->largest_gap->gap, std::to_string(largest)), all, "largest gap",
              std::to_string(largest), shown(pair.comparison->largest_gap->gap));
    }
    const std::string overall = verdicts["fail"] > 0 ? "fail" : verdicts["inconclusive"] > 0 ? "inconclusive" : "pass";
    check(to_string(matrix.verdict) == overall, all, "verdict", overall, std::string(to_string(matrix.verdict)));
}

void check_row(const Row& row, const fs::path& traces) {
    const auto reference = logitstat::read_trace(traces / row.at("reference"));
    const auto candidate = logitstat::read_trace(traces / row.at("candidate"));
    const Comparison c = logitstat::compare(reference, candidate, {.decided_gap = 2.0, .thresholds = {0.5, 1.0}});
    for (const auto& [column, expected] : row) {
        if (column == "ranks") {
            check(ranks_of(c) == expected, row, column, expected, ranks_of(c));
        } else if (column == "verdict") {
            const std::string verdict(logitstat::to_string(c.verdict));
            check(verdict == expected, row, column, expected, verdict);
        } else if (const auto figure = figures.find(column); figure != figures.end()) {
            const auto actual = figure->second(c);
            check(prints_as(actual, expected), row, column, expected, shown(actual));
        } else if (column != "model" && column != "width" && column != "reference" && column != "candidate") {
            check(false, row, column, expected, "an unknown column");
        }
    }
    check_known(row, c);
    // That model's loader writes five lines ahead of the data; none of the others writes any.
    const std::size_t chatter = row.at("model").starts_with("nemotron") ? 5 : 0;
    for (const auto* trace : {&reference, &candidate}) {
        check(trace->source.skipped_lines() == chatter, row, "skipped lines of " + trace->source.path,
              std::to_string(chatter), std::to_string(trace->source.skipped_lines()));
    }
    check(c.warnings.empty(), row, "warnings", "none", c.warnings.empty() ? "none" : c.warnings.front());
    const Comparison self = logitstat::compare(reference, reference);
    check(self.verdict == logitstat::Verdict::identical && self.identical_data && self.nll_difference.se.iid == 0.0 &&
              self.nll_difference.p == 1.0,
          row, "the reference with itself", "identical", std::string(logitstat::to_string(self.verdict)));
}

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; std::getline(in, word, '\t');) { words.push_back(word); }
    return words;
}

int run(const fs::path& traces) {
    const fs::path table = traces / ".." / "expected" / "mlxcel_pairs.tsv";
    if (traces.empty() || !fs::is_directory(traces) || !fs::exists(table)) {
        std::printf("SKIPPED: no real traces at '%s', or no table of expected figures beside them\n",
                    traces.string().c_str());
        return 77;
    }
    std::ifstream in(table);
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> columns = split(line);
    std::vector<Row> rows;
    while (std::getline(in, line)) {
        const std::vector<std::string> words = split(line);
        Row row{{"model", "?"}, {"width", "?"}};
        for (std::size_t i = 0; i < std::min(words.size(), columns.size()); ++i) { row[columns[i]] = words[i]; }
        check(words.size() == columns.size(), row, "fields", std::to_string(columns.size()),
              std::to_string(words.size()));
        try {
            check_row(row, traces);
        } catch (const std::exception& error) { check(false, row, "exception", "none", error.what()); }
        rows.push_back(row);
    }
    try {
        check_round_trips(traces);
        check_matrix(rows, traces);
    } catch (const std::exception& error) {
        check(false, {{"model", "all pairs"}, {"width", ""}}, "exception", "none", error.what());
    }
    std::printf("%zu pairs, %d of them known for something: %d checks passed, %d failed\n", rows.size(), named, passed,
                failed);
    return named == 3 && failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const char* elsewhere = std::getenv("LOGITSTAT_REAL_TRACES");
    return run(elsewhere != nullptr ? elsewhere : argc > 1 ? argv[1] : "");
}

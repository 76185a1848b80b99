#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "programs/run_program.hpp"
#include "report/markdown_tables.hpp"

namespace test_compare_traces {

// compare_traces as a user runs it: arguments and files in; standard output, standard error, exit status, files out.

using nlohmann::json;
using test::contains;
using test::Finished;
using test::small_trace;
using test::TempFolder;

namespace {

const std::string reference_path = TEST_DATA "/trigram_float32.tsv";
const std::string candidate_path = TEST_DATA "/trigram_int8.tsv";

Finished compare_traces(std::vector<std::string> arguments, const test::RunOptions& options = {}) {
    arguments.insert(arguments.begin(), COMPARE_TRACES);
    return test::run(arguments, options);
}

Finished compare_example(std::vector<std::string> more, const test::RunOptions& options = {}) {
    more.insert(more.begin(), {reference_path, candidate_path});
    return compare_traces(more, options);
}

/// The JSON of a comparison, which must have been everything on standard output.
json figures(std::vector<std::string> arguments, int status = 0) {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Finished run = compare_traces(arguments);
    CHECK(run.status == status);
    CHECK(run.err == "");
    CHECK(test::is_utf8(run.out));
    CHECK_FALSE(test::shows_nan_or_inf(run.out));
    return json::parse(run.out);
}

/// Exit status 2, nothing on standard output, one line on standard error that holds each of `parts`.
void check_refused(const Finished& run, const std::vector<std::string>& parts = {}, std::size_t lines = 1) {
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(test::count_lines(run.err) == lines);
    CHECK(run.err.ends_with("\n"));
    CHECK(run.err.starts_with("compare_traces: "));
    CHECK_FALSE(contains(run.err, "\x1b"));
    for (const std::string& part : parts) {
        CAPTURE(part);
        CHECK(contains(run.err, part));
    }
}

/// Two rows each; the second differs at a gap of 0.5.
const std::vector<std::string> small_reference = {"10,5 9.000000,4.000000 0.100000", "7,11 3.500000,3.000000 1.000000"};
const std::vector<std::string> small_candidate = {"10,5 9.000000,4.000000 0.100000", "11,7 3.250000,3.125000 0.900000"};

struct Row {
    int chunk = 0, pos = 0, target = 0;
    double nll = 0;
    std::vector<int> ids;
    std::vector<double> logits;
};

/// The rows of a trace, read with nothing of the library.
std::vector<Row> rows_of(const std::string& path) {
    std::ifstream stream(path);
    std::vector<Row> rows;
    for (std::string line; std::getline(stream, line);) {
        if (line.starts_with("#")) { continue; }
        std::istringstream fields(line);
        Row row;
        std::string ids, logits, item;
        fields >> row.chunk >> row.pos >> row.target >> row.nll >> ids >> logits;
        for (std::istringstream list(ids); std::getline(list, item, ',');) { row.ids.push_back(std::stoi(item)); }
        for (std::istringstream list(logits); std::getline(list, item, ',');) { row.logits.push_back(std::stod(item)); }
        rows.push_back(row);
    }
    return rows;
}

std::vector<std::string> traces() { return {reference_path, candidate_path}; }
std::vector<std::string> traces_and(std::vector<std::string> more) {
    more.insert(more.begin(), {reference_path, candidate_path});
    return more;
}

} // namespace

// ---- what it reports -----------------------------------------------------------------------------------------------

TEST_CASE("compare_traces: the text report of a pair") {
    const Finished run = compare_example({});
    CHECK(run.status == 0);
    CHECK(run.err == "");
    const std::size_t n = rows_of(reference_path).size();
    for (const std::string& part :
         {"reference  " + reference_path, "candidate  " + candidate_path, std::to_string(n) + " positions in 8 chunks",
          std::string("verdict    PASS: "), std::string("Top-1 agreement"), std::string("<- verdict"),
          std::string("Perplexity"), std::string("NLL difference"), std::string("Accuracy"),
          std::string("standard errors from zero")}) {
        CAPTURE(part);
        CHECK(contains(run.out, part));
    }
    CHECK_FALSE(contains(run.out, "Warnings"));
    CHECK_FALSE(contains(run.out, "\x1b"));
    CHECK_FALSE(test::shows_nan_or_inf(run.out));
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK_FALSE(line.ends_with(" "));
        CHECK((line.size() <= 120 || contains(line, TEST_DATA)));
    }
}

TEST_CASE("compare_traces: every JSON key of the interface, with the right type") {
    for (const auto& pair : {traces(), std::vector<std::string>{reference_path, reference_path}}) {
        const json out = figures(pair);
        const auto is_number_or_null = [](const json& value) { return value.is_number() || value.is_null(); };
        const std::map<std::string, std::vector<std::string>> objects = {
            {"top1", {"disagreements", "rate"}},
            {"decided", {"threshold", "positions", "mismatches", "rate"}},
            {"largest_gap_at_disagreement", {"gap", "rank", "index", "chunk", "pos"}},
            {"ties", {"hard", "candidate"}},
            {"logit_delta", {"count", "p50", "p90", "p99", "max", "mean_signed"}},
            {"perplexity", {"reference", "candidate", "ratio", "percent", "reference_se", "candidate_se"}},
            {"nll_difference", {"mean", "t", "higher", "lower", "equal", "max_abs", "max_abs_index"}},
            {"accuracy", {"reference", "candidate"}}};
        for (const auto& entry : objects) {
            const std::string& object = entry.first;
            for (const std::string& key : entry.second) {
                CAPTURE(object);
                CAPTURE(key);
                REQUIRE(out.contains(object));
                REQUIRE(out[object].contains(key));
                CHECK(is_number_or_null(out[object][key]));
            }
        }
        CHECK(out["nll_difference"].contains("se"));
        CHECK(out["positions"].is_number_integer());
        for (const char* list : {"sweep", "ranks", "warnings"}) { CHECK(out[list].is_array()); }
        CHECK(out["verdict"].is_string());
        CHECK(out["identical_data"].is_boolean());
        for (const char* arm : {"reference", "candidate"}) {
            CHECK(out[arm]["path"].is_string());
            CHECK(out[arm]["skipped_lines"] == 0);
            CHECK(out[arm]["metadata"]["chunk_tokens"] == "40");
        }
    }
}

TEST_CASE("compare_traces: the JSON figures are those of plain loops over the files") {
    const auto a = rows_of(reference_path), b = rows_of(candidate_path);
    REQUIRE(a.size() == b.size());
    REQUIRE(a.size() > 100);
    const std::size_t n = a.size();
    long double nll_a = 0, nll_b = 0, sum_d = 0;
    int disagreements = 0, hard = 0, ties = 0, right_a = 0, right_b = 0, higher = 0, lower = 0, equal = 0;
    std::map<std::size_t, int> ranks;
    std::vector<double> deltas;
    long double signed_delta = 0;
    double largest_gap = -1, largest_d = -1;
    std::size_t largest_gap_at = 0, largest_d_at = 0;
    const auto gap = [&](std::size_t i) { return a[i].logits[0] - a[i].logits[1]; };
    for (std::size_t i = 0; i < n; ++i) {
        const auto place = std::find(b[i].ids.begin(), b[i].ids.end(), a[i].ids[0]);
        const auto rank = static_cast<std::size_t>(place - b[i].ids.begin()); // from 0
        const bool listed = rank < b[i].ids.size();
        const double d = b[i].nll - a[i].nll;
        nll_a += a[i].nll;
        nll_b += b[i].nll;
        sum_d += d;
        hard += gap(i) == 0;
        right_a += a[i].ids[0] == a[i].target;
        right_b += b[i].ids[0] == b[i].target;
        higher += d > 0;
        lower += d < 0;
        equal += d == 0;
        if (std::abs(d) > largest_d) {
            largest_d = std::abs(d);
            largest_d_at = i;
        }
        if (listed) {
            deltas.push_back(std::abs(b[i].logits[rank] - a[i].logits[0]));
            signed_delta += b[i].logits[rank] - a[i].logits[0];
        }
        if (a[i].ids[0] == b[i].ids[0]) { continue; }
        ++disagreements;
        ++ranks[listed ? rank + 1 : 1'000'000];
        ties += listed && b[i].logits[rank] == b[i].logits[0];
        if (gap(i) > largest_gap) {
            largest_gap = gap(i);
            largest_gap_at = i;
        }
    }
    const auto size = static_cast<long double>(n);
    const auto se_of_mean = [&](auto value, long double mean) {
        long double squares = 0;
        for (std::size_t i = 0; i < n; ++i) { squares += (value(i) - mean) * (value(i) - mean); }
        return std::sqrt(squares / (size - 1) / size);
    };
    const auto close = [](const json& value, long double expected) {
        return std::abs(value.get<long double>() - expected) <= 1e-12L * std::abs(expected);
    };
    REQUIRE(disagreements > 0);

    const json out = figures(traces_and({"--decided", "0.02", "--thresholds", "0.01,0.02,3"}), 1);
    CHECK(out["positions"] == n);
    CHECK(out["top1"]["disagreements"] == disagreements);
    CHECK(close(out["top1"]["rate"], disagreements / size));
    CHECK(out["verdict"] == "fail");
    CHECK(out["identical_data"] == false);
    CHECK(out["warnings"].empty());
    REQUIRE(out["sweep"].size() == 3);
    const double thresholds[] = {0.01, 0.02, 3};
    for (std::size_t t = 0; t < 3; ++t) {
        int decided = 0, mismatches = 0;
        for (std::size_t i = 0; i < n; ++i) {
            decided += gap(i) >= thresholds[t];
            mismatches += gap(i) >= thresholds[t] && a[i].ids[0] != b[i].ids[0];
        }
        const json& at = out["sweep"][t];
        CHECK(at["threshold"] == thresholds[t]);
        CHECK(at["positions"] == decided);
        CHECK(at["mismatches"] == mismatches);
        CHECK(close(at["rate"], static_cast<long double>(mismatches) / decided));
        if (t == 1) {
            CHECK(mismatches > 0);
            for (const char* key : {"threshold", "positions", "mismatches", "rate"}) {
                CHECK(out["decided"][key] == at[key]);
            }
        }
    }
    const json& largest = out["largest_gap_at_disagreement"];
    CHECK(close(largest["gap"], largest_gap));
    CHECK(largest["index"] == largest_gap_at);
    CHECK(largest["chunk"] == a[largest_gap_at].chunk);
    CHECK(largest["pos"] == a[largest_gap_at].pos);
    CHECK(out["ranks"].size() == ranks.size());
    auto expected = ranks.begin();
    for (const json& rank : out["ranks"]) {
        CHECK(rank["count"] == expected->second);
        CHECK((rank["rank"].is_null() ? 1'000'000 : rank["rank"].get<std::size_t>()) == expected->first);
        ++expected;
    }
    CHECK(out["ties"]["hard"] == hard);
    CHECK(out["ties"]["candidate"] == ties);

    std::sort(deltas.begin(), deltas.end());
    const auto quantile = [&](double p) {
        return deltas[std::min(static_cast<std::size_t>(p * static_cast<double>(deltas.size())), deltas.size() - 1)];
    };
    CHECK(out["logit_delta"]["count"] == deltas.size());
    CHECK(close(out["logit_delta"]["p50"], quantile(0.5)));
    CHECK(close(out["logit_delta"]["p90"], quantile(0.9)));
    CHECK(close(out["logit_delta"]["p99"], quantile(0.99)));
    CHECK(close(out["logit_delta"]["max"], deltas.back()));
    CHECK(out["logit_delta"]["mean_signed"].get<double>() ==
          doctest::Approx(static_cast<double>(signed_delta / static_cast<long double>(deltas.size()))));

    const long double mean_a = nll_a / size, mean_b = nll_b / size, mean_d = sum_d / size;
    CHECK(close(out["perplexity"]["reference"], std::exp(mean_a)));
    CHECK(close(out["perplexity"]["candidate"], std::exp(mean_b)));
    CHECK(close(out["perplexity"]["ratio"], std::exp(mean_d)));
    CHECK(out["perplexity"]["percent"].get<double>() == doctest::Approx(static_cast<double>(100 * std::expm1(mean_d))));
    CHECK(close(out["perplexity"]["reference_se"],
                std::exp(mean_a) * se_of_mean([&](std::size_t i) { return a[i].nll; }, mean_a)));
    CHECK(close(out["perplexity"]["candidate_se"],
                std::exp(mean_b) * se_of_mean([&](std::size_t i) { return b[i].nll; }, mean_b)));
    const json& difference = out["nll_difference"];
    const long double se = se_of_mean([&](std::size_t i) { return b[i].nll - a[i].nll; }, mean_d);
    CHECK(difference["mean"].get<double>() == doctest::Approx(static_cast<double>(mean_d)).epsilon(1e-10));
    const json& iid = difference["se"]["iid"];
    CHECK(iid.get<double>() == doctest::Approx(static_cast<double>(se)).epsilon(1e-10));
    CHECK(difference["t"].get<double>() == doctest::Approx(static_cast<double>(mean_d / se)).epsilon(1e-9));
    CHECK(difference["higher"] == higher);
    CHECK(difference["lower"] == lower);
    CHECK(difference["equal"] == equal);
    CHECK(close(difference["max_abs"], largest_d));
    CHECK(difference["max_abs_index"] == largest_d_at);
    CHECK(close(out["accuracy"]["reference"], right_a / size));
    CHECK(close(out["accuracy"]["candidate"], right_b / size));
}

TEST_CASE("compare_traces: --quantiles linear interpolates") {
    TempFolder folder;
    const auto a = folder.write("a", small_trace({"1,2 9,1 1", "1,2 9,1 1"}));
    const auto b = folder.write("b", small_trace({"1,2 9,1 1", "1,2 10,1 1"}));
    CHECK(figures({a, b})["logit_delta"]["p50"] == 1.0);
    CHECK(figures({a, b, "--quantiles", "linear"})["logit_delta"]["p50"] == 0.5);
    check_refused(compare_traces({a, b, "--quantiles", "cubic"}), {"--quantiles", "cubic"});
}

TEST_CASE("compare_traces: reports in files come beside the text; the same bytes as on standard output") {
    TempFolder folder;
    const Finished plain = compare_example({});
    const Finished both = compare_example({"--json", folder.path("r.json"), "--markdown", folder.path("r.md")});
    CHECK(both.status == 0);
    CHECK(both.out == plain.out);
    CHECK(both.err == "");
    CHECK(folder.names() == std::set<std::string>{"r.json", "r.md"});
    CHECK(test::read_file(folder.path("r.json")) == compare_example({"--json", "-"}).out);
    CHECK(test::read_file(folder.path("r.md")) == compare_example({"--markdown", "-"}).out);

    // One in a file, the other on standard output: no text between.
    const Finished mixed = compare_example({"--json", folder.path("s.json"), "--markdown", "-"});
    CHECK(mixed.out == test::read_file(folder.path("r.md")));
    CHECK(test::read_file(folder.path("s.json")) == test::read_file(folder.path("r.json")));

    // An earlier report is replaced as a whole.
    folder.write("r.json", std::string(100'000, 'x'));
    CHECK(compare_example({"--json", folder.path("r.json")}).status == 0);
    CHECK(test::read_file(folder.path("r.json")) == test::read_file(folder.path("s.json")));
}

TEST_CASE("compare_traces: the Markdown report of a pair") {
    const Finished run = compare_example({"--markdown", "-", "--top", "3"});
    CHECK(run.status == 0);
    const auto tables = test::markdown_tables(run.out);
    CHECK(tables.size() >= 4);
    CHECK(run.out.starts_with("**pass**"));
    const json out = figures(traces());
    CHECK(test::markdown_row(tables, "positions").at(1) == std::to_string(out["positions"].get<int>()));
    CHECK(test::markdown_row(tables, "2").at(1) == std::to_string(out["decided"]["positions"].get<int>()));
    CHECK(test::markdown_row(tables, "trace") == std::vector<std::string>{"trace", reference_path, candidate_path});
}

TEST_CASE("compare_traces: --quiet prints no text, writes files, keeps the exit status") {
    TempFolder folder;
    const Finished run = compare_example({"-q", "--json", folder.path("r.json"), "--decided", "0"});
    CHECK(run.status == 1);
    CHECK(run.out == "");
    CHECK(run.err == "");
    CHECK(json::parse(test::read_file(folder.path("r.json")))["verdict"] == "fail");
    CHECK(compare_example({"--quiet"}).out == "");
    CHECK(json::parse(compare_example({"--quiet", "--json", "-"}).out)["verdict"] == "pass"); // asked for
}

TEST_CASE("compare_traces: --curve adds the exact step curve to the JSON") {
    CHECK_FALSE(figures(traces()).contains("step_curve"));
    const json out = figures(traces_and({"--curve"}));
    const json& steps = out["step_curve"];
    REQUIRE(steps.size() > 2);
    CHECK(steps.front()["positions"] == out["positions"]);
    CHECK(steps.front()["mismatches"] == out["top1"]["disagreements"]);
    bool last_mismatch_seen = false;
    for (std::size_t i = 1; i < steps.size(); ++i) {
        CHECK(steps[i]["threshold"] > steps[i - 1]["threshold"]);
        CHECK(steps[i]["positions"] < steps[i - 1]["positions"]);
        CHECK(steps[i]["mismatches"] <= steps[i - 1]["mismatches"]);
        const bool above = steps[i]["threshold"] > out["largest_gap_at_disagreement"]["gap"];
        CHECK((steps[i]["mismatches"] == 0) == above);
        last_mismatch_seen = last_mismatch_seen || above;
    }
    CHECK(last_mismatch_seen);
}

// ---- arguments -----------------------------------------------------------------------------------------------------

TEST_CASE("compare_traces: --thresholds takes lists, in order, as typed") {
    const auto sweep = [](std::vector<std::string> arguments) {
        const json out = figures(traces_and(std::move(arguments)));
        std::vector<double> thresholds;
        for (const json& at : out["sweep"]) { thresholds.push_back(at["threshold"]); }
        return thresholds;
    };
    CHECK(sweep({}) == std::vector{0.5, 1.0, 2.0});
    CHECK(sweep({"--thresholds", "3,0.1,1e-2"}) == std::vector{3.0, 0.1, 0.01});
    CHECK(sweep({"--thresholds", "0.5, 1 ,2"}) == std::vector{0.5, 1.0, 2.0});
    CHECK(sweep({"--thresholds=4"}) == std::vector{4.0});
    CHECK(sweep({"--thresholds", "1,2", "--thresholds", "3"}) == std::vector{1.0, 2.0, 3.0});
    CHECK(sweep({"--thresholds", "1,1,0"}) == std::vector{1.0, 1.0, 0.0});
    CHECK(sweep({"--thresholds", "1e300"}) == std::vector{1e300});
    CHECK(compare_traces({reference_path, "--thresholds", "7", candidate_path}).status == 0); // takes no file for a gap
    CHECK(compare_traces({"--thresholds", "7", reference_path, candidate_path}).status == 0);
    CHECK_FALSE(std::signbit(sweep({"--thresholds", "-0"}).at(0)));
}

TEST_CASE("compare_traces: a bad number is refused, never read as another") {
    for (const std::string option : {"--thresholds", "--decided"}) {
        for (const std::string bad : {"", " ", ",", "-1", "-0.001", "nan", "inf", "-inf", "1e400", "1x", "x", "0x10",
                                      "1,,2", "1,", ",1", "1;2", "1 2", "--5"}) {
            CAPTURE(option);
            CAPTURE(bad);
            check_refused(compare_example({option, bad}), {option});
            if (!bad.empty()) { check_refused(compare_example({option + "=" + bad}), {option}); }
        }
    }
    check_refused(compare_example({"--decided", "1,2"}), {"--decided", "'1,2'"});
    check_refused(compare_example({"--decided", "1", "--decided", "2"}), {"--decided"});
    check_refused(compare_example({"--thresholds"}), {"--thresholds"});
    for (const std::string bad : {"", "-1", "1.5", "x", "1e2", "99999999999999999999999"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--top", bad}), {"--top"});
    }
}

TEST_CASE("compare_traces: --top lists the worst disagreements, largest gap first") {
    const json all = figures(traces_and({"--top", "1000000"}));
    const auto count = all["top1"]["disagreements"].get<std::size_t>();
    REQUIRE(count > 3);
    REQUIRE(all["worst"].size() == count);
    for (const char* key : {"gap", "rank", "index", "chunk", "pos"}) {
        CHECK(all["worst"][0][key] == all["largest_gap_at_disagreement"][key]);
    }
    for (std::size_t i = 1; i < count; ++i) { CHECK(all["worst"][i]["gap"] <= all["worst"][i - 1]["gap"]); }
    const auto rows = rows_of(reference_path), candidate_rows = rows_of(candidate_path);
    for (const json& at : all["worst"]) {
        const auto i = at["index"].get<std::size_t>();
        CHECK(at["target"] == rows[i].target);
        CHECK(at["reference_token"] == rows[i].ids[0]);
        CHECK(at["candidate_token"] == candidate_rows[i].ids[0]);
    }
    CHECK(figures(traces_and({"--top", "0"}))["worst"].empty());
    const json three = figures(traces_and({"--top", "3"}))["worst"];
    REQUIRE(three.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) { CHECK(three[i] == all["worst"][i]); }

    CHECK_FALSE(contains(compare_example({"--top", "0"}).out, "worst disagreements"));
    const std::string text = compare_example({"--top", "2"}).out;
    const std::string rest = text.substr(text.find("worst disagreements"));
    CHECK(test::count_lines(rest.substr(0, rest.find("\n\n"))) == 4); // title, heading, two rows
    CHECK(compare_traces({reference_path, reference_path, "--top", "5"}).status == 0);
}

TEST_CASE("compare_traces: bad usage") {
    check_refused(compare_traces({}), {"REFERENCE", "--help"});
    check_refused(compare_traces({reference_path}), {"CANDIDATE"});
    check_refused(compare_example({candidate_path}), {candidate_path});
    check_refused(compare_example({"--frobnicate"}), {"--frobnicate"});
    check_refused(compare_example({"-x"}), {"-x"});
    check_refused(compare_example({"--color", "blue"}), {"--color", "blue"});
    check_refused(compare_example({"--json"}), {"--json"});
    check_refused(compare_example({"--json", ""}), {"--json"});
    check_refused(compare_example({"--markdown", ""}), {"--markdown"});
    check_refused(compare_traces({"", candidate_path}), {"REFERENCE"});
    check_refused(compare_example({"--json", "-", "--markdown", "-"}), {"--json -", "--markdown -"});
}

TEST_CASE("compare_traces: --help and --version") {
    for (const char* flag : {"--help", "-h"}) {
        const Finished help = compare_traces({flag});
        CHECK(help.status == 0);
        CHECK(help.err == "");
        for (const char* part :
             {"Usage: compare_traces", "REFERENCE", "CANDIDATE", "--decided", "--thresholds", "--json", "--markdown",
              "--strict", "--top", "Exit status", "inconclusive", "0.5,1,2"}) {
            CAPTURE(part);
            CHECK(contains(help.out, part));
        }
        for (const char* status : {"  0  ", "  1  ", "  2  ", "  3  "}) { CHECK(contains(help.out, status)); }
        CHECK_FALSE(contains(help.out, COMPARE_TRACES)); // the name, not where it happens to lie
    }
    const Finished version = compare_traces({"--version"});
    CHECK(version.status == 0);
    CHECK(version.err == "");
    CHECK(version.out.starts_with("compare_traces "));
    CHECK(test::count_lines(version.out) == 1);
}

TEST_CASE("compare_traces: colour on a terminal only, or on request") {
    const auto colored = [](std::vector<std::string> arguments, const test::RunOptions& options = {}) {
        return contains(compare_example(std::move(arguments), options).out, "\x1b[");
    };
    CHECK_FALSE(colored({}));
    CHECK(colored({"--color", "always"}));
    CHECK_FALSE(colored({"--color", "never"}));
    CHECK(colored({}, {.environment = {}, .terminal = true, .out_file = {}}));
    CHECK_FALSE(colored({"--color", "never"}, {.environment = {}, .terminal = true, .out_file = {}}));
    CHECK_FALSE(colored({}, {.environment = {{"NO_COLOR", "1"}}, .terminal = true, .out_file = {}}));
    CHECK(colored({}, {.environment = {{"NO_COLOR", ""}}, .terminal = true, .out_file = {}}));
    CHECK(colored({"--color", "always"}, {.environment = {{"NO_COLOR", "1"}}, .terminal = false, .out_file = {}}));
    CHECK_FALSE(colored({"--color", "always", "--json", "-"}));
    CHECK_FALSE(colored({"--color", "always", "--markdown", "-"}));
}

// ---- how sure: the options of evidence -----------------------------------------------------------------------------

TEST_CASE("compare_traces: --ulps and --storage are the second sweep") {
    TempFolder folder; // gaps of 0.25 at 40, 0.25 at 12 and 1 at 4: in bfloat16 1, 4 and 32 steps; and a tie
    const auto a = folder.write("a", small_trace({"1,2 40,39.75 1", "1,2 12,11.75 1", "1,2 4,3 1", "1,2 4,4 1"}));
    const auto b = folder.write("b", small_trace({"2,1 40,39.75 1", "2,1 12,11.75 1", "1,2 4,3 1", "1,2 4,4 1"}));
    const auto sweep = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{a, b, "--top", "9"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return figures(arguments, 3);
    };
    const auto counts = [](const json& out) {
        std::vector<std::vector<double>> list;
        for (const json& at : out["ulp_sweep"]) {
            list.push_back({at["threshold"], at["positions"], at["mismatches"]});
        }
        return list;
    };
    using Counts = std::vector<std::vector<double>>;
    const json usual = sweep({});
    CHECK(usual["storage"] == json{{"type", "bfloat16"}, {"inferred", true}});
    CHECK(counts(usual) == Counts{{1, 3, 2}, {2, 2, 1}, {4, 2, 1}});
    CHECK(counts(sweep({"--ulps", "4.5,1"})) == Counts{{4.5, 1, 0}, {1, 3, 2}});
    CHECK(counts(sweep({"--ulps", "32", "--ulps", "33,0"})) == Counts{{32, 1, 0}, {33, 0, 0}, {0, 4, 2}});
    CHECK(usual["worst"][0]["ulps"] == 1.0); // of equal gaps the first
    CHECK(usual["worst"][1]["ulps"] == 4.0);
    CHECK(usual["largest_gap_at_disagreement"]["ulps"] == 1.0);

    const json half = sweep({"--storage", "float16", "--ulps", "8,9,32"}); // a step is 2^-5 at 40, 2^-7 at 12
    CHECK(half["storage"] == json{{"type", "float16"}, {"inferred", false}});
    CHECK(counts(half) == Counts{{8, 3, 2}, {9, 2, 1}, {32, 2, 1}});
    CHECK(sweep({"--storage", "float32"})["worst"][0]["ulps"] == 65536.0); // 2^-18 at 40
    CHECK(sweep({"--storage", "auto"}) == usual);
    CHECK(sweep({"--storage", "bfloat16"})["ulp_sweep"] == usual["ulp_sweep"]);
    CHECK(figures(traces())["storage"]["type"] == "float32"); // six decimals of no 16-bit type

    CHECK(contains(compare_traces({a, b}).out, " of bfloat16, "));
    CHECK(contains(compare_traces({a, b, "--storage", "float16"}).out, " of float16 ("));
    for (const std::string bad : {"", "-1", "x", "1,", "nan", "inf"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--ulps", bad}), {"--ulps"});
    }
    for (const std::string bad : {"", "fp16", "BFLOAT16", "double"}) {
        check_refused(compare_example({"--storage", bad}), {"--storage"});
    }
}

TEST_CASE("compare_traces: --max-ppl-increase is in per cent, and held against the interval of the ratio") {
    const std::string float32 = EXAMPLE_DATA "/float32.tsv", int4 = EXAMPLE_DATA "/int4.tsv";
    const auto with = [&](const std::string& percent, int status, const std::string& mismatches = "1000") {
        return figures({float32, int4, "--max-mismatches", mismatches, "--max-ppl-increase", percent}, status);
    };
    const json interval = with("1000", 0)["perplexity"]["ratio_interval"];
    const double lo = 100 * (interval[0].get<double>() - 1), hi = 100 * (interval[1].get<double>() - 1);
    REQUIRE(lo > 0);
    CHECK(with(std::to_string(hi + 1e-4), 0)["verdict"] == "pass");
    CHECK(with(std::to_string(hi - 1e-4), 3)["verdict"] == "inconclusive");
    CHECK(with(std::to_string(lo + 1e-4), 3)["verdict"] == "inconclusive");
    const json above = with(std::to_string(lo - 1e-4), 1);
    CHECK(above["verdict"] == "fail");
    CHECK(above["token_verdict"] == "pass");
    CHECK(above["verdict_reason"].get<std::string>().starts_with("perplexity increase 6.305 % ("));
    CHECK(with("1000", 1, "0")["verdict"] == "fail"); // on top of the rule for tokens
    for (const std::string bad : {"", "x", "-1", "nan", "inf", "5%", "1e400"}) {
        CAPTURE(bad);
        check_refused(compare_traces({float32, int4, "--max-ppl-increase", bad}), {"--max-ppl-increase"});
    }
}

TEST_CASE("compare_traces: --max-mismatches and --min-decided change the verdict and nothing else") {
    // At a gap of 0.02 the pair has 15 mismatches at 282 positions.
    const auto verdict = [](const std::vector<std::string>& more, int status) {
        std::vector<std::string> arguments = traces_and({"--decided", "0.02"});
        arguments.insert(arguments.end(), more.begin(), more.end());
        json out = figures(arguments, status);
        CHECK(out["decided"]["mismatches"] == 15);
        CHECK(out["decided"]["positions"] == 282);
        std::vector<std::string> parts{out["verdict"].get<std::string>(), out["verdict_reason"].get<std::string>()};
        const Finished text = compare_traces(arguments);
        CHECK(text.status == status);
        CHECK(contains(test::replaced(text.out, "\n           ", "; "), ": " + parts[1] + "\n"));
        return parts;
    };
    CHECK(verdict({}, 1)[0] == "fail");
    CHECK(verdict({}, 1)[1].starts_with(
        "15 mismatches at the 282 positions that the reference had decided (gap >= 0.02)"));
    CHECK(verdict({"--max-mismatches", "14"}, 1)[1].ends_with(", more than the 14 allowed"));
    CHECK(verdict({"--max-mismatches", "15"}, 0)[0] == "pass");
    CHECK(contains(verdict({"--max-mismatches", "15"}, 0)[1], "; mismatch rates above 8."));
    CHECK(verdict({"--max-mismatches", "15", "--min-decided", "282"}, 0)[0] == "pass");
    const auto few = verdict({"--max-mismatches", "15", "--min-decided", "283"}, 3);
    CHECK(few[0] == "inconclusive");
    CHECK(few[1].ends_with(", fewer than the 283 asked for"));
    CHECK(verdict({"--min-decided", "283"}, 1)[0] == "fail"); // what is seen to be wrong is wrong
    CHECK(compare_example({"--min-decided", "76"}).status == 0);
    CHECK(compare_example({"--min-decided", "77"}).status == 3);
    CHECK(compare_example({"--decided", "100", "--min-decided", "0"}).status == 3); // nothing decided is no evidence
    // Equal data need none; arms that only agree do when it is asked for.
    CHECK(compare_traces({reference_path, reference_path, "--min-decided", "1000000"}).status == 0);
    for (const std::string option : {"--max-mismatches", "--min-decided"}) {
        for (const std::string bad : {"", "-1", "1.5", "x", "1e2", "9223372036854775808"}) {
            CAPTURE(bad);
            check_refused(compare_example({option, bad}), {option});
        }
    }
}

TEST_CASE("compare_traces: --max-rate asks for a bound below it, at --confidence") {
    // R: binom.test(0, 76, alternative="less", conf.level=c)$conf.int[2] is 0.0386507667257255 for 0.95,
    // 0.029842813113222 for 0.9 and 0.0587950327319332 for 0.99.
    const auto status = [](const std::string& rate, const std::string& confidence) {
        return compare_example({"--max-rate", rate, "--confidence", confidence}).status;
    };
    CHECK(status("0.03866", "0.95") == 0);
    CHECK(status("0.03865", "0.95") == 3);
    CHECK(status("0.02985", "0.9") == 0);
    CHECK(status("0.02984", "0.9") == 3);
    CHECK(status("0.05880", "0.99") == 0);
    CHECK(status("0.05879", "0.99") == 3);
    CHECK(status("1", "0.95") == 0);
    CHECK(compare_example({"--max-rate", "0.03866"}).status == 0); // 0.95 is the default
    CHECK(compare_example({"--max-rate", "0.03865"}).status == 3);
    const json out = figures(traces_and({"--max-rate", "0.01"}), 3);
    CHECK(out["verdict_reason"] == "no mismatch at the 76 positions that the reference had decided (gap >= 2) does not "
                                   "exclude a mismatch rate of 1.00 % at 95 % confidence (bound 3.87 %)");
    CHECK(compare_example({"--max-rate", "0.5", "--decided", "0.01"}).status == 1); // a fail stays one
    for (const std::string bad : {"0", "-0.1", "1.1", "nan", "inf", "x", " ", "0.1x", "5%"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--max-rate", bad}), {"--max-rate"});
    }
    for (const std::string bad : {"", "0", "1", "95", "-0.5", "nan", "inf", "x"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--confidence", bad}), {"--confidence"});
    }
}

TEST_CASE("compare_traces: --confidence is that of every interval") {
    const json narrow = figures(traces_and({"--confidence", "0.5"})),
               wide = figures(traces_and({"--confidence", "0.999"}));
    CHECK(narrow["confidence"] == 0.5);
    const auto wider = [&](const std::string& pointer) {
        CAPTURE(pointer);
        const json inner = narrow.at(json::json_pointer(pointer)), outer = wide.at(json::json_pointer(pointer));
        REQUIRE(inner.is_array());
        CHECK(inner[0].get<double>() >= outer[0].get<double>());
        CHECK(inner[1].get<double>() < outer[1].get<double>());
    };
    for (const char* pointer :
         {"/top1/interval", "/top1/clustered/interval", "/decided/interval", "/decided/clustered/interval",
          "/sweep/0/interval", "/ulp_sweep/0/interval", "/perplexity/reference_interval",
          "/perplexity/candidate_interval", "/perplexity/ratio_interval", "/nll_difference/interval"}) {
        wider(pointer);
    }
    for (const char* object : {"top1", "decided"}) {
        CHECK(narrow[object]["upper_bound"] < wide[object]["upper_bound"]);
        CHECK(narrow[object]["clustered"]["upper_bound"] < wide[object]["clustered"]["upper_bound"]);
    }
    CHECK(narrow["nll_difference"]["p"] == wide["nll_difference"]["p"]);
    CHECK(contains(compare_example({"--confidence", "0.999"}).out, "at 99.9 % confidence"));
}

TEST_CASE("compare_traces: --lag and --separate-chunks reach the autocorrelation-consistent errors") {
    // R, sandwich, d the differences of a pair: sqrt(NeweyWest(lm(d ~ 1), lag=12, prewhite=FALSE,
    // adjust=TRUE)); within chunks, with e <- d - mean(d): s <- 0; for (g in 0:7) { x <- e[a$chunk==g]; s <- s +
    // sum(x^2) + 2*sum(sapply(1:5, function(l) (1-l/6)*sum(x[(l+1):40]*x[1:(40-l)]))) }; sqrt(s/(n*(n-1)))
    const json usual = figures(traces()), long_lag = figures(traces_and({"--lag", "12"})),
               none = figures(traces_and({"--lag", "0"})), apart = figures(traces_and({"--separate-chunks"}));
    CHECK(usual["nll_difference"]["believed"]["lag"] == 5);
    CHECK(long_lag["nll_difference"]["believed"]["lag"] == 12);
    CHECK(figures(traces_and({"--lag", "319"}))["nll_difference"]["believed"]["lag"] == 319);
    check_refused(compare_example({"--lag", "320"}), {"lag", "320"});
    for (const char* pointer : {"/nll_difference/se", "/perplexity/reference_nll_se", "/perplexity/candidate_nll_se"}) {
        const auto se = [&](const json& out) { return out.at(json::json_pointer(pointer)); };
        CHECK(se(none)["hac"].get<double>() == doctest::Approx(se(usual)["iid"].get<double>()).epsilon(1e-12));
        for (const json* other : {&long_lag, &none, &apart}) {
            CHECK(se(*other)["hac"] != se(usual)["hac"]);
            CHECK(se(*other)["iid"] == se(usual)["iid"]);
            CHECK(se(*other)["clustered"] == se(usual)["clustered"]);
        }
    }
    const auto is = [](const json& out, double expected) {
        const double hac = out["nll_difference"]["se"]["hac"];
        return std::abs(hac - expected) <= 1e-12 * expected;
    };
    CHECK(is(long_lag, 0.00237135065985385));
    CHECK(is(apart, 0.00232446310518965));
    CHECK(long_lag["nll_difference"]["p"] != usual["nll_difference"]["p"]);
    CHECK(contains(compare_example({"--lag", "12"}).out, "(lag 12)"));
    for (const std::string bad : {"-1", "1.5", "x", " ", "1e2", "99999999999999999999999"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--lag", bad}), {"--lag"});
    }
    check_refused(compare_example({"--separate-chunks=maybe"}), {"--separate-chunks"});
}

TEST_CASE("compare_traces: --seed is that of the bootstrap, which many chunks have") {
    TempFolder folder;
    const auto write = [&](const std::string& name, int chunks, int shift) {
        std::string text;
        for (int i = 0; i < 3 * chunks; ++i) {
            const bool moved = shift != 0 && i % 7 == 0;
            text += std::to_string(i / 3) + "\t" + std::to_string(i % 3) + "\t5\t" +
                    std::to_string(1 + i * (37 + shift) % 11) + ".000000\t" + (moved ? "2,1" : "1,2") +
                    "\t9.000000,4.000000\n";
        }
        return folder.write(name, text);
    };
    const auto a = write("a", 40, 0), b = write("b", 40, 1);
    const auto intervals = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{a, b};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const json out = figures(arguments, 1);
        CHECK(out["decided"]["bootstrap_interval"].is_array());
        CHECK(out["perplexity"]["ratio_bootstrap_interval"].is_array());
        return std::vector<json>{out["decided"]["bootstrap_interval"], out["perplexity"]["ratio_bootstrap_interval"]};
    };
    CHECK(intervals({}) == intervals({"--seed", "1"}));
    CHECK(intervals({"--seed", "2"}) == intervals({"--seed", "2"}));
    CHECK(intervals({"--seed", "2"})[1] != intervals({})[1]);
    CHECK(intervals({"--seed", "4294967295"})[1] != intervals({"--seed", "2"})[1]);
    CHECK(contains(compare_traces({a, b}).out, "; by drawing chunks "));
    const json few = figures({write("c", 29, 0), write("d", 29, 1)}, 1);
    CHECK(few["decided"]["bootstrap_interval"].is_null());
    CHECK(few["perplexity"]["ratio_bootstrap_interval"].is_null());
    for (const std::string bad : {"", "-1", "1.5", "x", "4294967296"}) {
        CAPTURE(bad);
        check_refused(compare_example({"--seed", bad}), {"--seed"});
    }
}

TEST_CASE("compare_traces: --noise holds each headline figure against a rerun of the reference") {
    CHECK_FALSE(figures(traces()).contains("noise_floor"));
    TempFolder folder;
    const auto a = folder.write("a", small_trace({"1,2 9,4 1", "3,4 5,4.5 2", "5,6 8,7 3"}));
    const auto rerun = folder.write("rerun", small_trace({"1,2 9,4 1.5", "4,3 5,4.75 2", "5,6 8.25,7 3"}));
    const auto b = folder.write("b", small_trace({"1,2 9.125,4 0.875", "3,4 5,4.5 2", "6,5 8,7.5 3"}));
    const json out = figures({a, b, "--noise", rerun});
    REQUIRE(out["noise_floor"].size() == 9);
    const json expected = json::array({{"top-1 disagreement rate", 1.0 / 3, 1.0 / 3, false},
                                       {"decided mismatch rate", 0.0, 0.0, false},
                                       {"largest gap at a disagreement", 1.0, 0.5, true},
                                       {"logit delta p50", 0.125, 0.25, false},
                                       {"logit delta p99", 0.5, 0.25, true},
                                       {"logit delta max", 0.5, 0.25, true},
                                       {"mean NLL difference", -0.125 / 3, 0.5 / 3, false},
                                       {"largest NLL difference", -0.125, 0.5, false}});
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        const json& figure = out["noise_floor"][i];
        CHECK(figure["figure"] == expected[i][0]);
        CHECK(figure["candidate"].get<double>() == doctest::Approx(expected[i][1].get<double>()).epsilon(1e-12));
        CHECK(figure["rerun"].get<double>() == doctest::Approx(expected[i][2].get<double>()).epsilon(1e-12));
        CHECK(figure["beyond"] == expected[i][3]);
    }
    CHECK(out["noise_floor"][8]["figure"] == "perplexity change in percent");
    CHECK(out["noise_floor"][8]["candidate"] == out["perplexity"]["percent"]);
    CHECK(out["noise_floor"][8]["rerun"] == figures({a, rerun}, 0)["perplexity"]["percent"]);
    json without = out;
    without.erase("noise_floor");
    CHECK(without == figures({a, b})); // the verdict and the rest do not look at it

    const Finished text = compare_traces({a, b, "--noise", rerun});
    CHECK(text.status == 0);
    CHECK(contains(text.out, "Noise floor: what a second run of the reference moves"));
    CHECK(contains(text.out, "largest gap at a disagreement        1.000000     0.500000   beyond the floor\n"));
    CHECK(contains(text.out, "logit delta p50                      0.125000     0.250000   within it\n"));
    const auto row = test::markdown_row(
        test::markdown_tables(compare_traces({a, b, "--noise", rerun, "--markdown", "-"}).out), "logit delta max");
    CHECK(row == std::vector<std::string>{"logit delta max", "0.500000", "0.250000", "yes"});

    // A rerun without a disagreement is a floor of nothing.
    const json quiet = figures({a, b, "--noise", a});
    CHECK(quiet["noise_floor"][2]["rerun"].is_null());
    CHECK(quiet["noise_floor"][2]["beyond"] == true);
    CHECK(contains(compare_traces({a, b, "--noise", a}).out, "1.000000          n/a   beyond the floor"));

    check_refused(compare_traces({a, b, "--noise", folder.path("none")}), {"none: cannot open"});
    check_refused(compare_traces({a, b, "--noise", reference_path}), {"not comparable"});
    check_refused(compare_traces({a, b, "--noise", ""}), {"--noise"});
    check_refused(compare_traces({a, b, "--noise"}), {"--noise"});
    check_refused(compare_traces({a, b, "--noise", rerun, "--json", rerun}), {"overwrite this input"});
}

TEST_CASE("compare_traces: the text says beside the verdict's row that nothing is excluded") {
    TempFolder folder;
    const auto a = folder.write("a", small_trace({"7,11 3.5,3.0 1.0"})),
               b = folder.write("b", small_trace({"11,7 3.5,3.0 1.0"}));
    const std::string text = compare_traces({a, b}).out;
    const std::string row = text.substr(text.find("n/a   nothing is excluded  "));
    CHECK(row.substr(0, row.find('\n')).ends_with("  <- verdict"));
}

// ---- verdicts and exit statuses ------------------------------------------------------------------------------------

TEST_CASE("compare_traces: exit status 0 pass, 1 fail, 3 inconclusive") {
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace(small_reference));
    const auto b = folder.write("b.tsv", small_trace(small_candidate));
    const auto check = [&](const std::string& decided, int status, const std::string& verdict) {
        CAPTURE(decided);
        const Finished text = compare_traces({a, b, "--decided", decided});
        CHECK(text.status == status);
        CHECK(text.err == "");
        std::string word = verdict;
        for (char& c : word) { c = static_cast<char>(c - 'a' + 'A'); }
        CHECK(contains(text.out, word + ": "));
        CHECK(figures({a, b, "--decided", decided}, status)["verdict"] == verdict);
        CHECK(contains(compare_traces({a, b, "--decided", decided, "--markdown", "-"}).out, "**" + verdict + "**"));
    };
    check("2", 0, "pass");
    check("5", 0, "pass");   // the gap is exactly 5: decided
    check("0.5", 1, "fail"); // the mismatch's gap is exactly 0.5: decided
    check("0.500001", 0, "pass");
    check("0", 1, "fail");
    check("5.000001", 3, "inconclusive");
    check("1e300", 3, "inconclusive");
    const json out = figures({a, b, "--decided", "6"}, 3);
    CHECK(out["decided"]["positions"] == 0);
    CHECK(out["decided"]["rate"].is_null());
    CHECK(out["sweep"][0]["mismatches"] == 1);
}

TEST_CASE("compare_traces: a trace with itself is identical, without NaN, without missing figures") {
    const json out = figures({reference_path, reference_path});
    CHECK(out["verdict"] == "identical");
    CHECK(out["identical_data"] == true);
    CHECK(out["top1"]["disagreements"] == 0);
    CHECK(out["top1"]["rate"] == 0.0);
    CHECK(out["ranks"].empty());
    for (const char* key : {"gap", "rank", "index", "chunk", "pos"}) {
        CHECK(out["largest_gap_at_disagreement"][key].is_null());
    }
    for (const char* key : {"p50", "p90", "p99", "max", "mean_signed"}) { CHECK(out["logit_delta"][key] == 0.0); }
    CHECK(out["perplexity"]["ratio"] == 1.0);
    CHECK(out["perplexity"]["percent"] == 0.0);
    CHECK(out["perplexity"]["reference"] == out["perplexity"]["candidate"]);
    CHECK(out["nll_difference"]["mean"] == 0.0);
    CHECK(out["nll_difference"]["se"] == json{{"iid", 0.0}, {"clustered", 0.0}, {"hac", 0.0}});
    CHECK(out["nll_difference"]["p"] == 1.0);
    CHECK(out["nll_difference"]["t"] == 0.0);
    CHECK(out["nll_difference"]["equal"] == out["positions"]);
    CHECK(out["nll_difference"]["max_abs"] == 0.0);
    for (const char* object : {"top1", "decided", "ties", "logit_delta", "perplexity", "nll_difference", "accuracy"}) {
        CAPTURE(object);
        for (const auto& [key, value] : out[object].items()) {
            if (key.find("bootstrap") == std::string::npos) {
                CHECK_FALSE(value.is_null());
            } // 8 chunks: too few to draw
        }
    }
    const Finished text = compare_traces({reference_path, reference_path, "--decided", "1e9"});
    CHECK(text.status == 0);
    CHECK(contains(text.out, "IDENTICAL"));
    CHECK(contains(text.out, "all data are equal"));
    CHECK_FALSE(test::shows_nan_or_inf(text.out));
    CHECK_FALSE(contains(text.out, "-0."));
    CHECK_NOTHROW(test::markdown_tables(compare_traces({reference_path, reference_path, "--markdown", "-"}).out));

    // The same best tokens with other numbers: identical, and the report says that the data are not.
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace(small_reference));
    const auto b = folder.write("b.tsv", test::replaced(small_trace(small_reference), "4.000000", "3.999999"));
    CHECK(figures({a, b})["identical_data"] == false);
    CHECK(figures({a, b})["verdict"] == "identical");
    CHECK(contains(compare_traces({a, b}).out, "the numbers differ"));
}

TEST_CASE("compare_traces: a trace of one position") {
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace({"7,11 3.500000,3.000000 1.000000"}));
    const auto b = folder.write("b.tsv", small_trace({"11,7 3.250000,3.125000 0.900000"}));
    const json out = figures({a, b}, 3);
    CHECK(out["positions"] == 1);
    CHECK(out["nll_difference"]["se"] == json{{"iid", nullptr}, {"clustered", nullptr}, {"hac", nullptr}});
    for (const char* key : {"p", "interval"}) { CHECK(out["nll_difference"][key].is_null()); }
    CHECK(out["nll_difference"]["t"].is_null());
    CHECK(out["perplexity"]["reference_se"].is_null());
    CHECK(out["perplexity"]["candidate_se"].is_null());
    CHECK(out["nll_difference"]["mean"].get<double>() == doctest::Approx(-0.1));
    const Finished text = compare_traces({a, b, "--top", "1"});
    CHECK(contains(text.out, "1 position in 1 chunk,"));
    CHECK_FALSE(contains(text.out, " 1 positions"));
    CHECK_FALSE(test::shows_nan_or_inf(text.out));
    const Finished markdown = compare_traces({a, b, "--top", "1", "--markdown", "-"});
    CHECK_NOTHROW(test::markdown_tables(markdown.out));
    CHECK_FALSE(test::shows_nan_or_inf(markdown.out));
}

TEST_CASE("compare_traces: a perplexity that double cannot hold") {
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace({"1,2 5,1 1", "1,2 5,1 2"}));
    const auto b = folder.write("b.tsv", small_trace({"1,2 5,1 1e5", "1,2 5,1 2e5"}));
    const json out = figures({a, b});
    for (const char* key : {"candidate", "candidate_se", "ratio", "percent"}) {
        CHECK(out["perplexity"][key].is_null());
    }
    CHECK(out["perplexity"]["reference"].is_number());
    CHECK(compare_traces({a, b}).status == 0);
}

TEST_CASE("compare_traces: the arms may have different k; a token beyond the candidate's is named so") {
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace({"1,2,3 9,8,7 1", "4,5,6 9,8,7 1", "7,8,9 9,8,7 1"}));
    const auto b = folder.write("b.tsv", small_trace({"1,2 9,8 1", "5,4 9,8.5 1", "9,8 9,8 1"}));
    const json out = figures({a, b}, 3); // every gap is 1
    CHECK(out["ranks"].size() == 2);
    CHECK(out["ranks"][0]["rank"] == 2);
    CHECK(out["ranks"][1]["rank"].is_null());
    CHECK(out["logit_delta"]["count"] == 2);
    CHECK(contains(compare_traces({a, b}).out, "top-3 against top-2"));
    CHECK(contains(compare_traces({a, b}).out, "beyond top-2"));
    CHECK(contains(compare_traces({b, a}).out, "top-2 against top-3"));
    CHECK(contains(compare_traces({b, a}).out, "rank 3"));
}

TEST_CASE("compare_traces: unlike settings are warnings, and errors with --strict") {
    TempFolder folder;
    const auto a = folder.write("a.tsv", small_trace(small_reference, "# prefill\t2\n# start_token\t758\n"));
    const auto b = folder.write("b.tsv", small_trace(small_candidate, "# prefill\t3\n"));
    const Finished text = compare_traces({a, b});
    CHECK(text.status == 0);
    CHECK(text.err == "");
    CHECK(contains(text.out, "Warnings"));
    CHECK(contains(text.out, "prefill is '2' in the reference, '3' in the candidate"));
    CHECK(contains(text.out, "start_token is '758' in the reference, not stated in the candidate"));
    CHECK(figures({a, b})["warnings"].size() == 2);
    CHECK(contains(compare_traces({a, b, "--markdown", "-"}).out, "- warning: not like for like: prefill"));

    const std::set<std::string> before = folder.names();
    const Finished strict = compare_traces({a, b, "--strict", "--json", folder.path("x.json")});
    check_refused(strict,
                  {"compare_traces: not like for like: prefill", "compare_traces: not like for like: start_token"}, 2);
    CHECK(folder.names() == before);
    CHECK(compare_traces({a, a, "--strict"}).status == 0);
    CHECK(compare_example({"--strict"}).status == 0);
}

// ---- input ---------------------------------------------------------------------------------------------------------

TEST_CASE("compare_traces: unreadable input, on either side, leaves nothing behind") {
    TempFolder folder;
    const std::string good = small_trace(small_reference);
    const auto good_path = folder.write("good.tsv", good);
    const std::string second_row = "0\t1\t11\t1.000000\t7,11\t3.500000,3.000000\n";
    REQUIRE(contains(good, second_row));
    const auto damaged = [&](const std::string& name, const std::string& row) {
        return folder.write(name, test::replaced(good, second_row, row));
    };
    folder.write("earlier.json", "earlier");
    const std::vector<std::pair<std::string, std::string>> bad = {
        {folder.path("missing.tsv"), "missing.tsv: cannot open: No such file"},
        {folder.path(), "directory"},
        {folder.write("binary.tsv", std::string("\x7f"
                                                "ELF\0\1\2\3",
                                                8)),
         "binary.tsv: neither a text trace"},
        {folder.write("empty.tsv", ""), "empty.tsv: the file is empty"},
        {folder.write("chatter.tsv", "loading\n# model\tx\n"), "chatter.tsv: no data rows"},
        {damaged("fields.tsv", "0\t1\t11\t1.000000\t7,11\n"), "fields.tsv:2:"},
        {damaged("nan.tsv", test::replaced(second_row, "1.000000", "nan")), "nan.tsv:2:"},
        {damaged("text.tsv", "0\t1\t11\t1.0\t7,x\t3.5,3.0\n"), "text.tsv:2:"},
        {damaged("middle.tsv", "a message\n" + second_row), "middle.tsv:2:"},
        {damaged("cut.tsv", "0\t1\t11\t1.000000\t7,11\t3.500000,3.0"), "cut.tsv:2:"},
        {damaged("escape.tsv", "0\t1\t11\t1.0\t7,\x1b[31m\t3.5,3.0\n"), "escape.tsv:2:"}};
    const std::set<std::string> before = folder.names();
    for (const auto& entry : bad) {
        const auto& path = entry.first;
        const auto& message = entry.second;
        CAPTURE(path);
        for (const auto& pair : {std::vector{path, good_path}, std::vector{good_path, path}}) {
            auto arguments = pair;
            arguments.insert(arguments.end(),
                             {"--json", folder.path("earlier.json"), "--markdown", folder.path("new.md")});
            check_refused(compare_traces(arguments), {message});
            check_refused(compare_traces({pair[0], pair[1], "--json", "-"}), {message});
        }
    }
    CHECK(folder.names() == before);
    CHECK(test::read_file(folder.path("earlier.json")) == "earlier");
}

TEST_CASE("compare_traces: traces of other tokens are incomparable, and the first difference is named") {
    TempFolder folder;
    const std::string text = small_trace(small_reference);
    const auto a = folder.write("a.tsv", text);
    const auto target = folder.write("target.tsv", test::replaced(text, "\t11\t1.0", "\t12\t1.0"));
    const auto shorter = folder.write("shorter.tsv", text.substr(0, text.find('\n') + 1));
    const auto place = folder.write("place.tsv", test::replaced(text, "0\t1\t11", "3\t1\t11"));
    check_refused(compare_traces({a, target}), {"not comparable", "position 1", "target 11", "target 12"});
    check_refused(compare_traces({a, shorter}), {"not comparable", "2 positions", "the candidate 1"});
    check_refused(compare_traces({shorter, a}), {"not comparable", "the reference has 1"});
    check_refused(compare_traces({a, place}), {"not comparable", "chunk 3"});
}

TEST_CASE("compare_traces: CRLF copies, chatter and a missing last newline change no figure") {
    TempFolder folder;
    const std::string text = test::read_file(reference_path);
    const auto crlf = folder.write("crlf.tsv", test::replaced(text, "\n", "\r\n"));
    const json out = figures({reference_path, crlf});
    CHECK(out["identical_data"] == true);
    CHECK(out["warnings"].empty());
    CHECK(out["reference"]["metadata"] == out["candidate"]["metadata"]);
    const auto unended = folder.write("unended.tsv", text.substr(0, text.size() - 1));
    CHECK(figures({reference_path, unended})["identical_data"] == true);
    const auto chatty = folder.write("chatty.tsv", "loading model ...\n50 %\n" + text);
    const json skipped = figures({reference_path, chatty});
    CHECK(skipped["identical_data"] == true);
    CHECK(skipped["candidate"]["skipped_lines"] == 2);
    CHECK(contains(compare_traces({reference_path, chatty}).out, "2 lines ahead of the data skipped"));
}

TEST_CASE("compare_traces: a trace from a pipe") {
    const std::string command =
        "exec '" COMPARE_TRACES "' <(cat '" + reference_path + "') <(cat '" + candidate_path + "') --json -";
    if (test::run({"bash", "-c", "exit 0"}).status != 0) {
        MESSAGE("SKIPPED: no bash");
        return;
    }
    const Finished run = test::run({"bash", "-c", command});
    CHECK(run.status == 0);
    CHECK(run.err == "");
    json out = json::parse(run.out), from_files = figures(traces());
    for (json* object : {&out, &from_files}) {
        for (const char* arm : {"reference", "candidate"}) { (*object)[arm].erase("path"); }
    }
    CHECK(out == from_files);
}

TEST_CASE("compare_traces: paths with spaces, other scripts, invalid UTF-8 and control bytes") {
    TempFolder folder;
    for (const std::string name : {"with spaces.tsv", "-dash.tsv", "Zürich モデル.tsv", "a|b`c*.tsv", "bad\xff\xfe.tsv",
                                   "esc\x1b[31m.tsv", "quote\"'\\.tsv", "$(echo x).tsv"}) {
        CAPTURE(name);
        const auto path = folder.write(name, small_trace(small_reference));
        const json out = figures({path, path});
        CHECK(out["verdict"] == "identical");
        if (test::is_utf8(name)) { CHECK(out["reference"]["path"] == path); }
        const Finished text = compare_traces({path, path, "--json", path + ".json"});
        CHECK(text.status == 0);
        CHECK_FALSE(contains(text.out, "\x1b"));
        CHECK(test::is_utf8(text.out));
        CHECK(json::parse(test::read_file(path + ".json"))["verdict"] == "identical");
        const Finished markdown = compare_traces({path, path, "--markdown", "-"});
        CHECK_FALSE(contains(markdown.out, "\x1b"));
        CHECK(test::is_utf8(markdown.out));
        CHECK_NOTHROW(test::markdown_tables(markdown.out));
        check_refused(compare_traces({path + ".missing", path}), {"cannot open"});
    }
    check_refused(compare_traces({"two\nlines", reference_path}), {"two?lines"});
}

TEST_CASE("compare_traces: hostile metadata reaches no terminal and breaks no format") {
    TempFolder folder;
    const std::string hostile = "a|b`c*_<i>\x1b[31m\x07\xff\xc3\x28\xc2\x9b"
                                "2J \"q\\";
    const std::string metadata =
        "# model\t" + hostile + "\tdevice\t" + hostile + "\n# prefill\t" + hostile + "\n# |" + hostile + "\t1\n#\n# \n";
    const auto a = folder.write("a.tsv", small_trace(small_reference, metadata));
    const auto b = folder.write("b.tsv", small_trace(small_candidate, "# prefill\t1\n"));
    const json out = figures({a, b, "--top", "9"});
    CHECK(out["reference"]["metadata"].contains("model"));
    CHECK(out["reference"]["metadata"]["model"].get<std::string>().starts_with("a|b`c*_<i>\x1b[31m\x07"));
    CHECK(out["warnings"].size() == 1);
    const Finished text = compare_traces({a, b, "--top", "9"});
    CHECK(contains(text.out, "a|b`c*_<i>?[31m?"));
    const Finished markdown = compare_traces({a, b, "--top", "9", "--markdown", "-"});
    for (const std::string& report : {text.out, markdown.out}) {
        CHECK(test::is_utf8(report));
        for (const char* control : {"\x1b", "\x07", "\xc2\x9b"}) { CHECK_FALSE(contains(report, control)); }
    }
    const auto tables = test::markdown_tables(markdown.out);
    const auto model = test::markdown_row(tables, "model");
    REQUIRE(model.size() == 3);
    CHECK(contains(model[1], "a|b`c*_<i>?[31m?"));
    check_refused(compare_traces({a, b, "--strict"}), {"prefill"});
}

// ---- output --------------------------------------------------------------------------------------------------------

TEST_CASE("compare_traces: an output that cannot be written is an error, and nothing else appears") {
    TempFolder folder;
    folder.write("earlier.json", "earlier");
    const std::set<std::string> before = folder.names();
    check_refused(compare_example({"--json", folder.path("none/x.json")}), {"none/x.json", "cannot write"});
    check_refused(compare_example({"--json", folder.path("new.json"), "--markdown", folder.path("none/x.md")}),
                  {"none/x.md"});
    check_refused(compare_example({"--json", folder.path("none/x.json"), "--markdown", "-"}), {"none/x.json"});
    check_refused(compare_example({"--json", folder.path()}), {"directory"});
    CHECK(folder.names() == before);
    if (std::filesystem::exists("/dev/full")) {
        check_refused(compare_example({"--json", "/dev/full"}), {"/dev/full", "No space left"});
        check_refused(compare_example({"--markdown", "/dev/full", "--json", folder.path("earlier.json")}),
                      {"/dev/full"});
        for (const auto& arguments :
             {std::vector<std::string>{}, {"--json", "-"}, {"--json", folder.path("new.json")}}) {
            check_refused(compare_example(arguments, {.environment = {}, .terminal = false, .out_file = "/dev/full"}),
                          {"standard output", "No space left"});
        }
        const std::string command =
            "'" COMPARE_TRACES "' '" + reference_path + "' '" + candidate_path + "' > /dev/full";
        check_refused(test::run({"sh", "-c", command}), {"standard output"});
    }
    CHECK(folder.names() == before);
    CHECK(test::read_file(folder.path("earlier.json")) == "earlier");
}

TEST_CASE("compare_traces: a closed standard output is an error and never another file's content") {
    TempFolder folder;
    const std::string command = "'" COMPARE_TRACES "' '" + reference_path + "' '" + candidate_path + "' --json '" +
                                folder.path("x.json") + "' ";
    check_refused(test::run({"sh", "-c", command + ">&-"}), {"standard output"});
    CHECK(folder.names().empty());
    CHECK(test::run({"sh", "-c", command + "-q >&- 2>&-"}).status == 0);
    CHECK(json::parse(test::read_file(folder.path("x.json")))["verdict"] == "pass");
}

TEST_CASE("compare_traces: a report never overwrites an input or the other report") {
    TempFolder folder;
    const std::string text = small_trace(small_reference);
    const auto a = folder.write("a.tsv", text);
    std::filesystem::create_symlink(a, folder.path("link.tsv"));
    std::filesystem::create_directory(folder.path("sub"));
    for (const std::string output : {"a.tsv", "./a.tsv", "sub/../a.tsv", "link.tsv"}) {
        CAPTURE(output);
        check_refused(compare_traces({a, a, "--json", folder.path(output)}), {"a report would overwrite this input"});
        check_refused(compare_traces({reference_path, a, "--markdown", folder.path(output)}), {"overwrite"});
    }
    CHECK(test::read_file(a) == text);
    check_refused(compare_traces({a, a, "--json", folder.path("x"), "--markdown", folder.path("./x")}),
                  {"the same file"});
    CHECK_FALSE(std::filesystem::exists(folder.path("x")));
    CHECK(compare_traces({a, a, "--json", "/dev/null", "--markdown", "/dev/null"}).status == 0);
}

TEST_CASE("compare_traces: /dev/stdout and symbolic links as output") {
    TempFolder folder;
    const Finished run = compare_example({"-q", "--json", "/dev/stdout"});
    CHECK(run.status == 0);
    CHECK(json::parse(run.out)["verdict"] == "pass");
    folder.write("target.json", "earlier");
    std::filesystem::create_symlink("target.json", folder.path("link.json"));
    CHECK(compare_example({"--json", folder.path("link.json")}).status == 0);
    CHECK(std::filesystem::is_symlink(folder.path("link.json")));
    CHECK(json::parse(test::read_file(folder.path("target.json")))["verdict"] == "pass");
}

TEST_CASE("the helper tells how a program ended") {
    CHECK(test::run({"sh", "-c", "exit 7"}).status == 7);
    CHECK(test::run({"sh", "-c", "kill -TERM $$"}).status == 128 + 15);
    CHECK(test::run({"/nonexistent/program"}).status == 127);
    const Finished run = test::run({"sh", "-c", "echo out; echo err >&2"});
    CHECK(run.out == "out\n");
    CHECK(run.err == "err\n");
}

} // namespace test_compare_traces

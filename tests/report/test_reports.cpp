#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "logitstat/report/json.hpp"
#include "logitstat/report/markdown.hpp"
#include "logitstat/report/text.hpp"
#include "programs/run_program.hpp"
#include "report/markdown_tables.hpp"

namespace test_reports {

// The three reports of comparisons made by hand: what a figure is called and how it is written, whatever computed it.
// Reports grow, so these tests look for content and never at a whole text.

using logitstat::Comparison;
using logitstat::json_report;
using logitstat::markdown_report;
using logitstat::text_report;
using logitstat::Verdict;
using nlohmann::json;
using test::contains;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Every figure has a value of its own, so that one in another's place is seen.
Comparison sample() {
    Comparison c;
    c.positions = 1000;
    c.chunks = 4;
    c.reference_k = 8;
    c.candidate_k = 5;
    c.disagreements = 30;
    c.decided = {1.5, 400, 3};
    c.sweep = {{0.5, 800, 20}, {1.5, 400, 3}, {50, 0, 0}};
    logitstat::Disagreement worst;
    worst.index = 417;
    worst.chunk = 1;
    worst.pos = 161;
    worst.target = 77;
    worst.reference_token = 1001;
    worst.candidate_token = 2002;
    worst.gap = 1.875;
    worst.rank = 3;
    worst.ulps = 15;
    c.largest_gap = worst;
    c.worst = {worst, worst};
    c.worst[1].index = 12;
    c.worst[1].gap = 0.25;
    c.worst[1].rank.reset();
    c.worst[1].ulps.reset();
    c.storage = logitstat::storage_type::bfloat16;
    c.ulp_sweep = {{3, 700, 11}};
    c.mcnemar = {490, 10, 5, 495, 0.3018};
    c.ranks = {{2, 21}, {3, 8}, {std::nullopt, 1}};
    c.hard_ties = 6;
    c.candidate_ties = 9;
    c.logit_delta.count = 999;
    c.logit_delta.p50 = 0.0625;
    c.logit_delta.p90 = 0.125;
    c.logit_delta.p99 = 0.375;
    c.logit_delta.max = 0.4375;
    c.logit_delta.mean_signed = -0.03125;
    c.reference_perplexity.value = 8.125;
    c.reference_perplexity.se = 0.1875;
    c.reference_perplexity.interval = logitstat::Interval{7.5, 8.75};
    c.candidate_perplexity.value = 8.25;
    c.candidate_perplexity.se = 0.21875;
    c.nll_difference.mean = 0.015625;
    c.nll_difference.se = {
        .n = 1000, .clusters = 4, .lag = 6, .iid = 0.0078125, .clustered = 0.0390625, .hac = 0.015625};
    c.nll_difference.t = 1.0;
    c.nll_difference.p = 0.317;
    c.nll_difference.interval = logitstat::Interval{-0.015, 0.04625};
    c.nll_difference.ratio_interval = logitstat::Interval{0.9851, 1.0473};
    c.nll_difference.sign_test_p = 0.00002;
    c.nll_difference.correlation = 0.984375;
    c.nll_difference.higher = 600;
    c.nll_difference.lower = 300;
    c.nll_difference.equal = 100;
    c.nll_difference.largest = 0.71875;
    c.nll_difference.largest_index = 555;
    c.nll_difference.perplexity_ratio = 1.015625;
    c.nll_difference.perplexity_percent = 1.5625;
    c.reference_accuracy = {500, 1000};
    c.candidate_accuracy = {495, 1000};
    c.token_verdict = c.verdict = Verdict::fail;
    c.warnings = {"first warning", "second warning"};
    c.reference.path = "ref.tsv";
    c.reference.skipped = "one\ntwo\n";
    c.reference.metadata.add({"model", "net", "device", "GPU"});
    c.candidate.path = "cand.tsv";
    return c;
}

/// The line that holds `part`, or an empty string.
std::string line_with(const std::string& text, const std::string& part) {
    const std::size_t at = text.find(part);
    if (at == std::string::npos) { return {}; }
    const std::size_t start = text.rfind('\n', at) + 1;
    return text.substr(start, text.find('\n', at) - start);
}

} // namespace

TEST_CASE("text report: every figure, under its name") {
    const std::string text = text_report(sample());
    CHECK(text.ends_with("\n"));
    CHECK_FALSE(text.ends_with("\n\n"));
    CHECK(contains(text, "1000 positions in 4 chunks"));
    CHECK(contains(line_with(text, "top-8"), "top-5"));
    CHECK(contains(line_with(text, "FAIL"), "3 mismatches at the 400 positions"));
    CHECK(contains(line_with(text, "FAIL"), "gap >= 1.5"));
    CHECK(contains(line_with(text, "30 of 1000"),
                   "3.00 %; 2.03 to 4.26 % at 95 % confidence")); // R: binom.test(30, 1000)
    CHECK(contains(line_with(text, " 800 "), "1.53 to 3.83 %"));  // R: binom.test(20, 800)
    CHECK(contains(line_with(text, " 700 "), "0.79 to 2.79 %"));  // R: binom.test(11, 700)
    CHECK(contains(text, "in ulps of bfloat16, as the logits seem to be stored (one is 0.0625 at 12, 0.2500 at 40)"));
    CHECK(contains(line_with(text, "  1001  "), " 15.0  3"));
    CHECK(contains(line_with(text, "largest reference gap"), "1.875000, rank 3, at position 417 (chunk 1, pos 161)"));
    CHECK(contains(line_with(text, "hard ties"), "6 positions"));
    CHECK(contains(line_with(text, "candidate ties"), "at 9 of them"));
    CHECK(contains(line_with(text, "beyond top-5"), " 1 "));
    CHECK(contains(line_with(text, "  rank 2 "), " 21 "));
    CHECK(contains(line_with(text, "  rank 2 "), "70.0 %"));
    CHECK(contains(text, "999 of 1000"));
    CHECK(contains(line_with(text, "p50"), "p50 0.0625   p90 0.1250   p99 0.3750   max 0.4375"));
    CHECK(contains(text, "-0.0312"));
    CHECK(contains(text, "8.1250 +- 0.1875"));
    CHECK(contains(text, "8.2500 +- 0.2188"));
    CHECK(contains(text, "+1.562 %"));
    CHECK(contains(text, "1.015625"));
    CHECK(contains(line_with(text, "reference  8.1250"), "7.5000 to 8.7500"));
    CHECK(contains(line_with(text, "+1.562 %"), "0.985100 to 1.047300"));
    CHECK(contains(text, "+0.015625, 95 % interval -0.015000 to +0.046250"));
    CHECK(contains(line_with(text, "std error"),
                   "iid 0.007812, clustered by chunk 0.039062, autocorrelation-consistent 0.015625 (lag 6)"));
    CHECK(contains(line_with(text, "used  "), "autocorrelation-consistent: 4 chunks are too few to cluster by"));
    CHECK(contains(line_with(text, "test  "), "1.00 standard errors from zero, p = 0.317; sign test p < 0.0001"));
    CHECK(contains(text, "correlation of the two NLLs 0.9844"));
    CHECK(contains(line_with(text, "McNemar"), "reference 10, candidate 5 (McNemar's exact test p = 0.302)"));
    CHECK(contains(text, "higher at 600, lower at 300, equal at 100 positions"));
    CHECK(contains(text, "0.718750 at position 555"));
    CHECK(contains(text, "50.00 % (500 of 1000)"));
    CHECK(contains(text, "49.50 % (495 of 1000)"));
    CHECK(contains(text, "first warning"));
    CHECK(contains(text, "second warning"));
    CHECK(contains(text, "2 lines ahead of the data skipped"));
    CHECK(contains(text, "net on GPU"));
    CHECK_FALSE(contains(text, "\x1b"));
}

TEST_CASE("text report: the columns of its tables stand under their headings") {
    const std::string text = text_report(sample());
    const auto end_of = [](const std::string& line, const std::string& word) { return line.find(word) + word.size(); };
    const std::string head = line_with(text, "gap >=   decided");
    const std::string row = line_with(text, "  800  ");
    REQUIRE(contains(head, "rate"));
    CHECK(end_of(row, "0.5") == end_of(head, "gap >="));
    CHECK(end_of(row, "800") == end_of(head, "decided"));
    CHECK(end_of(row, " 20") == end_of(head, "mismatches"));
    CHECK(end_of(row, "2.50 %") == end_of(head, "rate"));
    CHECK(contains(line_with(text, "verdict\n"), "1.5"));
    CHECK(contains(line_with(text, "  50  "), "n/a")); // nothing decided: no rate

    const std::string worst_head = line_with(text, "rank in candidate");
    const std::string worst_row = line_with(text, "  1001  ");
    const std::vector<std::vector<std::string>> columns = {
        {"417", "position"},   {"1", "chunk"},        {"161", "pos "},    {"77", "target"},
        {"1001", "reference"}, {"2002", "candidate"}, {"1.875000", "gap"}};
    for (const auto& column : columns) {
        CAPTURE(column[1]);
        const std::string name = column[1] == "pos " ? "       pos" : column[1]; // "position" comes first
        CHECK(end_of(worst_row, " " + column[0] + " ") - 1 == end_of(worst_head, name));
    }
    CHECK(line_with(text, "  0.250000  ").ends_with("beyond top-5"));
}

TEST_CASE("text report: the verdict in words, in all its forms") {
    Comparison c = sample();
    const auto verdict_line = [&] { return line_with(text_report(c), "verdict    "); };
    c.decided = {1.5, 1, 1};
    CHECK(contains(verdict_line(), "FAIL: 1 mismatch at the 1 position that"));
    c.token_verdict = c.verdict = Verdict::pass;
    c.decided = {2, 7, 0};
    CHECK(contains(verdict_line(), "PASS: no mismatch at the 7 positions"));
    CHECK(contains(verdict_line(), "(gap >= 2)"));
    c.token_verdict = c.verdict = Verdict::inconclusive;
    c.decided = {20, 0, 0};
    CHECK(contains(verdict_line(), "INCONCLUSIVE: "));
    CHECK(contains(verdict_line(), "no position (gap >= 20)"));
    c.token_verdict = c.verdict = Verdict::identical;
    c.disagreements = 0;
    CHECK(contains(verdict_line(), "IDENTICAL: "));
    c.reference_k = c.candidate_k = 8;
    CHECK(contains(verdict_line(), "the numbers differ"));
    c.candidate_k = 4; // which alone makes the data unequal
    CHECK(contains(verdict_line(), "the other data are not all equal"));
    c.identical_data = true;
    CHECK(contains(verdict_line(), "all data are equal"));
}

TEST_CASE("text report: one of a thing is in the singular") {
    Comparison c = sample();
    c.positions = c.disagreements = c.hard_ties = c.nll_difference.equal = 1;
    c.chunks = 1;
    c.reference.skipped = "one\n";
    const std::string text = text_report(c);
    CHECK(contains(text, "1 position in 1 chunk,"));
    CHECK(contains(text, "1 line ahead"));
    for (const char* wrong : {" 1 positions", " 1 chunks", " 1 lines", " 1 mismatches"}) {
        CAPTURE(wrong);
        CHECK_FALSE(contains(text, wrong));
    }
}

TEST_CASE("text report: colour only on request, and only colour is added") {
    const std::string plain = text_report(sample());
    std::string colored = text_report(sample(), {.color = true});
    CHECK(contains(colored, "\x1b[1;31mFAIL\x1b[0m"));
    for (std::size_t at; (at = colored.find('\x1b')) != std::string::npos;) {
        colored.erase(at, colored.find('m', at) - at + 1);
    }
    CHECK(colored == plain);
    Comparison c = sample();
    c.token_verdict = c.verdict = Verdict::pass;
    CHECK(contains(text_report(c, {.color = true}), "\x1b[1;32mPASS\x1b[0m"));
    c.token_verdict = c.verdict = Verdict::inconclusive;
    CHECK(contains(text_report(c, {.color = true}), "\x1b[1;33mINCONCLUSIVE\x1b[0m"));
}

TEST_CASE("Markdown report: well-formed tables with every figure") {
    const std::string text = markdown_report(sample());
    const auto tables = test::markdown_tables(text);
    const auto value = [&](const std::string& name) {
        const auto row = test::markdown_row(tables, name);
        return row.size() > 1 ? row[1] : std::string("no such row");
    };
    CHECK(text.starts_with("**fail**: 3 mismatches at the 400 positions"));
    CHECK(test::markdown_row(tables, "trace") == std::vector<std::string>{"trace", "ref.tsv", "cand.tsv"});
    CHECK(value("model") == "net on GPU");
    CHECK(test::markdown_row(tables, "accuracy") == std::vector<std::string>{"accuracy", "50.00 %", "49.50 %"});
    CHECK(value("positions") == "1000");
    CHECK(value("top-1 disagreements") == "30 (3.00 %; 2.03 to 4.26 % at 95 %)");
    CHECK(value("largest gap at a disagreement") == "1.875000, rank 3, position 417 (chunk 1, pos 161)");
    CHECK(value("hard ties / candidate ties") == "6 / 9");
    CHECK(value("logit delta p50 / p90 / p99 / max") == "0.0625 / 0.1250 / 0.3750 / 0.4375");
    CHECK(value("perplexity change").starts_with("+1.562 %"));
    CHECK(value("NLL difference (nats)").starts_with("+0.015625"));
    CHECK(value("perplexity ratio") == "1.015625 (0.985100 to 1.047300)");
    CHECK(value("its SE: iid / clustered / HAC") == "0.007812 / 0.039062 / 0.015625");
    CHECK(value("p: t-test / sign test / McNemar") == "0.317 / <0.0001 / 0.302");
    CHECK(test::markdown_row(tables, "3") ==
          std::vector<std::string>{"3", "700", "11", "1.571 %", "below 2.59 % (0.79 to 2.79 %)"});
    CHECK(value("higher / lower / equal") == "600 / 300 / 100");
    CHECK(test::markdown_row(tables, "0.5") ==
          std::vector<std::string>{"0.5", "800", "20", "2.500 %", "below 3.62 % (1.53 to 3.83 %)"});
    CHECK(test::markdown_row(tables, "50") == std::vector<std::string>{"50", "0", "0", "n/a", "nothing is excluded"});
    CHECK(value("rank 3") == "8");
    CHECK(value("beyond top-5") == "1");
    CHECK(test::markdown_row(tables, "417") ==
          std::vector<std::string>{"417", "1", "161", "77", "1001", "2002", "1.875000", "15.0", "3"});
    CHECK(contains(text, "- warning: second warning\n"));
}

TEST_CASE("Markdown report: text from files cannot break a table or start markup") {
    Comparison c = sample();
    const std::string hostile = "a|b\\|c`d`*e*_f_<g>[h](i)\nj\x1b[31m\xff";
    c.reference.path = c.candidate.path = hostile;
    c.reference.metadata = {};
    c.reference.metadata.add({"model", hostile});
    c.warnings = {hostile};
    const std::string text = markdown_report(c);
    const auto row = test::markdown_row(test::markdown_tables(text), "trace");
    REQUIRE(row.size() == 3);
    CHECK(row[1] == "a|b\\|c`d`*e*_f_<g>[h](i)?j?[31m?"); // read back as it was, but for what cannot be printed
    CHECK(row[2] == row[1]);
    CHECK(contains(text, "\\`d\\`\\*e\\*\\_f\\_\\<g\\>\\[h\\]"));
    CHECK_FALSE(contains(text, "\x1b"));
    CHECK(test::is_utf8(text));
    CHECK(logitstat::report::cell("|\\|") == "\\|\\\\\\|");
    CHECK(logitstat::report::cell("~~&amp;$x$") == "\\~\\~\\&amp;\\$x\\$");
    using logitstat::report::item; // what would begin a block begins none
    for (const std::string sign : {"#", "-", "+", "="}) {
        CHECK(item(sign + " a - b. #") == "\\" + sign + " a - b. #");
    }
    CHECK(item("12. a") == "12\\. a");
    CHECK(item("1) a") == "1\\) a");
    CHECK(item("    code") == "code");
    CHECK(item("*a 1.") == "\\*a 1.");
    CHECK(item("qwen 1.5") == "qwen 1.5");
    CHECK(item("7") == "7");
    CHECK(item("  ") == "");
}

TEST_CASE("JSON report: keys of the interface, values unrounded") {
    Comparison c = sample();
    c.logit_delta.p50 = 1.0 / 3;
    c.sweep[0].threshold = 0.1;
    const json out = json::parse(json_report(c));
    CHECK(out["positions"] == 1000);
    CHECK(out["top1"]["disagreements"] == 30);
    CHECK(out["top1"]["rate"] == 0.03);
    CHECK(out["decided"]["threshold"] == 1.5);
    CHECK(out["decided"]["positions"] == 400);
    CHECK(out["decided"]["mismatches"] == 3);
    CHECK(out["decided"]["rate"] == 0.0075);
    REQUIRE(out["sweep"].size() == 3);
    CHECK(out["sweep"][0]["threshold"] == 0.1);
    CHECK(out["sweep"][0]["rate"] == 0.025);
    CHECK(out["sweep"][2]["rate"].is_null());
    CHECK(out["largest_gap_at_disagreement"]["gap"] == 1.875);
    CHECK(out["largest_gap_at_disagreement"]["rank"] == 3);
    CHECK(out["largest_gap_at_disagreement"]["index"] == 417);
    CHECK(out["largest_gap_at_disagreement"]["chunk"] == 1);
    CHECK(out["largest_gap_at_disagreement"]["pos"] == 161);
    REQUIRE(out["ranks"].size() == 3);
    CHECK(out["ranks"][0]["rank"] == 2);
    CHECK(out["ranks"][0]["count"] == 21);
    CHECK(out["ranks"][2]["rank"].is_null());
    CHECK(out["ranks"][2]["count"] == 1);
    CHECK(out["ties"]["hard"] == 6);
    CHECK(out["ties"]["candidate"] == 9);
    CHECK(out["logit_delta"]["count"] == 999);
    CHECK(out["logit_delta"]["p50"].get<double>() == 1.0 / 3);
    CHECK(out["logit_delta"]["p90"] == 0.125);
    CHECK(out["logit_delta"]["p99"] == 0.375);
    CHECK(out["logit_delta"]["max"] == 0.4375);
    CHECK(out["logit_delta"]["mean_signed"] == -0.03125);
    CHECK(out["perplexity"]["reference"] == 8.125);
    CHECK(out["perplexity"]["candidate"] == 8.25);
    CHECK(out["perplexity"]["ratio"] == 1.015625);
    CHECK(out["perplexity"]["percent"] == 1.5625);
    CHECK(out["perplexity"]["reference_se"] == 0.1875);
    CHECK(out["perplexity"]["candidate_se"] == 0.21875);
    CHECK(out["nll_difference"]["mean"] == 0.015625);
    CHECK(out["nll_difference"]["se"] == json{{"iid", 0.0078125}, {"clustered", 0.0390625}, {"hac", 0.015625}});
    CHECK(out["nll_difference"]["believed"]["se"] == "hac");
    CHECK(out["nll_difference"]["believed"]["t"] == 1.0);
    CHECK(out["nll_difference"]["believed"]["df"] == 999);
    CHECK(out["nll_difference"]["p"] == 0.317);
    CHECK(out["nll_difference"]["interval"] == json{-0.015, 0.04625});
    CHECK(out["nll_difference"]["sign_test_p"] == 0.00002);
    CHECK(out["perplexity"]["ratio_interval"] == json{0.9851, 1.0473});
    CHECK(out["perplexity"]["candidate_interval"].is_null());
    CHECK(out["mcnemar"] ==
          json{{"both", 490}, {"only_reference", 10}, {"only_candidate", 5}, {"neither", 495}, {"p", 0.3018}});
    CHECK(out["ulp_sweep"][0]["mismatches"] == 11);
    CHECK(out["storage"] == json{{"type", "bfloat16"}, {"inferred", true}});
    CHECK(out["worst"][0]["ulps"] == 15);
    CHECK(out["worst"][1]["ulps"].is_null());
    CHECK(out["nll_difference"]["t"] == 2.0);
    CHECK(out["nll_difference"]["higher"] == 600);
    CHECK(out["nll_difference"]["lower"] == 300);
    CHECK(out["nll_difference"]["equal"] == 100);
    CHECK(out["nll_difference"]["max_abs"] == 0.71875);
    CHECK(out["nll_difference"]["max_abs_index"] == 555);
    CHECK(out["accuracy"]["reference"] == 0.5);
    CHECK(out["accuracy"]["candidate"] == 0.495);
    CHECK(out["verdict"] == "fail");
    CHECK(out["identical_data"] == false);
    CHECK(out["warnings"] == json{"first warning", "second warning"});
    CHECK(out["reference"]["path"] == "ref.tsv");
    CHECK(out["reference"]["skipped_lines"] == 2);
    CHECK(out["reference"]["metadata"]["device"] == "GPU");
    CHECK(out["candidate"]["metadata"] == json::object());
    REQUIRE(out["worst"].size() == 2);
    CHECK(out["worst"][0]["reference_token"] == 1001);
    CHECK(out["worst"][0]["candidate_token"] == 2002);
    CHECK(out["worst"][0]["target"] == 77);
    CHECK(out["worst"][1]["rank"].is_null());
    CHECK_FALSE(out.contains("step_curve"));
    c.curve = logitstat::StepCurve{{{0, 1000, 30}, {0.5, 800, 20}}};
    CHECK(json::parse(json_report(c))["step_curve"][1]["mismatches"] == 20);
}

TEST_CASE("JSON report: metadata keeps its order, lists, remarks and repeats") {
    Comparison c = sample();
    c.reference.metadata = {};
    c.reference.metadata.add({"z", "1", "a", "2"});
    c.reference.metadata.add({"columns", "chunk", "pos"});
    c.reference.metadata.add({"a remark"});
    c.reference.metadata.add({"a", "3"});
    c.reference.metadata.add({"a", "4"});
    const std::string text = json_report(c);
    const json metadata = json::parse(text)["reference"]["metadata"];
    CHECK(metadata["z"] == "1");
    CHECK(metadata["a"] == json{"2", "3", "4"});
    CHECK(metadata["columns"] == json{"chunk", "pos"});
    CHECK(metadata["a remark"].is_null());
    CHECK(metadata.contains("a remark"));
    CHECK(text.find("\"z\"") < text.find("\"a\""));
}

TEST_CASE("reports of a comparison without any figure: n/a and null, never NaN, never a crash") {
    const Comparison empty;
    const std::string text = text_report(empty), markdown = markdown_report(empty), out = json_report(empty);
    CHECK_FALSE(test::shows_nan_or_inf(text));
    CHECK_FALSE(test::shows_nan_or_inf(markdown));
    CHECK_FALSE(test::shows_nan_or_inf(out));
    CHECK(contains(text, "(in memory)"));
    CHECK_NOTHROW(test::markdown_tables(markdown));
    const json object = json::parse(out);
    CHECK(object["top1"]["rate"].is_null());
    CHECK(object["decided"]["rate"].is_null());
    CHECK(object["sweep"] == json::array());
    CHECK(object["ranks"] == json::array());
    CHECK(object["warnings"] == json::array());
    for (const char* key : {"gap", "rank", "index", "chunk", "pos"}) {
        CHECK(object["largest_gap_at_disagreement"].contains(key));
        CHECK(object["largest_gap_at_disagreement"][key].is_null());
    }
    for (const char* key : {"p50", "p90", "p99", "max", "mean_signed"}) { CHECK(object["logit_delta"][key].is_null()); }
    for (const char* key : {"reference_se", "candidate_se", "reference_interval", "ratio_interval"}) {
        CHECK(object["perplexity"][key].is_null());
    }
    for (const char* key : {"t", "p", "interval", "correlation"}) { CHECK(object["nll_difference"][key].is_null()); }
    CHECK(object["accuracy"]["reference"].is_null());
}

TEST_CASE("reports of an infinite perplexity: inf for people, null in JSON") {
    Comparison c = sample();
    c.candidate_perplexity.value = infinity;
    c.candidate_perplexity.se = infinity;
    c.nll_difference.perplexity_ratio = infinity;
    c.nll_difference.perplexity_percent = infinity;
    CHECK(contains(text_report(c), "inf +- inf"));
    CHECK(contains(text_report(c), "+inf %"));
    CHECK(contains(markdown_report(c), "inf"));
    const std::string out = json_report(c);
    CHECK_FALSE(test::shows_nan_or_inf(out));
    const json object = json::parse(out);
    for (const char* key : {"candidate", "ratio", "percent", "candidate_se"}) {
        CHECK(object["perplexity"][key].is_null());
    }
    CHECK(object["perplexity"]["reference"] == 8.125);
}

TEST_CASE("reports of tiny differences do not show them as zero") {
    Comparison c = sample();
    c.nll_difference.mean = -3.5e-9;
    c.nll_difference.se.iid = 1.5e-9;
    c.nll_difference.perplexity_percent = -3.5e-7;
    c.largest_gap->gap = 2.4e-7;
    c.logit_delta.p50 = 1.9e-6;
    c.positions = 1'000'000;
    c.disagreements = 1;
    for (const std::string& text : {text_report(c), markdown_report(c)}) {
        for (const char* figure : {"-3.5e-09", "1.5e-09", "-3.5e-07 %", "2.4e-07", "1.9e-06", "<0.01 %"}) {
            CAPTURE(figure);
            CHECK(contains(text, figure));
        }
    }
}

TEST_CASE("the helper finds malformed tables") {
    CHECK_NOTHROW(test::markdown_tables("text\n\n| a | b |\n|---|---:|\n| 1 | 2 \\| 3 |\n\ntext\n"));
    CHECK_THROWS(test::markdown_tables("| a | b |\n|---|---:|\n| 1 | 2 | 3 |\n"));
    CHECK_THROWS(test::markdown_tables("| a | b |\n|---|---:|\n| 1 \\| 2 |\n"));
    CHECK_THROWS(test::markdown_tables("| a | b |\n| 1 | 2 |\n"));
    CHECK_THROWS(test::markdown_tables("text\n| a |\n|---|\n"));
    CHECK_THROWS(test::markdown_tables("| a |\n|---|\ntext\n"));
    CHECK(test::shows_nan_or_inf("mean nan"));
    CHECK(test::shows_nan_or_inf("+-inf\n"));
    CHECK_FALSE(test::shows_nan_or_inf("information, banana"));
}

} // namespace test_reports

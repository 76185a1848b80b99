#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "logitstat/io/read_trace.hpp"
#include "programs/run_program.hpp"

namespace test_capture {

// capture_tiny_lm as a user runs it, and what compare_traces says of its arms.

using nlohmann::json;
using test::contains;
using test::Finished;
using test::TempFolder;

namespace {

const std::string folder = PROJECT_FOLDER "/examples/tiny_lm/";
const std::vector<std::string> arm_names{"float32", "float32-reordered", "bfloat16", "float16", "int8", "int4",
                                         "broken"};

Finished capture(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CAPTURE_TINY_LM);
    return test::run(arguments);
}

void check_refused(const Finished& run, const std::string& part, const std::string& program = "capture_tiny_lm") {
    CAPTURE(run.err);
    CAPTURE(part);
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(test::count_lines(run.err) == 1);
    CHECK(run.err.starts_with(program + ": "));
    CHECK(contains(run.err, part));
}

/// The traces of all arms with default settings, captured once.
const TempFolder& traces() {
    static const TempFolder made;
    static const bool captured = [] {
        for (const std::string& arm : arm_names) {
            CAPTURE(arm);
            const Finished run = capture({arm, made.path(arm)});
            CHECK(run.status == 0);
            CHECK(run.out == "");
            CHECK(run.err == "");
        }
        return true;
    }();
    REQUIRE(captured);
    return made;
}

} // namespace

TEST_CASE("capture_tiny_lm: --arms lists the arms that it takes, --help the arguments") {
    const Finished list = capture({"--arms"});
    CHECK(list.status == 0);
    CHECK(list.err == "");
    std::vector<std::string> names;
    std::istringstream lines(list.out);
    for (std::string line; std::getline(lines, line);) { names.push_back(line.substr(0, line.find(' '))); }
    CHECK(names == arm_names);
    const Finished help = capture({"--help"});
    CHECK(help.status == 0);
    for (const char* word : {"ARM", "OUTPUT", "CHUNK_TOKENS", "MAX_CHUNKS", "TOPK", "PREFILL", "--text", "--weights"}) {
        CHECK(contains(help.out, word));
    }
}

TEST_CASE("capture_tiny_lm: every arm's trace is complete, of the right tokens, and the same the next time") {
    const std::string text = test::read_file(folder + "held_out.txt");
    for (const std::string& arm : arm_names) {
        CAPTURE(arm);
        const std::string path = traces().path(arm);
        const auto trace = logitstat::read_trace(path);
        REQUIRE(trace.size() == 48 * 32);
        CHECK(trace.k == 8);
        CHECK(trace.source.skipped_lines() == 0);
        CHECK(trace.source.warnings.empty());
        bool right = true;
        for (std::size_t i = 0; i < trace.size(); ++i) {
            right = right && trace.chunk[i] == static_cast<int>(i / 32) && trace.pos[i] == static_cast<int>(i % 32) &&
                    trace.target[i] == static_cast<unsigned char>(text[64 + i + 1]);
        }
        CHECK(right);
        const auto& metadata = trace.source.metadata;
        CHECK(metadata.find("model") == "examples/tiny_lm/weights.safetensors");
        CHECK(metadata.find("device") == "CPU (" + arm + ")");
        CHECK(metadata.find("corpus") == "examples/tiny_lm/held_out.txt");
        CHECK(metadata.find("tokens") == std::to_string(text.size()));
        CHECK(metadata.find("chunks") == "48");
        CHECK(metadata.find("chunk_tokens") == "32");
        CHECK(metadata.find("topk") == "8");
        CHECK(metadata.find("prefill") == "64");
        CHECK(metadata.find("contiguous") == "true");

        const TempFolder again;
        CHECK(capture({arm, again.path("t"), "32", "48", "8", "64"}).status == 0); // the defaults, spelled out
        CHECK(test::read_file(again.path("t")) == test::read_file(path));
    }
}

TEST_CASE("capture_tiny_lm: compare_traces says of each arm what a practitioner expects") {
    struct Expected {
        std::string verdict;
        int status;
        double least_disagreement, most_disagreement; ///< rate of other best tokens
        double least_ratio, most_ratio;               ///< of the perplexities
        bool significant;                             ///< is the change in NLL beyond its error?
    };
    const std::map<std::string, Expected> expectations{
        {"float32", {"identical", 0, 0, 0, 1, 1, false}},
        {"float32-reordered", {"identical", 0, 0, 0, 0.99999, 1.00001, false}},
        {"float16", {"*", 0, 0, 0.005, 0.9995, 1.0005, false}},
        {"bfloat16", {"pass", 0, 0.001, 0.03, 0.997, 1.003, false}},
        {"int8", {"pass", 0, 0.001, 0.03, 0.99, 1.01, false}},
        {"int4", {"fail", 1, 0.05, 0.2, 1.02, 1.2, true}},
        {"broken", {"fail", 1, 0.05, 0.5, 1.05, 2, true}},
    };
    std::map<std::string, json> figures;
    for (const std::string& arm : arm_names) {
        CAPTURE(arm);
        const Expected& expected = expectations.at(arm);
        const Finished run = test::run({COMPARE_TRACES, traces().path("float32"), traces().path(arm), "--json", "-"});
        CHECK(run.err == "");
        CHECK(run.status == expected.status);
        const json& result = figures[arm] = json::parse(run.out);
        if (expected.verdict != "*") { CHECK(result["verdict"] == expected.verdict); }
        CHECK(result["warnings"].empty());
        CHECK(result["decided"]["positions"] > 700); // half of all: the model knows something
        const double rate = result["top1"]["rate"], ratio = result["perplexity"]["ratio"];
        CHECK(rate >= expected.least_disagreement);
        CHECK(rate <= expected.most_disagreement);
        CHECK(ratio >= expected.least_ratio);
        CHECK(ratio <= expected.most_ratio);
        CHECK((result["nll_difference"]["p"] < 1e-3) == expected.significant);
        CHECK(result["accuracy"]["reference"] > 0.6);
    }
    CHECK(figures["broken"]["decided"]["mismatches"] >= 10);
    CHECK(figures["broken"]["decided"]["mismatches"] > figures["int4"]["decided"]["mismatches"]);
}

TEST_CASE("capture_tiny_lm: narrow arms record narrow logits") {
    for (const std::string arm : {"float32", "bfloat16", "float16", "int8"}) {
        const Finished run = test::run({COMPARE_TRACES, traces().path(arm), traces().path(arm), "--json", "-"});
        CHECK(json::parse(run.out)["storage"]["type"] == (arm == "int8" ? "float32" : arm));
    }
}

TEST_CASE("capture_tiny_lm: the example pair is what the program captures today") {
    const TempFolder mine;
    const auto near = [](double a, double b) { return std::abs(a - b) < 1e-3; }; // another compiler rounds differently
    for (const std::string arm : {"float32", "int4"}) {
        CAPTURE(arm);
        REQUIRE(capture({arm, mine.path(arm), "32", "18", "8", "64"}).status == 0); // as examples/data/make_pair.sh
        const auto now = logitstat::read_trace(mine.path(arm)),
                   kept = logitstat::read_trace(EXAMPLE_DATA "/" + arm + ".tsv");
        CHECK(now.source.metadata == kept.source.metadata);
        REQUIRE(now.size() == kept.size());
        REQUIRE(now.k == kept.k);
        bool same = true;
        for (std::size_t i = 0; i < now.size(); ++i) {
            same = same && now.chunk[i] == kept.chunk[i] && now.pos[i] == kept.pos[i] &&
                   now.target[i] == kept.target[i] && near(now.nll[i], kept.nll[i]) &&
                   near(now.top_logits[i], kept.top_logits[i]);
        }
        CHECK(same);
    }
}

TEST_CASE("capture_tiny_lm: arguments, text and weights of the user's own") {
    const TempFolder mine;
    const std::string text = mine.write("text", "one two three");
    const Finished run = capture(
        {"float32", mine.path("t"), "4", "9", "3", "0", "--text", text, "--weights", folder + "weights.safetensors"});
    CHECK(run.err == "");
    REQUIRE(run.status == 0);
    const auto trace = logitstat::read_trace(mine.path("t"));
    REQUIRE(trace.size() == 12); // 13 bytes: three chunks of 4 and the byte that the last of them predicts
    CHECK(trace.k == 3);
    CHECK(trace.source.metadata.find("corpus") == text);
    for (std::size_t i = 0; i < 12; ++i) { CHECK(trace.target[i] == "one two three"[i + 1]); }

    // Chunks start afresh: with chunks of one token and no prefill, equal bytes give equal rows.
    const std::string twice = mine.write("twice", "abab");
    CHECK(capture({"float32", mine.path("u"), "1", "9", "8", "0", "--text", twice}).status == 0);
    const auto short_trace = logitstat::read_trace(mine.path("u"));
    REQUIRE(short_trace.size() == 3);
    CHECK(short_trace.nll[0] == short_trace.nll[2]);
    CHECK(short_trace.nll[0] != short_trace.nll[1]);
}

TEST_CASE("capture_tiny_lm: a text or weights or arguments that cannot be are refused, and nothing is written") {
    const TempFolder mine;
    const std::string out = mine.path("out"), weights = folder + "weights.safetensors";
    const std::string bytes = test::read_file(weights);
    const std::string cut = mine.write("cut", bytes.substr(0, bytes.size() - 4));
    const std::string empty = mine.write("empty", "");
    const std::string not_weights = mine.write("not_weights", "These are no weights at all.");
    const std::string renamed = mine.write("renamed", test::replaced(bytes, "\"final_norm\"", "\"final_worm\""));
    const std::string short_text = mine.write("short", std::string(96, 'x'));
    const std::string nan = mine.write("nan", bytes.substr(0, bytes.size() - 4) + std::string("\x00\x00\xc0\x7f", 4));
    const auto before = mine.names();
    struct Bad {
        std::vector<std::string> arguments;
        std::string message;
    };
    const std::vector<Bad> table{
        {{}, "ARM"},
        {{"float32"}, "OUTPUT"},
        {{"float64", out}, "'float64'"},
        {{"", out}, "ARM"},
        {{"float32", ""}, "OUTPUT"},
        {{"float32", out, "0"}, "CHUNK_TOKENS: 0 is not between 1 and 128"},
        {{"float32", out, "129"}, "CHUNK_TOKENS: 129"},
        {{"float32", out, "-1"}, "-1"},
        {{"float32", out, "many"}, "CHUNK_TOKENS: 'many'"},
        {{"float32", out, "1.5"}, "CHUNK_TOKENS: '1.5'"},
        {{"float32", out, "32", "0"}, "MAX_CHUNKS: 0"},
        {{"float32", out, "32", "99999999999999999999"}, "MAX_CHUNKS: '99999999999999999999'"},
        {{"float32", out, "32", "48", "1"}, "TOPK: 1 is not between 2 and 256"},
        {{"float32", out, "32", "48", "257"}, "TOPK: 257"},
        {{"float32", out, "32", "48", "8", "97"},
         "CHUNK_TOKENS and PREFILL: 32 + 97 tokens, the model's context is 128"},
        {{"float32", out, "32", "48", "8", "64", "more"}, "more"},
        {{"float32", out, "--unknown"}, "--unknown"},
        {{"float32", out, "--text", mine.path("none")}, "none"},
        {{"float32", out, "--text", empty}, "empty"},
        {{"float32", out, "--text", short_text}, "96 bytes of text, a chunk needs 97"},
        {{"float32", out, "--weights", mine.path("none")}, "none"},
        {{"float32", out, "--weights", mine.path()}, mine.path()},
        {{"float32", out, "--weights", empty}, "empty"},
        {{"float32", out, "--weights", cut}, "cut"},
        {{"float32", out, "--weights", not_weights}, "not_weights"},
        {{"float32", out, "--weights", renamed}, "tensor 'final_norm' is missing"},
        {{"float32", out, "--weights", nan}, "tensor 'final_norm' holds an infinite or NaN value"},
        {{"float32", mine.path("no/folder")}, "no/folder"},
        {{"float32", short_text, "--text", short_text}, "the trace would overwrite this input"},
        {{"float32", cut, "--weights", cut}, "the trace would overwrite this input"},
    };
    for (const Bad& bad : table) {
        check_refused(capture(bad.arguments), bad.message);
        CHECK(mine.names() == before);
    }
    CHECK(test::read_file(short_text) == std::string(96, 'x'));
}

TEST_CASE("train_tiny_lm: learns, and gives the same weights for the same text, seed and build") {
    const TempFolder mine;
    const auto train = [&](const std::string& output, const std::string& steps, std::vector<std::string> more) {
        std::vector<std::string> command{
            TRAIN_TINY_LM, output, PROJECT_FOLDER "/LICENSE", "--held-out", PROJECT_FOLDER "/LICENSE",
            "--steps",     steps};
        command.insert(command.end(), more.begin(), more.end());
        return test::run(command);
    };
    const Finished run = train(mine.path("learnt"), "10", {"--rate", "0.05"});
    CHECK(run.err == "");
    REQUIRE(run.status == 0);
    const std::size_t at = run.out.rfind("held-out loss ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(run.out.substr(at + 14)) < 5); // it starts at log(256) = 5.55
    CHECK(contains(run.out, "held-out loss of counting, order 3: "));
    CHECK(train(mine.path("a"), "1", {}).status == 0);
    CHECK(train(mine.path("b"), "1", {}).status == 0);
    CHECK(train(mine.path("c"), "1", {"--seed", "2"}).status == 0);
    CHECK(test::read_file(mine.path("a")) == test::read_file(mine.path("b")));
    CHECK(test::read_file(mine.path("a")) != test::read_file(mine.path("c")));
    CHECK(capture({"float32", mine.path("t"), "--weights", mine.path("learnt")}).status == 0);

    const std::string tiny = mine.write("tiny", std::string(128, 'x'));
    const auto before = mine.names();
    check_refused(test::run({TRAIN_TINY_LM, mine.path("d"), tiny}), "128 bytes", "train_tiny_lm");
    check_refused(test::run({TRAIN_TINY_LM, mine.path("d"), mine.path("none")}), "none", "train_tiny_lm");
    check_refused(test::run({TRAIN_TINY_LM, mine.path("d")}), "TEXT", "train_tiny_lm");
    check_refused(test::run({TRAIN_TINY_LM, tiny, tiny}), "overwrite", "train_tiny_lm");
    check_refused(train(mine.path("d"), "0", {}), "--steps", "train_tiny_lm");
    check_refused(train(mine.path("d"), "2", {"--rate", "nan"}), "--rate", "train_tiny_lm");
    CHECK(mine.names() == before);
}

TEST_CASE("capture_tiny_lm: --logits are those that the trace was made of") {
    const TempFolder made;
    const auto path = [&](const std::string& name) { return made.path(name); };
    for (const std::string arm : {"float32", "int4"}) {
        const Finished run =
            capture({arm, path(arm + ".safetensors"), "32", "12", "--logits", path(arm + "-logits.safetensors")});
        CHECK(run.status == 0);
        CHECK(run.err == "");
    }
    const auto figures = [](std::vector<std::string> command) {
        command.insert(command.end(), {"--quantiles", "linear", "--json", "-"});
        return json::parse(test::run(command).out);
    };
    const json traces = figures({COMPARE_TRACES, path("float32.safetensors"), path("int4.safetensors")}),
               full = figures({COMPARE_LOGITS, path("float32-logits.safetensors"), path("int4-logits.safetensors")});
    for (const char* key : {"positions", "chunks", "top1", "decided", "sweep", "accuracy", "mcnemar", "verdict"}) {
        CAPTURE(key);
        CHECK((full.at(key) == traces.at(key)));
    }
    CHECK(full.at("perplexity").at("ratio").get<double>() ==
          doctest::Approx(traces.at("perplexity").at("ratio").get<double>()).epsilon(1e-6));
    CHECK(full.at("vocabulary") == 256);
    CHECK(full.at("kl").at("mean").get<double>() > 0.01);
    CHECK(full.at("kl").at("infinite") == 0);

    const auto same = path("same");
    check_refused(capture({"float32", same, "--logits", same}), "is to hold the trace and the logits");
    const std::string trace = made.path("trace.tsv");
    check_refused(capture({"float32", trace, "--logits", made.path("no/such")}), "no/such");
    check_refused(capture({"float32", trace, "4", "2", "--logits", "/dev/full"}), "/dev/full");
    CHECK_FALSE(std::filesystem::exists(trace)); // both files or none
    check_refused(capture({"float32", "-"}), "standard output");
    check_refused(capture({"float32", trace, "--logits", "-"}), "standard output");
}

} // namespace test_capture

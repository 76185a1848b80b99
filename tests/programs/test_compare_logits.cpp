#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "io/logits_bytes.hpp"
#include "io/safetensors_bytes.hpp"
#include "programs/run_program.hpp"
#include "sanitizers.hpp"

namespace test_compare_logits {

using nlohmann::json;
using test::contains;
using test::Finished;
using test::read_file;
using test::TempFolder;
using testing::npy;
using testing::packed;

namespace {

constexpr std::size_t rows = 24, vocabulary = 32;

/// Logits that every type holds exactly: eighths. The candidate's differ by a few eighths, its best tokens mostly not.
std::vector<float> eighths(bool candidate) {
    std::vector<float> values(rows * vocabulary);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t t = 0; t < vocabulary; ++t) {
            const auto wave = static_cast<float>((i * 37 + t * 61) % 53) / 8;
            const auto noise = static_cast<float>((i * 29 + t * 17) % 9) / 8 - 0.5f;
            values[i * vocabulary + t] = candidate ? wave + noise : wave;
        }
    }
    return values;
}
const std::string shape = "(24, 32)";

std::vector<std::int32_t> targets() {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < rows; ++i) { tokens.push_back(static_cast<std::int32_t>(i * 5 % vocabulary)); }
    return tokens;
}

/// Floats as bfloat16, whose upper halves they are.
std::string as_bfloat16(const std::vector<float>& values) {
    std::vector<std::uint16_t> halves;
    for (const float x : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &x, 4);
        REQUIRE((bits & 0xffff) == 0);
        halves.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    return packed(halves);
}

/// As the usual writers leave it: the data begin at a multiple of 8.
std::string aligned_safetensors(const std::vector<testing::ForeignTensor>& tensors) {
    for (std::size_t spaces = 0; spaces < 8; ++spaces) {
        std::string bytes = testing::foreign_file(tensors, "{}", spaces);
        if (static_cast<unsigned char>(bytes[0]) % 8 == 0) { return bytes; }
    }
    return "";
}

struct Files {
    TempFolder folder;
    std::string reference = folder.write("a.npy", npy("<f4", shape, packed(eighths(false)))),
                candidate = folder.write("b.npy", npy("<f4", shape, packed(eighths(true)))),
                tokens = folder.write("t.npy", npy("<i4", "(24,)", packed(targets())));
};

Finished run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), COMPARE_LOGITS);
    return test::run(arguments);
}

void check_refused(const Finished& run, const std::string& says, const std::string& program = "compare_logits") {
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(run.err.starts_with(program + ": "));
    CHECK(test::count_lines(run.err) == 1);
    CAPTURE(run.err);
    CHECK(contains(run.err, says));
}

json figures(std::vector<std::string> arguments);

TEST_CASE("compare_logits: --max-kl is held against the interval of the mean") {
    const Files files;
    const std::vector<std::string> arms{files.reference,    files.candidate, "--targets", files.tokens,
                                        "--max-mismatches", "1000",          "--decided", "0"};
    const auto status = [&](const std::string& most) {
        std::vector<std::string> arguments = arms;
        arguments.insert(arguments.end(), {"--max-kl", most});
        return run(arguments).status;
    };
    const json interval = figures(arms)["kl"]["interval"];
    const double lo = interval[0].get<double>(), hi = interval[1].get<double>();
    REQUIRE(lo > 1e-3);
    CHECK(status(std::to_string(hi + 1e-5)) == 0);
    CHECK(status(std::to_string(hi - 1e-5)) == 3);
    CHECK(status(std::to_string(lo - 1e-5)) == 1);
    for (const std::string bad : {"", "x", "-1", "nan", "inf"}) {
        CAPTURE(bad);
        std::vector<std::string> arguments = arms;
        arguments.insert(arguments.end(), {"--max-kl", bad});
        check_refused(run(arguments), "--max-kl");
    }
}

json figures(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "-"});
    const Finished finished = run(arguments);
    CAPTURE(finished.err);
    REQUIRE(finished.status != 2);
    return json::parse(finished.out);
}

/// Without what names the files.
json anonymous(json figures) {
    figures.erase("reference");
    figures.erase("candidate");
    return figures;
}

} // namespace

TEST_CASE("compare_logits: reports in three formats, verdict as exit status") {
    const Files f;
    const Finished text = run({f.reference, f.candidate, "--targets", f.tokens, "--json", f.folder.path("r.json"),
                               "--markdown", f.folder.path("r.md")});
    CHECK(text.err == "");
    const json all = json::parse(read_file(f.folder.path("r.json")));
    CHECK(text.status == all.at("exit_status").get<int>());
    CHECK(contains(text.out, "24 positions in 1 chunk, vocabulary of 32 tokens"));
    CHECK(contains(text.out, "KL(P || Q)"));
    CHECK(contains(text.out, "Perplexity on the corpus tokens"));
    CHECK(contains(text.out, "Probability of the corpus token"));
    CHECK(contains(read_file(f.folder.path("r.md")), "| KL(P \\|\\| Q) |"));
    CHECK(all.at("positions") == 24);
    CHECK(all.at("vocabulary") == 32);
    // By the definition, in the order of the file.
    const auto a = eighths(false), b = eighths(true);
    double kl = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        double sum_p = 0, sum_q = 0, cross = 0;
        for (std::size_t t = 0; t < vocabulary; ++t) {
            const double x = a[i * vocabulary + t], y = b[i * vocabulary + t];
            sum_p += std::exp(x);
            sum_q += std::exp(y);
            cross += std::exp(x) * (x - y);
        }
        kl += cross / sum_p - std::log(sum_p) + std::log(sum_q);
    }
    CHECK(all.at("kl").at("mean").get<double>() == doctest::Approx(kl / rows).epsilon(1e-5));
    CHECK(run({f.reference, f.reference}).status == 0);
    CHECK(run({f.reference, f.candidate, "--decided", "100"}).status == 3);
    CHECK(run({f.reference, f.candidate, "--decided", "0"}).status == 1);
    CHECK(run({f.reference, f.candidate, "-q", "--decided", "0"}).out == "");
}

TEST_CASE("compare_logits: all formats and types of the same logits give the same figures") {
    const Files f;
    const json expected = anonymous(figures({f.reference, f.candidate, "--targets", f.tokens}));
    const auto write = [&](bool candidate, const std::string& name, const std::string& type) {
        const auto values = eighths(candidate);
        const std::string suffix = candidate ? "2" : "1";
        if (type == "BF16") {
            return f.folder.write(name + suffix,
                                  aligned_safetensors({{"logits", type, {24, 32}, as_bfloat16(values)}}));
        }
        if (type == "F64") {
            const std::vector<double> wide(values.begin(), values.end());
            return f.folder.write(name + suffix, npy("<f8", shape, packed(wide)));
        }
        return f.folder.write(name + suffix, aligned_safetensors({{"logits", type, {24, 32}, packed(values)}}));
    };
    std::map<std::string, std::pair<std::string, std::string>> files;
    for (const std::string type : {"BF16", "F64", "F32"}) {
        files[type] = {write(false, type, type), write(true, type, type)};
    }
    for (const auto& [ours, reference] : files) {
        for (const auto& [theirs, candidate] : files) {
            const std::string types = ours + " and " + theirs;
            CAPTURE(types);
            const json got = anonymous(figures({reference.first, candidate.second, "--targets", f.tokens}));
            CHECK(got.at("sweep") == expected.at("sweep"));
            CHECK(got.at("ranks") == expected.at("ranks"));
            for (const char* key : {"kl", "reverse_kl", "js", "total_variation", "delta_p"}) {
                CHECK(got.at(key).at("mean").get<double>() ==
                      doctest::Approx(expected.at(key).at("mean").get<double>()).epsilon(1e-5));
            }
        }
    }
}

TEST_CASE("compare_logits: shards, tensors by name, targets from any file, chunks") {
    const Files f;
    const json expected = figures({f.reference, f.candidate, "--targets", f.tokens, "--chunk-rows", "6"});
    CHECK(expected.at("chunks") == 4);
    const auto values = eighths(false);
    const std::vector<float> first(values.begin(), values.begin() + 10 * vocabulary),
        second(values.begin() + 10 * vocabulary, values.begin() + 11 * vocabulary),
        third(values.begin() + 11 * vocabulary, values.end());
    const std::vector<std::string> shards{f.folder.write("s1", npy("<f4", "(10, 32)", packed(first))),
                                          f.folder.write("s2", npy("<f4", "(1, 32)", packed(second))),
                                          f.folder.write("s3", npy("<f4", "(13, 32)", packed(third)))};
    json got = figures({shards[0], f.candidate, "--targets", f.tokens, "--chunk-rows", "6", "--reference-shard",
                        shards[1], "--reference-shard", shards[2]});
    CHECK((anonymous(got) == anonymous(expected)));

    // [batch, n, V] says the chunks; a file of several tensors, the name.
    const auto batched = f.folder.write("batched", npy("<f4", "(4, 6, 32)", packed(values)));
    CHECK((anonymous(figures({batched, f.candidate, "--targets", f.tokens})) == anonymous(expected)));
    const auto both = f.folder.write("both", aligned_safetensors({{"ours", "F32", {24, 32}, packed(values)},
                                                                  {"theirs", "F32", {24, 32}, packed(eighths(true))},
                                                                  {"targets", "I32", {24}, packed(targets())}}));
    got = figures({both, both, "--reference-tensor", "ours", "--candidate-tensor", "theirs", "--chunk-rows", "6"});
    CHECK((anonymous(got) == anonymous(expected)));
    check_refused(run({both, f.candidate}), "both: ");
    check_refused(run({both, f.candidate, "--reference-tensor", "no"}), "'no'");

    // What is given goes before what files say.
    const auto other_batches = f.folder.write("other", npy("<f4", "(2, 12, 32)", packed(eighths(true))));
    check_refused(run({batched, other_batches}), "at row 6 the chunk is 1 in " + batched + ", 0 in " + other_batches);
    CHECK((anonymous(figures({batched, other_batches, "--targets", f.tokens, "--chunk-rows", "6"})) ==
           anonymous(expected)));

    // A trace as targets also says chunk and position.
    const auto trace = f.folder.path("trace.tsv");
    const Finished made = test::run({LOGITS_TO_TRACE, f.reference, trace, "--targets", f.tokens, "--chunk-rows", "6"});
    CHECK(made.err == "");
    CHECK((anonymous(figures({f.reference, f.candidate, "--targets", trace})) == anonymous(expected)));
    const std::vector<std::int64_t> wide(rows, 3);
    const auto others = f.folder.write("others.npy", npy("<i8", "(24,)", packed(wide)));
    check_refused(run({both, f.candidate, "--reference-tensor", "ours", "--targets", others}),
                  "at row 0 the target is 3 in " + others + ", 0 in " + both);
}

TEST_CASE("compare_logits: without targets") {
    const Files f;
    const Finished text = run({f.reference, f.candidate});
    CHECK(contains(text.out, "No targets are known"));
    CHECK(text.err == "");
    const json all = figures({f.reference, f.candidate});
    CHECK(all.at("perplexity").is_null());
    CHECK(all.at("delta_p").is_null());
    CHECK(all.at("kl").at("mean").is_number());
}

TEST_CASE("compare_logits: a .kld reference, its censored targets") {
    const TempFolder folder;
    const auto base = folder.write("base.kld", testing::small_kld());
    // Rows of three tokens each, of the four positions that the file has.
    const std::vector<float> logits{3, -1, 0, 0, 1, 2, 0.5, 0.25, 0, 1, 0.5, -3};
    const auto candidate = folder.write("b.npy", npy("<f4", "(4, 3)", packed(logits)));
    const json all = figures({base, candidate, "--top-k", "2"});
    CHECK(all.at("positions") == 4);
    CHECK(all.at("chunks") == 2);
    const auto censored = all.at("censored_targets").get<int>();
    CHECK(censored == 2); // the targets 1, 0, 0, 1 are stored as 0, 1, 0, 65000
    CHECK(all.at("without_censored").at("positions") == 4 - censored);
    CHECK(contains(run({base, candidate}).out, "Censored targets"));
    const json conventional = figures({base, candidate, "--conventions", "llama.cpp"});
    CHECK(conventional.at("conventions").at("as_stored") == true);
    CHECK(conventional.at("conventions").at("kl_skip_below") == -16);
    const json by_hand = figures({base, candidate, "--as-stored", "--single-precision", "--kl-skip-below", "-16",
                                  "--quantiles", "linear-float"});
    CHECK((by_hand == conventional));
    const json own_rule = figures({base, candidate, "--conventions", "llama.cpp", "--quantiles", "floor-index"});
    CHECK(own_rule.at("kl").at("p25") != conventional.at("kl").at("p25"));
    CHECK(all.at("kl").at("mean") != conventional.at("kl").at("mean"));
    const auto trace = folder.path("base.tsv");
    const Finished made = test::run({LOGITS_TO_TRACE, base, trace, "--top-k", "2"});
    CHECK(made.status == 0);
    CHECK(made.err == "logits_to_trace: warning: 2 of 4 targets are censored: their NLL is at least what the trace "
                      "will say\n");
    CHECK(contains(read_file(trace), "# logits\tlog_probabilities\n# censored_targets\t2\n"));
    const auto other = folder.path("other.tsv");
    CHECK(test::run({LOGITS_TO_TRACE, candidate, other, "--top-k", "2", "--targets", trace}).status == 0);
    CHECK(contains(test::run({COMPARE_TRACES, trace, other}).out,
                   "not like for like: logits is 'log_probabilities' in the reference, not stated in the candidate"));
    const json itself = figures({base, base});
    CHECK(itself.at("verdict") == "identical");
    CHECK(itself.at("identical_data") == true);
    CHECK(itself.at("perplexity").at("ratio") == 1);
}

TEST_CASE("compare_logits: bad input is one line and status 2, and leaves no file") {
    const Files f;
    const auto path = [&](const char* name) { return f.folder.path(name); };
    auto values = eighths(true);
    values[5 * vocabulary + 3] = std::numeric_limits<float>::quiet_NaN();
    const auto broken = f.folder.write("nan.npy", npy("<f4", shape, packed(values)));
    const auto report = path("report.json");
    check_refused(run({f.reference, broken, "--json", report}),
                  broken + ": row 5 (chunk 0, pos 5): the logit of token 3 is NaN");
    const Finished skipped = run({f.reference, broken, "--skip-non-finite"});
    CHECK(skipped.status != 2);
    CHECK(contains(skipped.out, "1 position with non-finite values left out (reference 0, candidate 1)"));
    check_refused(run({f.reference, broken, "--skip-non-finite", "--strict"}), "the candidate has non-finite values");

    const auto narrow = f.folder.write("narrow.npy", npy("<f4", "(48, 16)", packed(eighths(true))));
    check_refused(run({f.reference, narrow, "--json", report}), "vocabularies of different sizes");
    const auto shorter = f.folder.write("short.npy", npy("<f4", "(23, 32)", packed(eighths(true)).substr(32 * 4)));
    check_refused(run({f.reference, shorter}), "different numbers of rows: the reference has 24, the candidate 23");
    check_refused(run({f.reference, path("none.npy")}), "cannot open");
    check_refused(run({f.reference, f.tokens}), "cannot be logits");
    check_refused(run({f.reference, f.candidate, "--targets", f.candidate}), f.candidate);
    check_refused(run({f.reference, f.candidate, "--targets", shorter}), shorter);
    check_refused(run({f.reference}), "CANDIDATE is required");
    check_refused(run({f.reference, f.candidate, "--candidate-tensor", "x"}), "an .npy file has no tensor called");
    check_refused(run({f.reference, f.candidate, "--targets", f.tokens, "--targets-tensor", "x"}),
                  "only safetensors files have tensors by name");
    const auto trace = path("trace.safetensors");
    CHECK(test::run({LOGITS_TO_TRACE, f.reference, trace, "--targets", f.tokens}).status == 0);
    check_refused(run({trace, trace}), trace + ": a trace, not full logits");
    check_refused(run({f.reference, f.candidate, "--vocabulary", "33"}), "the first 33 tokens of a vocabulary of 32");
    CHECK(contains(run({f.reference, f.candidate, "--vocabulary", "31"}).out, "vocabulary of 31 tokens"));
    check_refused(run({f.reference, f.candidate, "--top-k", "1"}), "--top-k");
    check_refused(run({f.reference, f.candidate, "--top-k", "x"}), "--top-k: 'x' is not a whole number");
    check_refused(run({f.reference, f.candidate, "--threads", "-1"}), "--threads");
    check_refused(run({f.reference, f.candidate, "--chunk-rows", "0"}), "--chunk-rows: a chunk of 0 rows");
    check_refused(run({f.reference, f.candidate, "--kl-skip-below", "nan"}), "--kl-skip-below");
    check_refused(run({f.reference, f.candidate, "--conventions", "other"}), "--conventions");
    check_refused(run({f.reference, f.candidate, "--targets-tensor", "t"}), "--targets-tensor goes with --targets");
    check_refused(run({f.reference, f.candidate, "--json", f.reference}), "would overwrite this input");
    check_refused(run({f.reference, f.candidate, "--targets", f.tokens, "--json", f.tokens}), "would overwrite");
    CHECK(read_file(f.reference) == npy("<f4", shape, packed(eighths(false))));
    CHECK(f.folder.names().count("report.json") == 0);
    // One file by two names, neither of which is there.
    check_refused(test::run({"sh", "-c", "cd \"$0\" && exec \"$@\"", f.folder.path(), COMPARE_LOGITS, f.reference,
                             f.candidate, "--json", "o", "--markdown", "./o"}),
                  "--json and --markdown name the same file");
    check_refused(run({f.reference, f.candidate, "--bootstrap", "4294967295"}), "--bootstrap: at most 1000000");
    CHECK(run({f.reference, f.candidate, "--threads", "1000"}).err == "");
    CHECK(run({"--help"}).status == 0);
    CHECK(contains(run({"--help"}).out, "Exit status"));
    CHECK(contains(run({"--version"}).out, "compare_logits "));
}

TEST_CASE("compare_logits: files larger than what is kept of them in memory") {
    // Sparse: rows of zeros, of which no byte is on the disk.
    const TempFolder folder;
    constexpr std::size_t bytes = std::size_t{1000} * 100'000 * 4;
    std::vector<std::string> files;
    for (const char* name : {"a.npy", "b.npy"}) {
        files.push_back(folder.write(name, npy("<f4", "(1000, 100000)", "")));
        std::filesystem::resize_file(files.back(), std::filesystem::file_size(files.back()) + bytes);
    }
    const Finished large = run({files[0], files[1], "--json", "-"});
    CHECK(large.status == 0);
    CHECK(json::parse(large.out).at("kl").at("max") == 0);
    if (large.peak_bytes == 0 || testing::has_shadow_memory) {
        MESSAGE("SKIPPED: the peak of memory is not known here");
        return;
    }
    const Files small;
    const std::size_t base = run({small.reference, small.candidate}).peak_bytes;
    CAPTURE(base);
    CHECK(large.peak_bytes < base + (std::size_t{128} << 20)); // of 800 MB
}

TEST_CASE("logits_to_trace: the traces of two arms compare as their logits do") {
    const Files f;
    const auto make = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), LOGITS_TO_TRACE);
        return test::run(arguments);
    };
    const json full = figures({f.reference, f.candidate, "--targets", f.tokens, "--chunk-rows", "6"});
    for (const std::string extension : {".tsv", ".safetensors"}) {
        const auto a = f.folder.path("a" + extension), b = f.folder.path("b" + extension);
        const Finished first =
            make({f.reference, a, "--targets", f.tokens, "--chunk-rows", "6", "--model", "m", "--device", "d"});
        CHECK(first.status == 0);
        CHECK(first.out == "");
        CHECK(first.err == "");
        CHECK(make({f.candidate, b, "--targets", f.tokens, "--chunk-rows", "6"}).status == 0);
        const Finished compared = test::run({COMPARE_TRACES, a, b, "--json", "-"});
        CHECK(compared.err == "");
        const json traces = json::parse(compared.out);
        for (const char* key : {"positions", "chunks", "decided", "sweep", "verdict", "accuracy", "mcnemar"}) {
            CAPTURE(key);
            CHECK((traces.at(key) == full.at(key)));
        }
        CHECK(traces.at("nll_difference").at("mean").get<double>() ==
              doctest::Approx(full.at("nll_difference").at("mean").get<double>()).epsilon(1e-4));
        CHECK(traces.at("reference").at("metadata").at("model") == "m");
    }
    const Finished printed = make({f.reference, "-", "--targets", f.tokens, "--top-k", "3"});
    CHECK(printed.status == 0);
    CHECK(contains(printed.out, "# chunks\t1\tchunk_tokens\t24\ttopk\t3"));
    CHECK(test::count_lines(printed.out) == rows + 2);

    const auto refuse = [&](std::vector<std::string> arguments, const std::string& says) {
        const auto before = f.folder.names();
        check_refused(make(std::move(arguments)), says, "logits_to_trace");
        CHECK(f.folder.names() == before);
    };
    const auto out = f.folder.path("out.tsv");
    refuse({f.reference, out}, "holds no targets, and a trace needs them: give --targets");
    refuse({f.reference, f.reference, "--targets", f.tokens}, "is an input");
    refuse({f.reference, f.tokens, "--targets", f.tokens}, "is an input");
    refuse({f.reference, out, "--targets", f.tokens, "--top-k", "33"}, "the best 33 of 32 logits");
    refuse({f.reference, out, "--targets", f.tokens, "--top-k", "1"}, "top_k is 1");
    refuse({f.reference, "-", "--targets", f.tokens, "--to", "binary"}, "binary output needs a file");
    auto values = eighths(true);
    values[5 * vocabulary + 3] = std::numeric_limits<float>::infinity();
    const auto broken = f.folder.write("inf.npy", npy("<f4", shape, packed(values)));
    refuse({broken, out, "--targets", f.tokens}, "inf.npy: chunk 0, pos 5: the logit of token 3 is +infinity");
    CHECK(make({broken, out, "--targets", f.tokens, "--keep-non-finite"}).status == 0);
    CHECK(contains(read_file(out), "nan"));
}

} // namespace test_compare_logits

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "io/logits_bytes.hpp"
#include "programs/run_program.hpp"

namespace test_environment {

/// The programs where files are not files on a healthy disk: pipes, standard input, names of any bytes, files that
/// shrink, output that goes nowhere.
namespace {

using nlohmann::json;
using test::contains;
using test::Finished;
using test::TempFolder;

const std::string reference_path = TEST_DATA "/trigram_float32.tsv", candidate_path = TEST_DATA "/trigram_int8.tsv";

void check_refused(const Finished& run, const std::string& reason) {
    CHECK(run.status == 2);
    CHECK(test::count_lines(run.err) == 1);
    CAPTURE(run.err);
    CHECK(contains(run.err, reason));
}

/// Two rows of logits over eight tokens, as an .npy file.
std::string small_logits() {
    std::vector<float> values(16);
    for (std::size_t i = 0; i < values.size(); ++i) { values[i] = static_cast<float>(i * 5 % 8); }
    return testing::npy("<f4", "(2, 8)", testing::packed(values));
}

bool has_bash() { return test::run({"bash", "-c", "exit 0"}).status == 0; }

std::string quoted(const std::string& word) { return "'" + test::replaced(word, "'", "'\\''") + "'"; }

} // namespace

TEST_CASE("help and version that cannot be printed are errors") {
    if (!std::filesystem::exists("/dev/full")) { return; }
    for (const std::string program :
         {COMPARE_TRACES, CORRECTNESS_MATRIX, COMPARE_LOGITS, LOGITS_TO_TRACE, CONVERT_TRACE}) {
        for (const std::string option : {"--help", "--version"}) {
            CAPTURE(program);
            CAPTURE(option);
            check_refused(test::run({program, option}, {.environment = {}, .terminal = false, .out_file = "/dev/full"}),
                          "cannot write to standard output");
            CHECK(test::run({program, option}).status == 0);
        }
    }
}

TEST_CASE("every program reads standard input and pipes, and refuses the device that standard input may be") {
    if (!has_bash()) {
        MESSAGE("SKIPPED: no bash");
        return;
    }
    TempFolder folder;
    const auto logits = folder.write("a.npy", small_logits());
    const auto targets =
        folder.write("t.npy", testing::npy("<i4", "(2,)", testing::packed(std::vector<std::int32_t>{1, 2})));
    const auto manifest = folder.write("pairs.tsv", "name\ttag\treference\tcandidate\nm\t\t" + reference_path + "\t" +
                                                        candidate_path + "\n");
    const auto piped = [](const std::string& command, const std::string& input) {
        return test::run({"bash", "-c", "cat " + quoted(input) + " | " + command});
    };
    const auto traces = piped(COMPARE_TRACES " /dev/stdin " + quoted(candidate_path), reference_path);
    CHECK(traces.status == 0);
    CHECK(traces.err == "");
    CHECK(piped(COMPARE_LOGITS " /dev/stdin " + quoted(logits), logits).status == 0);
    CHECK(piped(COMPARE_LOGITS " " + quoted(logits) + " " + quoted(logits) + " --targets /dev/stdin", targets).status ==
          0);
    CHECK(piped(LOGITS_TO_TRACE " /dev/stdin - --targets " + quoted(targets), logits).status == 0);
    const auto converted = piped(CONVERT_TRACE " /dev/stdin -", reference_path);
    CHECK(converted.status == 0);
    CHECK(converted.out == test::read_file(reference_path));
    CHECK(piped(CONVERT_TRACE " --info /dev/stdin", reference_path).status == 0);
    CHECK(piped(CORRECTNESS_MATRIX " /dev/stdin", manifest).status == 0);

    check_refused(piped(COMPARE_TRACES " /dev/stdin /dev/stdin", reference_path),
                  "the file is empty"); // it is read once
    check_refused(test::run({COMPARE_TRACES, "/dev/stdin", candidate_path}), "is a device, not a file");
    check_refused(test::run({COMPARE_LOGITS, "/dev/stdin", logits}), "is a device, not a file");
    check_refused(test::run({CORRECTNESS_MATRIX, "/dev/stdin"}), "is a device, not a file");
    // An endless pipe of another format: its first bytes are enough.
    for (const std::string program : {COMPARE_TRACES, COMPARE_LOGITS}) {
        check_refused(test::run({"bash", "-c", "exec " + program + " <(cat /dev/zero) " + quoted(logits)}),
                      "the file begins");
    }
}

TEST_CASE("a binary trace that another program shortens while it is compared is an error, never a figure") {
    TempFolder folder;
    // Large enough that its columns lie on pages of their own; read in place.
    std::vector<std::string> positions;
    for (int i = 0; i < 4000; ++i) { positions.push_back("1,2,3 4.5,3.5,2.5 0.5"); }
    const auto text = folder.write("t.tsv", test::small_trace(positions));
    const std::string pipe = folder.path("pipe");
    for (const bool by_little : {true, false}) {
        CAPTURE(by_little);
        const auto binary = folder.path("t.safetensors");
        REQUIRE(test::run({CONVERT_TRACE, text, binary}).status == 0);
        REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
        // The program opens the pipe when it has read the binary trace: then that is shortened, and the text follows.
        std::thread writer([&] {
            std::ofstream stream(pipe, std::ios::binary);
            const auto size = std::filesystem::file_size(binary);
            std::filesystem::resize_file(binary, by_little ? size - 4 : 10);
            stream << test::read_file(text);
        });
        const Finished run = test::run({COMPARE_TRACES, binary, pipe, "--json", folder.path("report.json")});
        writer.join();
        check_refused(run, "became shorter while it was read");
        CHECK_FALSE(std::filesystem::exists(folder.path("report.json")));
        std::filesystem::remove(pipe);
    }
}

TEST_CASE("compare_logits and correctness_matrix: names of any bytes leave their reports whole") {
    TempFolder folder;
    for (const std::string name :
         {"with spaces", "Zürich モデル", "bad\xff\xfe", "esc\x1b[31m", "quote\"'\\", "two\nlines"}) {
        CAPTURE(name);
        const auto logits = folder.write(name + ".npy", small_logits());
        const Finished run = test::run({COMPARE_LOGITS, logits, logits, "--json", "-"});
        CHECK(run.status == 0);
        const json report = json::parse(run.out);
        CHECK(report["verdict"] == "identical");
        CHECK(test::is_utf8(run.out));
        for (const char* format : {"--markdown", "--color=never"}) {
            std::vector<std::string> command{COMPARE_LOGITS, logits, logits, format};
            if (std::string(format) == "--markdown") { command.push_back("-"); }
            const Finished shown = test::run(command);
            CHECK(shown.status == 0);
            CHECK(test::is_utf8(shown.out));
            CHECK_FALSE(contains(shown.out, "\x1b"));
        }
        check_refused(test::run({COMPARE_LOGITS, logits + "?", logits}), "cannot open");
        check_refused(test::run({LOGITS_TO_TRACE, logits, folder.path("none/" + name)}), "holds no targets");

        if (contains(name, "\n")) { continue; }
        const auto manifest = folder.write(name + ".list", "name\ttag\treference\tcandidate\n" + name + "\t" + name +
                                                               "\t" + reference_path + "\t" + name + ".missing\n");
        const Finished matrix = test::run({CORRECTNESS_MATRIX, manifest, "--json", "-"});
        CHECK(matrix.status == 2);
        CHECK(test::is_utf8(matrix.out));
        CHECK(json::accept(matrix.out));
    }
}

} // namespace test_environment

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/version.hpp"
#include "programs/run_program.hpp"

namespace test_convert_trace {

using test::contains;
using test::Finished;
using test::read_file;
using test::TempFolder;

namespace {

const std::string example = TEST_DATA "/trigram_float32.tsv", other_example = TEST_DATA "/trigram_int8.tsv";

Finished convert(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), CONVERT_TRACE);
    return test::run(arguments);
}

/// Status 2, one line that begins with the program's name, nothing on standard output.
void check_refused(const Finished& run, const std::string& says) {
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(run.err.starts_with("convert_trace: "));
    CHECK(test::count_lines(run.err) == 1);
    CAPTURE(run.err);
    CHECK(contains(run.err, says));
}

void check_silent(const Finished& run) {
    CHECK(run.status == 0);
    CHECK(run.out == "");
    CHECK(run.err == "");
}

const std::string chatty = "[Model] Loading...\n50 %\n" + read_file(example);

} // namespace

TEST_CASE("convert_trace: to binary and back is the same bytes") {
    TempFolder folder;
    for (const std::string& text : {read_file(example), chatty}) {
        const auto path = folder.write("t.tsv", text);
        check_silent(convert({path, folder.path("t.safetensors")}));
        check_silent(convert({folder.path("t.safetensors"), folder.path("back.tsv")}));
        CHECK((read_file(folder.path("back.tsv")) == text));
        const Finished printed = convert({folder.path("t.safetensors"), "-"});
        CHECK(printed.status == 0);
        CHECK((printed.out == text));
    }
    CHECK(folder.names() == std::set<std::string>{"t.tsv", "t.safetensors", "back.tsv"});
}

TEST_CASE("convert_trace: the format of the output is told by its name, or by --to") {
    TempFolder folder;
    check_silent(convert({example, folder.path("a.safetensors")}));
    check_silent(convert({example, folder.path("b.bin"), "--to", "binary"}));
    check_silent(convert({example, folder.path("c.safetensors"), "--to", "text"}));
    check_silent(convert({example, folder.path("d.trace")}));
    CHECK((read_file(folder.path("a.safetensors")) == read_file(folder.path("b.bin"))));
    CHECK((read_file(folder.path("c.safetensors")) == read_file(example)));
    CHECK((read_file(folder.path("d.trace")) == read_file(example)));
    CHECK(read_file(folder.path("a.safetensors"))[8] == '{');
}

TEST_CASE("convert_trace: --float halves the values, and a trace of floats stays one") {
    TempFolder folder;
    const auto path = [&](const char* name) { return folder.path(name); };
    check_silent(convert({example, path("d.safetensors")}));
    check_silent(convert({example, path("f.safetensors"), "--float"}));
    const std::size_t wide = read_file(path("d.safetensors")).size(), narrow = read_file(path("f.safetensors")).size();
    CHECK(narrow + 320 * 9 * 4 - 128 < wide); // 320 positions of an NLL and 8 logits, less the headers' difference
    CHECK(contains(read_file(path("f.safetensors")), "\"F32\""));
    check_silent(convert({path("f.safetensors"), path("g.safetensors")}));
    CHECK((read_file(path("g.safetensors")) == read_file(path("f.safetensors"))));
    check_silent(convert({path("d.safetensors"), path("e.safetensors")}));
    CHECK((read_file(path("e.safetensors")) == read_file(path("d.safetensors"))));
    const auto huge = folder.write("huge.tsv", "0\t0\t5\t1.0\t7,8\t1e300,1.0\n");
    check_refused(convert({huge, path("h.safetensors"), "--float"}), "non-finite logit of rank 1 at position 0");
    check_refused(convert({example, path("x.tsv"), "--float"}), "--float goes with binary output");
    CHECK_FALSE(folder.names().contains("h.safetensors"));
}

TEST_CASE("convert_trace: --recover") {
    TempFolder folder;
    const std::string text = read_file(example);
    const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
    const auto killed = folder.write("killed.tsv", text.substr(0, last + 30));
    check_refused(convert({killed, folder.path("x.tsv")}), "killed.tsv:327:");
    const Finished run = convert({killed, folder.path("whole.tsv"), "--recover"});
    CHECK(run.status == 0);
    // Its metadata announce more positions than are left: two warnings.
    CHECK(contains(run.err,
                   "convert_trace: warning: " + killed + ":327: the last line has no newline and was dropped: '"));
    CHECK((read_file(folder.path("whole.tsv")) == text.substr(0, last)));
    CHECK_FALSE(folder.names().contains("x.tsv"));
}

TEST_CASE("convert_trace: --info says what a trace is") {
    TempFolder folder;
    const auto path = folder.write("t.tsv", "loading\n# model\ta model\tdevice\tsome GPU\n# remark \x1b[31m\n"
                                            "0\t0\t10\t1.500000\t10,7\t3.0,0.5\n0\t1\t11\t0.500000\t7,11\t3.5,3.0\n"
                                            "4\t0\t12\t1.000000\t7,11\t3.5,3.0\n");
    const Finished text = convert({"--info", path});
    CHECK(text.status == 0);
    CHECK(text.err == "");
    CHECK(text.out == "file        " + path + "\nformat      text trace\nsize        " +
                          std::to_string(std::filesystem::file_size(path)) +
                          " bytes\nholds       3 positions in 2 chunks, 2 candidates each\nmean NLL    1.000000 nats\n"
                          "perplexity  2.7183\nskipped     1 line ahead of the data\n"
                          "metadata    model  a model  device  some GPU\n            remark ?[31m\n");
    const auto plain = folder.write("p.tsv", "# model\ta model\n0\t0\t10\t1.500000\t10,7\t3.0,0.5\n");
    check_silent(convert({plain, folder.path("p.safetensors"), "--float"}));
    const Finished binary = convert({"--info", folder.path("p.safetensors")});
    CHECK(contains(binary.out, "format      binary trace (safetensors), NLLs F32, logits F32\nsize        "));
    CHECK(contains(binary.out, "holds       1 position in 1 chunk, 2 candidates each\n"));
    CHECK(contains(binary.out, "metadata    model  a model\n"));
}

TEST_CASE("convert_trace: --check") {
    TempFolder folder;
    const Finished good = convert({"--check", example});
    CHECK(good.status == 0);
    CHECK(good.err == "");
    CHECK(good.out == example + ": ok, text trace: 320 positions in 8 chunks, 8 candidates each, 0 warnings\n");
    check_silent(convert({example, folder.path("t.safetensors")}));
    std::string bytes = read_file(folder.path("t.safetensors"));
    CHECK(contains(convert({"--check", folder.path("t.safetensors")}).out,
                   ": ok, binary trace (safetensors), NLLs F64, logits F64: 320 positions"));
    check_refused(convert({"--check", folder.write("cut.safetensors", bytes.substr(0, bytes.size() - 1))}),
                  "cut.safetensors: safetensors header: tensor 'top_ids': data_offsets");
    bytes.back() = '\x80'; // the sign of the last token id
    check_refused(convert({"--check", folder.write("bad.safetensors", bytes)}),
                  "bad.safetensors: tensor 'top_ids': position 319 (chunk 7, pos 39): negative token id (rank 8)");
    check_refused(convert({"--check", folder.write("x", std::string("\x7f"
                                                                    "ELF\0\1",
                                                                    6))}),
                  "x: neither a text trace (tab-separated lines) nor a binary trace (safetensors): control byte");
    check_refused(convert({"--check", folder.path("none")}), "none: cannot open");
    const Finished warned =
        convert({"--check", folder.write("w.tsv", "# chunks\t9\tchunk_tokens\t9\n0\t0\t10\t1.5\t10,7\t3.0,0.5\n")});
    CHECK(warned.status == 0);
    CHECK(contains(warned.out, "1 warning\n"));
    CHECK(contains(warned.err, "convert_trace: warning: "));
    CHECK(contains(warned.err, "announces 81"));
}

TEST_CASE("convert_trace: bad usage, and an output that is the input") {
    TempFolder folder;
    const auto path = folder.write("t.tsv", read_file(example));
    const std::string how = "give INPUT and OUTPUT, or --info FILE, or --check FILE (see --help)";
    check_refused(convert({}), how);
    check_refused(convert({path}), how);
    check_refused(convert({path, folder.path("o"), "--info", path}), how);
    check_refused(convert({"--info", path, "--check", path}), how);
    check_refused(convert({"--info", path, "--recover"}), "--float, --recover and --to go with INPUT and OUTPUT");
    check_refused(convert({path, folder.path("o"), "--to", "json"}), "--to");
    check_refused(convert({path, "-", "--to", "binary"}), "binary output needs a file");
    check_refused(convert({path, path}), "t.tsv: is the input");
    check_refused(convert({path, folder.path("./t.tsv"), "--to", "binary"}), "is the input");
    std::filesystem::create_symlink(path, folder.path("link.tsv"));
    check_refused(convert({path, folder.path("link.tsv")}), "link.tsv: is the input");
    check_refused(convert({path, folder.path("no/such/folder.tsv")}), "cannot write");
    CHECK((read_file(path) == read_file(example)));
    CHECK(folder.names() == std::set<std::string>{"t.tsv", "link.tsv"});
    CHECK(convert({"--help"}).status == 0);
    CHECK(contains(convert({"--help"}).out, "six decimals"));
    CHECK(convert({"--version"}).out == "convert_trace " LOGITSTAT_VERSION_STRING "\n");
}

TEST_CASE("compare_traces and correctness_matrix take either format, with the same figures") {
    TempFolder folder;
    const auto a = folder.path("a.safetensors"), b = folder.path("b.safetensors");
    check_silent(convert({example, a}));
    check_silent(convert({other_example, b}));
    const Finished text = test::run({COMPARE_TRACES, example, other_example});
    const Finished binary = test::run({COMPARE_TRACES, a, b});
    REQUIRE(text.status == 0);
    CHECK(binary.status == 0);
    CHECK(test::replaced(test::replaced(binary.out, a, example), b, other_example) == text.out);
    const auto manifest =
        folder.write("pairs.tsv", "name\ttag\treference\tcandidate\nn\tt\ta.safetensors\tb.safetensors\n");
    CHECK(contains(test::run({CORRECTNESS_MATRIX, manifest}).out, "45 / 320"));
}

TEST_CASE("--skip-non-finite: such positions are left out and counted") {
    TempFolder folder;
    const auto good =
        folder.write("good.tsv", test::small_trace({"10,7 3.0,0.5 1.5", "7,11 3.5,3.0 1.0", "7,12 3.5,0.5 2.0"}));
    const auto bad =
        folder.write("bad.tsv", test::small_trace({"10,7 3.0,0.5 1.5", "7,11 3.5,3.0 nan", "7,12 3.5,0.5 2.0"}));
    for (const auto& pair : {std::vector{good, bad}, std::vector{bad, good}}) {
        const Finished strict = test::run({COMPARE_TRACES, pair[0], pair[1]});
        CHECK(strict.status == 2);
        CHECK(contains(strict.err, "bad.tsv:2:8: nll is not finite: 'nan'"));
        const Finished skipped = test::run({COMPARE_TRACES, pair[0], pair[1], "--skip-non-finite"});
        CHECK(skipped.status == 0);
        CHECK(contains(skipped.out, "compared   2 positions"));
        CHECK(contains(skipped.out, "1 position with non-finite values left out"));
        CHECK_FALSE(test::shows_nan_or_inf(skipped.out));
        CHECK(contains(test::run({COMPARE_TRACES, pair[0], pair[1], "--skip-non-finite", "--json", "-"}).out,
                       "\"skipped_non_finite\": 1"));
    }
    const auto manifest = folder.write(
        "pairs.tsv", "name\ttag\treference\tcandidate\nn\tt\tgood.tsv\tbad.tsv\nm\tt\tbad.tsv\tgood.tsv\n");
    CHECK(test::run({CORRECTNESS_MATRIX, manifest}).status == 2);
    const Finished matrix = test::run({CORRECTNESS_MATRIX, manifest, "--skip-non-finite", "--csv", folder.path("m.csv"),
                                       "--json", folder.path("m.json")});
    CHECK(matrix.status == 0);
    CHECK(contains(matrix.out, "2 positions with non-finite values left out"));
    CHECK(contains(read_file(folder.path("m.csv")), ",identical,,2,1,1,0,"));
    CHECK(contains(read_file(folder.path("m.json")), "\"skipped_non_finite\": 2"));
}

TEST_CASE("custom_comparison: counts by position in the chunk, against a count of one's own") {
    // Best token and pos of each row, read without the library.
    const auto rows = [](const std::string& path) {
        std::vector<std::pair<long, std::string>> all;
        std::istringstream text(read_file(path));
        for (std::string line; std::getline(text, line);) {
            if (line.starts_with("#")) { continue; }
            std::istringstream fields(line);
            std::string chunk, pos, target, nll, ids;
            fields >> chunk >> pos >> target >> nll >> ids;
            all.emplace_back(std::stol(pos), ids.substr(0, ids.find(',')));
        }
        return all;
    };
    const auto a = rows(example), b = rows(other_example);
    const std::vector<std::pair<long, long>> ranges{{0, 0}, {1, 1}, {2, 3}, {4, 7}, {8, 15}, {16, 31}, {32, 63}};
    const Finished run = test::run({CUSTOM_COMPARISON, example, other_example});
    CHECK(run.status == 0);
    CHECK(run.err == "");
    std::istringstream lines(run.out);
    std::string line, word;
    std::getline(lines, line);
    CHECK(contains(line, "95 % interval"));
    long all = 0, changed = 0;
    for (const auto& [first, last] : ranges) {
        long positions = 0, disagreements = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            if (a[i].first < first || a[i].first > last) { continue; }
            ++positions;
            disagreements += a[i].second != b[i].second;
        }
        REQUIRE(std::getline(lines, line));
        std::istringstream fields(line);
        long from = -1, to = -1, k = -1, n = -1;
        fields >> from >> word >> to >> k >> word >> n;
        CHECK(std::vector<long>{from, to, k, n} == std::vector<long>{first, last, disagreements, positions});
        all += n;
        changed += k;
    }
    CHECK_FALSE(std::getline(lines, line));
    CHECK(all == 320);
    CHECK(changed == 45);

    TempFolder folder;
    CHECK(test::run({CUSTOM_COMPARISON, example}).status == 2);
    const Finished none = test::run({CUSTOM_COMPARISON, example, folder.path("none")});
    CHECK(none.status == 2);
    CHECK(none.out == "");
    CHECK(contains(none.err, "custom_comparison: "));
}

TEST_CASE("--keep-non-finite: marked rows go through every task, and come back as they were") {
    const TempFolder folder;
    const std::string text = test::small_trace({"10,7 3.0,0.5 1.5", "7,11 nan,nan nan", "7,12 3.5,0.5 2.0"});
    folder.write("marked.tsv", text);
    const std::string marked = folder.path("marked.tsv"), binary = folder.path("marked.safetensors");
    check_refused(convert({marked, binary}), "nll is not finite");
    CHECK(convert({marked, binary, "--keep-non-finite"}).status == 0);
    check_refused(convert({"--check", binary}), "not finite");
    CHECK(convert({"--check", binary, "--keep-non-finite"}).status == 0);
    CHECK(convert({binary, folder.path("back.tsv"), "--keep-non-finite"}).status == 0);
    CHECK(contains(read_file(folder.path("back.tsv")), "\tnan\t"));
    const Finished info = convert({"--info", marked, "--keep-non-finite"});
    CHECK(info.status == 0);
    CHECK(contains(info.out, "not finite  1 position, left out of what follows"));
    CHECK(contains(info.out, "perplexity  5.7546")); // exp((1.5 + 2) / 2)

    folder.write("cut.tsv", text.substr(0, text.size() - 3)); // a killed run of a recorder that marks
    CHECK(convert({folder.path("cut.tsv"), folder.path("whole.tsv"), "--recover", "--keep-non-finite"}).status == 0);
    CHECK(contains(convert({"--check", folder.path("whole.tsv"), "--keep-non-finite"}).out, "2 positions"));
}

} // namespace test_convert_trace

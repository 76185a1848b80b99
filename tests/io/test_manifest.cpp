#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/manifest.hpp"

namespace test_manifest {

using logitstat::io_error;
using logitstat::pair_folders;
using logitstat::PairSpec;
using logitstat::parse_error;
using logitstat::read_manifest;
using testing::contains;
using testing::message_of;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string header = "name\ttag\treference\tcandidate\n";

/// The pairs of a manifest with this text.
std::vector<PairSpec> pairs_of(const TemporaryFolder& folder, const std::string& text) {
    return read_manifest(folder.write("pairs.tsv", text));
}

/// The error of a manifest with this text must name the file, the line (0: the whole file) and hold all `parts`.
void check_refused(const std::string& text, std::size_t line, const std::vector<std::string>& parts) {
    const TemporaryFolder folder;
    const fs::path path = folder.write("pairs.tsv", text);
    CAPTURE(text);
    try {
        read_manifest(path);
        FAIL_CHECK("nothing was thrown");
    } catch (const parse_error& error) {
        const std::string what = error.what();
        CAPTURE(what);
        CHECK(error.path() == path.string());
        CHECK(error.line() == line);
        CHECK(what.starts_with(path.string() + (line > 0 ? ":" + std::to_string(line) + ":1: " : ": ")));
        for (const std::string& part : parts) {
            CAPTURE(part);
            CHECK(contains(what, part));
        }
    }
}

/// Two folders, left and right, with empty files of the given names.
struct Folders {
    TemporaryFolder root;
    fs::path left = root / "left", right = root / "right";

    Folders(const std::vector<std::string>& in_left, const std::vector<std::string>& in_right) {
        fs::create_directory(left);
        fs::create_directory(right);
        for (const std::string& name : in_left) { root.write("left/" + name, ""); }
        for (const std::string& name : in_right) { root.write("right/" + name, ""); }
    }
    std::vector<PairSpec> pair(const std::string& pattern = "") const { return pair_folders(left, right, pattern); }
    PairSpec spec(const std::string& name, const std::string& tag, const std::string& reference,
                  const std::string& candidate) const {
        return {name, tag, left / reference, right / candidate};
    }
};

} // namespace

TEST_CASE("a label is the name and, where there is one, the tag") {
    CHECK(PairSpec{"llama", "w1", "a", "b"}.label() == "llama w1");
    CHECK(PairSpec{"llama", "", "a", "b"}.label() == "llama");
}

// ---- manifests -----------------------------------------------------------------------------------------------------

TEST_CASE("a manifest: pairs in its order, paths relative to its folder or absolute") {
    const TemporaryFolder folder;
    const auto pairs = pairs_of(folder, header + "z model\tw1\ta.tsv\tsub/b.tsv\n"
                                                 "a\t\t../a.tsv\t/elsewhere/b.tsv\n"
                                                 "a\tw2\t./a.tsv\tb c.tsv\n");
    REQUIRE(pairs.size() == 3);
    CHECK(pairs[0] == PairSpec{"z model", "w1", folder / "a.tsv", folder / "sub/b.tsv"});
    CHECK(pairs[1] == PairSpec{"a", "", folder / "../a.tsv", "/elsewhere/b.tsv"});
    CHECK(pairs[2] == PairSpec{"a", "w2", folder / "./a.tsv", folder / "b c.tsv"});
}

TEST_CASE("a manifest: CRLF, comments, blank lines, no newline at the end") {
    const TemporaryFolder folder;
    const std::vector<PairSpec> expected{{"m", "w1", folder / "a", folder / "b"},
                                         {"m", "w2", folder / "c", folder / "d"}};
    const std::string plain = header + "m\tw1\ta\tb\nm\tw2\tc\td\n";
    CHECK(pairs_of(folder, plain) == expected);
    CHECK(pairs_of(folder, plain.substr(0, plain.size() - 1)) == expected);
    CHECK(pairs_of(folder, testing::replaced(plain, "\n", "\r\n")) == expected);
    CHECK(pairs_of(folder, testing::replaced(plain, "\n", "\r\n") + "\r\n\r\n") == expected);
    CHECK(pairs_of(folder, "# which pairs\n\n" + header +
                               "\n# width 1\nm\tw1\ta\tb\n#m\tw9\ta\tb\n\nm\tw2\tc\td\n\n") == expected);
    // A comment is a line that begins with #: elsewhere the character is part of a name.
    CHECK(pairs_of(folder, header + "m#\t#1\ta#\t#b\n") ==
          std::vector<PairSpec>{{"m#", "#1", folder / "a#", folder / "#b"}});
}

TEST_CASE("a manifest in the working folder has paths without a folder") {
    const TemporaryFolder folder;
    folder.write("pairs.tsv", header + "m\t\ta\tb\n");
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    const auto pairs = read_manifest("pairs.tsv");
    fs::current_path(before);
    CHECK(pairs == std::vector<PairSpec>{{"m", "", "a", "b"}});
}

TEST_CASE("a manifest: another header, or none") {
    const std::string row = "m\tw1\ta\tb\n";
    check_refused(row, 1, {"begins with", "name tag reference candidate", "'m\\x09w1\\x09a\\x09b'"});
    check_refused("\n# comment\n" + row, 3, {"begins with"});
    check_refused("name tag reference candidate\n" + row, 1, {"tab-separated"});
    check_refused("Name\ttag\treference\tcandidate\n" + row, 1, {"begins with"});
    check_refused("name\ttag\treference\tcandidate\tnotes\n" + row, 1, {"begins with"});
    check_refused("tag\tname\treference\tcandidate\n" + row, 1, {"begins with"});
    check_refused(" " + header + row, 1, {"begins with"});
    check_refused("\x1b[31m\n", 1, {"'\\x1b[31m'"}); // never raw to a terminal
}

TEST_CASE("a manifest: another number of fields") {
    check_refused(header + "m\tw1\ta\n", 2, {"expected 4 tab-separated fields", "'m\\x09w1\\x09a'"});
    check_refused(header + "m\tw1\ta\tb\tc\n", 2, {"expected 4"});
    check_refused(header + "m\tw1\ta\tb\t\n", 2, {"expected 4"});
    check_refused(header + "m w1 a b\n", 2, {"expected 4"});
    check_refused(header + "m\tw1\ta\tb\n\n# x\nm\tw2\n", 5, {"expected 4"}); // lines are counted, not pairs
    check_refused(header + " \n", 2, {"expected 4"});
    const std::string shown = message_of<parse_error>([] {
        const TemporaryFolder folder;
        pairs_of(folder, header + std::string(5000, 'x'));
    });
    CHECK(contains(shown, std::string(80, 'x') + "..."));
    CHECK_FALSE(contains(shown, std::string(81, 'x')));
}

TEST_CASE("a manifest: empty fields") {
    check_refused(header + "\tw1\ta\tb\n", 2, {"name, reference and candidate must be given"});
    check_refused(header + "m\tw1\t\tb\n", 2, {"must be given"});
    check_refused(header + "m\tw1\ta\t\n", 2, {"must be given"});
    check_refused(header + "m\tw1\ta\t\r\n", 2, {"must be given"});
    check_refused(header + "m\tw\ta\tb\n\t\t\t\n", 3, {"must be given"});
}

TEST_CASE("a manifest: a name and tag that come twice") {
    check_refused(header + "m\tw1\ta\tb\nn\tw1\ta\tb\nm\tw1\tc\td\n", 4, {"'m' 'w1' comes twice"});
    check_refused(header + "m\t\ta\tb\nm\t\tc\td\n", 3, {"'m' '' comes twice"});
    const TemporaryFolder folder; // the same files under another tag, a name that only looks the same joined
    CHECK(pairs_of(folder, header + "m\tw1\ta\tb\nm\tw2\ta\tb\nm w1\t\ta\tb\nM\tw1\ta\tb\n").size() == 4);
}

TEST_CASE("a manifest: no pair") {
    check_refused("", 0, {"holds no pair"});
    check_refused("\n\n", 0, {"holds no pair"});
    check_refused("# only\n# comments", 0, {"holds no pair"});
    check_refused(header, 0, {"holds no pair"});
    check_refused(header + "#m\tw1\ta\tb\n", 0, {"holds no pair"});
}

TEST_CASE("a manifest that cannot be opened") {
    const TemporaryFolder folder;
    CHECK(contains(message_of<io_error>([&] { read_manifest(folder / "missing.tsv"); }), "missing.tsv: cannot open"));
    CHECK(contains(message_of<io_error>([&] { read_manifest(folder.path()); }), "is a directory"));
}

// ---- folders -------------------------------------------------------------------------------------------------------

TEST_CASE("folders: equal names pair up, sorted, whatever order the system lists them in") {
    const Folders f({"b.tsv", "a 1.tsv", "c.tsv", "A.tsv"}, {"c.tsv", "A.tsv", "b.tsv", "a 1.tsv"});
    CHECK(f.pair() ==
          std::vector<PairSpec>{f.spec("A.tsv", "", "A.tsv", "A.tsv"), f.spec("a 1.tsv", "", "a 1.tsv", "a 1.tsv"),
                                f.spec("b.tsv", "", "b.tsv", "b.tsv"), f.spec("c.tsv", "", "c.tsv", "c.tsv")});
}

TEST_CASE("folders: a file without a partner is kept with a path that does not exist") {
    const Folders f({"both.tsv", "left.tsv"}, {"both.tsv", "right.tsv"});
    const auto pairs = f.pair();
    CHECK(pairs == std::vector<PairSpec>{f.spec("both.tsv", "", "both.tsv", "both.tsv"),
                                         f.spec("left.tsv", "", "left.tsv", "left.tsv"),
                                         f.spec("right.tsv", "", "right.tsv", "right.tsv")});
    CHECK(fs::exists(pairs[1].reference));
    CHECK_FALSE(fs::exists(pairs[1].candidate));
    CHECK_FALSE(fs::exists(pairs[2].reference));
    CHECK(fs::exists(pairs[2].candidate));

    const Folders g({"metal_a_w1.tsv", "metal_b_w1.tsv"}, {"rocm_a_w1.tsv", "rocm_c_w1.tsv"});
    CHECK(g.pair("[^_]+_(.*)_(w\\d+)\\.tsv") ==
          std::vector<PairSpec>{g.spec("a", "w1", "metal_a_w1.tsv", "rocm_a_w1.tsv"),
                                g.spec("b", "w1", "metal_b_w1.tsv", "metal_b_w1.tsv"),
                                g.spec("c", "w1", "rocm_c_w1.tsv", "rocm_c_w1.tsv")});
}

TEST_CASE("folders: a pattern without groups chooses files, by their whole name") {
    const Folders f({"a.tsv", "b.tsv", "b.tsv.bak", "notes.txt"}, {"a.tsv", "b.tsv", "b.tsv.bak", "notes.txt"});
    CHECK(f.pair(".*\\.tsv") ==
          std::vector<PairSpec>{f.spec("a.tsv", "", "a.tsv", "a.tsv"), f.spec("b.tsv", "", "b.tsv", "b.tsv")});
    CHECK(f.pair("[ab]\\.tsv").size() == 2);
    CHECK_THROWS_AS(f.pair("a"), std::invalid_argument); // a part of a name is no match
    CHECK(f.pair("(?:a|notes)\\..*").size() == 2);       // a group that captures nothing is none
}

TEST_CASE("folders: group 1 is the name, the others are the tag") {
    const Folders f({"metal_llama_w1_q4.tsv", "metal_llama_w256_q4.tsv", "metal_gemma_w1_q8.tsv", "other.log"},
                    {"rocm_gemma_w1_q8.tsv", "rocm_llama_w1_q4.tsv", "rocm_llama_w256_q4.tsv"});
    const auto check = [&](const std::string& pattern, const std::vector<std::pair<std::string, std::string>>& named) {
        CAPTURE(pattern);
        const auto pairs = f.pair(pattern);
        REQUIRE(pairs.size() == named.size());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            CHECK(pairs[i].name == named[i].first);
            CHECK(pairs[i].tag == named[i].second);
            CHECK(fs::exists(pairs[i].reference));
            CHECK(fs::exists(pairs[i].candidate));
            const auto rest = [](const fs::path& path) { // what follows the arm's own part
                const std::string name = path.filename().string();
                return name.substr(name.find('_'));
            };
            CHECK(rest(pairs[i].reference) == rest(pairs[i].candidate));
        }
    };
    check("[a-z]+_(.*)\\.tsv", {{"gemma_w1_q8", ""}, {"llama_w1_q4", ""}, {"llama_w256_q4", ""}});
    check("[a-z]+_([a-z]+)_(.*)\\.tsv", {{"gemma", "w1_q8"}, {"llama", "w1_q4"}, {"llama", "w256_q4"}});
    check("[a-z]+_([a-z]+)_(w\\d+)_(q\\d)\\.tsv", {{"gemma", "w1-q8"}, {"llama", "w1-q4"}, {"llama", "w256-q4"}});
}

TEST_CASE("folders: a group that takes no part in a match is empty") {
    const Folders f({"x_a.tsv", "x_a_w1.tsv"}, {"y_a.tsv", "y_a_w1.tsv"});
    CHECK(f.pair("[xy]_(a)(?:_(w\\d))?\\.tsv") ==
          std::vector<PairSpec>{f.spec("a", "", "x_a.tsv", "y_a.tsv"), f.spec("a", "w1", "x_a_w1.tsv", "y_a_w1.tsv")});
}

TEST_CASE("folders: subfolders are ignored, of whatever name; links to files are not") {
    const Folders f({"a.tsv"}, {"a.tsv"});
    for (const fs::path& side : {f.left, f.right}) {
        fs::create_directory(side / "sub.tsv");
        f.root.write((side / "sub.tsv" / "deep.tsv").lexically_relative(f.root.path()).string(), "");
    }
    CHECK(f.pair() == std::vector<PairSpec>{f.spec("a.tsv", "", "a.tsv", "a.tsv")});
    fs::create_symlink(f.left / "a.tsv", f.left / "link.tsv");
    fs::create_symlink(f.right / "a.tsv", f.right / "link.tsv");
    CHECK(f.pair().size() == 2);
}

TEST_CASE("folders: names with line breaks and bytes that are not UTF-8 pair up as any other") {
    const Folders f({"two\nlines", "bad\xff"}, {"two\nlines", "bad\xff"});
    CHECK(f.pair() == std::vector<PairSpec>{f.spec("bad\xff", "", "bad\xff", "bad\xff"),
                                            f.spec("two\nlines", "", "two\nlines", "two\nlines")});
}

TEST_CASE("folders: a folder may be paired with itself") {
    const Folders f({"a_1", "b_1"}, {});
    CHECK(pair_folders(f.left, f.left) == std::vector<PairSpec>{{"a_1", "", f.left / "a_1", f.left / "a_1"},
                                                                {"b_1", "", f.left / "b_1", f.left / "b_1"}});
}

TEST_CASE("folders: nothing pairs up") {
    const Folders f({"a.tsv", "b.tsv"}, {"c.tsv"});
    const auto nothing = [&](const std::string& pattern) {
        const std::string what = message_of<std::invalid_argument>([&] { f.pair(pattern); });
        CHECK(contains(what, "no file of " + f.left.string()));
        CHECK(contains(what, f.right.string()));
    };
    nothing("");
    nothing("nothing like it");
    nothing("(.*)\\.tsv");
    const Folders empty({}, {});
    CHECK_THROWS_AS(empty.pair(), std::invalid_argument);
}

TEST_CASE("folders: two files with the same name and tag are ambiguous, on either side") {
    const std::vector<std::string> two{"x_a.tsv", "y_a.tsv"}, one{"x_a.tsv"};
    for (const bool left : {true, false}) {
        const Folders f(left ? two : one, left ? one : two);
        const std::string what = message_of<std::invalid_argument>([&] { f.pair("[xy]_(.*)\\.tsv"); });
        CHECK(contains(what, "x_a.tsv"));
        CHECK(contains(what, "y_a.tsv"));
        CHECK(contains(what, "the same name"));
    }
}

TEST_CASE("folders: a bad pattern") {
    const Folders f({"a"}, {"a"});
    for (const std::string pattern : {"(", "[", "*", "a{2", "(a"}) {
        CAPTURE(pattern);
        const std::string what = message_of<std::invalid_argument>([&] { f.pair(pattern); });
        CHECK(contains(what, "bad pattern '" + pattern + "'"));
    }
}

TEST_CASE("folders that cannot be read") {
    const Folders f({"a"}, {"a"});
    const auto message = [](const fs::path& a, const fs::path& b) {
        return message_of<io_error>([&] { pair_folders(a, b); });
    };
    CHECK(contains(message(f.root / "none", f.right), "none: cannot read the folder"));
    CHECK(contains(message(f.left, f.root / "none"), "none: cannot read the folder"));
    CHECK(contains(message(f.left / "a", f.right), "cannot read the folder"));
}

TEST_CASE("a manifest: a byte order mark is fine, a NUL is not") {
    const TemporaryFolder folder;
    CHECK(pairs_of(folder, "\xEF\xBB\xBF" + header + "a\tb\tr\tc\n").size() == 1);
    check_refused(header + "a\tb\tr\tc" + std::string("\0JUNK", 5) + "\n", 2, {"NUL byte", "c\\x00JUNK"});
}

TEST_CASE("folders: files that the pattern leaves out are told, and a pattern has a limit") {
    const Folders f({"a.tsv", "README"}, {"a.tsv", "notes"});
    std::vector<fs::path> ignored;
    CHECK(pair_folders(f.left, f.right, ".*\\.tsv", &ignored).size() == 1);
    CHECK(ignored == std::vector<fs::path>{f.left / "README", f.right / "notes"});
    CHECK(contains(message_of<std::invalid_argument>([&] { f.pair(std::string(300, '(') + std::string(300, ')')); }),
                   "more than 500 characters"));
}

} // namespace test_manifest

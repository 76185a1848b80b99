#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/stat.h>
#define LOGITSTAT_TEST_POSIX 1
#endif

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_writer.hpp"

namespace test_files {

using logitstat::io_error;
using logitstat::MappedFile;
using logitstat::OutputFile;
using logitstat::parse_error;
using logitstat::read_text_trace;
using namespace testing;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

/// Writes a file as a user of OutputFile does.
void write_through(const fs::path& path, std::string_view bytes, bool commit = true) {
    OutputFile file(path);
    file.stream() << bytes;
    if (commit) { file.commit(); }
}

} // namespace

TEST_CASE("a mapped file is its bytes") {
    TemporaryFolder folder;
    const std::string bytes = std::string("a\0b\r\n\xff", 6) + std::string(100000, 'x');
    MappedFile file(folder.write("f", bytes));
    CHECK((file.text() == bytes));
    MappedFile moved(std::move(file));
    CHECK((moved.text() == bytes));
    CHECK(MappedFile(folder.write("empty", "")).text() == "");
}

TEST_CASE("a trace is read from a file, and its errors name the path") {
    TemporaryFolder folder;
    const auto good = folder.write("good.tsv", tsv(rows));
    CHECK(same_data(read_text_trace(good), logitstat::parse_text_trace(tsv(rows), "")));
    CHECK(same_data(read_text_trace<float>(good), logitstat::parse_text_trace<float>(tsv(rows), "")));
    CHECK(same_data(logitstat::read_trace(good), read_text_trace(good)));
    CHECK(read_text_trace(good).source.path == good.string());

    const auto bad = folder.write("bad.tsv", tsv(row0) + "done\n");
    CHECK(message_of<parse_error>([&] { read_text_trace(bad); }) ==
          bad.string() + ":2:1: expected 6 tab-separated fields, found 1: 'done'");
    const auto empty = folder.write("empty.tsv", "");
    CHECK(message_of<parse_error>([&] { read_text_trace(empty); }) == empty.string() + ": the file is empty");
    const auto binary = folder.write("binary.tsv", std::string(5000, '\0'));
    CHECK(message_of<parse_error>([&] { read_text_trace(binary); }) ==
          binary.string() + R"(: not a text trace: control byte at offset 0, the file begins )"
                            R"('\x00\x00\x00\x00\x00\x00\x00\x00...')");
    CHECK(message_of<parse_error>([&] { logitstat::read_trace(binary); }) ==
          binary.string() + ": neither a text trace (tab-separated lines) nor a binary trace (safetensors): control " +
              R"(byte at offset 0, the file begins '\x00\x00\x00\x00\x00\x00\x00\x00...')");
}

TEST_CASE("a path that is no readable file") {
    TemporaryFolder folder;
    const auto check_refused = [](const fs::path& path, const std::string& reason) {
        try {
            read_text_trace(path);
            FAIL_CHECK("read " << path);
        } catch (const io_error& e) {
            CHECK(e.path() == path.string());
            CHECK(std::string(e.what()) == path.string() + ": " + reason);
        }
    };
    check_refused(folder / "missing.tsv", "cannot open: No such file or directory");
    check_refused(folder / "missing" / "t.tsv", "cannot open: No such file or directory");
    check_refused(folder.path(), "is a directory, not a file");
    check_refused(folder.write("file", "x") / "t.tsv", "cannot open: Not a directory");
    check_refused("", "cannot open: No such file or directory");
}

#ifdef LOGITSTAT_TEST_POSIX

TEST_CASE("a pipe is read to its end") {
    TemporaryFolder folder;
    const auto path = folder / "pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const std::string text = generated_rows(20000, 4, 9); // more than a pipe holds
    REQUIRE(text.size() > 1 << 20);
    std::thread writer([&] {
        std::ofstream pipe(path, std::ios::binary);
        pipe << text;
    });
    const MappedFile file(path);
    writer.join();
    CHECK((file.text() == text));
}

TEST_CASE("a symbolic link is followed") {
    TemporaryFolder folder;
    fs::create_directory(folder / "elsewhere");
    folder.write("elsewhere/target", "old");
    fs::create_symlink("elsewhere/target", folder / "link");
    CHECK(MappedFile(folder / "link").text() == "old");
    write_through(folder / "link", "new");
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(content(folder / "elsewhere" / "target") == "new");
    CHECK(folder.names() == Names{"elsewhere", "link"});
    fs::remove(folder / "elsewhere" / "target"); // the link now dangles: its target is what must appear
    write_through(folder / "link", "newer");
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(content(folder / "elsewhere" / "target") == "newer");
}

TEST_CASE("a device is written to, not replaced") {
    REQUIRE(fs::is_character_file("/dev/null"));
    write_through("/dev/null", "x");
    write_through("/dev/null", "x", false);
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(message_of<io_error>([] { read_text_trace("/dev/null"); }) == "/dev/null: is a device, not a file");
}

TEST_CASE("a full disk is an error at commit, however little is written") {
    if (!fs::is_character_file("/dev/full")) { return; }
    for (const std::size_t size : {std::size_t{1}, std::size_t{1} << 20}) {
        const std::string message = message_of<io_error>([&] { write_through("/dev/full", std::string(size, 'x')); });
        CAPTURE(size);
        CHECK(message.starts_with("/dev/full: cannot write: "));
    }
    const auto trace = logitstat::parse_text_trace(tsv(rows), "t.tsv");
    CHECK(message_of<io_error>([&] { logitstat::write_text_trace(fs::path("/dev/full"), trace); }) != "");
    CHECK(fs::is_character_file("/dev/full"));
}

#endif

TEST_CASE("an output file appears when it is complete") {
    TemporaryFolder folder;
    SUBCASE("nothing under its name before commit") {
        OutputFile file(folder / "new");
        file.stream() << "bytes" << std::flush;
        CHECK(!fs::exists(folder / "new"));
        file.commit();
        CHECK(content(folder / "new") == "bytes");
    }
    SUBCASE("an earlier file keeps its content until then") {
        folder.write("new", "a longer content from before");
        OutputFile file(folder / "new");
        file.stream() << "bytes" << std::flush;
        CHECK(content(folder / "new") == "a longer content from before");
        file.commit();
        CHECK(content(folder / "new") == "bytes");
    }
    SUBCASE("empty") {
        write_through(folder / "new", "");
        CHECK(content(folder / "new") == "");
    }
    CHECK(folder.names() == Names{"new"});
}

TEST_CASE("an output file that is not completed leaves nothing behind") {
    TemporaryFolder folder;
    folder.write("old", "before");
    SUBCASE("no commit") {
        write_through(folder / "new", "bytes", false);
        write_through(folder / "old", "bytes", false);
    }
    SUBCASE("an exception on the way") {
        const auto interrupted = [&] {
            OutputFile file(folder / "old");
            file.stream() << std::string(1 << 20, 'x');
            throw std::runtime_error("interrupted");
        };
        CHECK(message_of<std::runtime_error>(interrupted) == "interrupted");
    }
    SUBCASE("a stream that failed") {
        const auto failed = [&](const char* name) {
            OutputFile file(folder / name);
            file.stream() << "bytes";
            file.stream().setstate(std::ios::badbit);
            file.commit();
        };
        for (const char* name : {"old", "new"}) {
            CHECK(
                message_of<io_error>([&] { failed(name); }).starts_with((folder / name).string() + ": cannot write: "));
        }
    }
    SUBCASE("its place was taken by a folder meanwhile") {
        const auto taken = [&] {
            OutputFile file(folder / "old");
            file.stream() << "bytes";
            fs::remove(folder / "old");
            fs::create_directory(folder / "old");
            folder.write("old/inside", "x");
            file.commit();
        };
        CHECK(message_of<io_error>(taken).starts_with((folder / "old").string() + ": cannot write: "));
        CHECK(content(folder / "old" / "inside") == "x");
        fs::remove_all(folder / "old");
        folder.write("old", "before");
    }
    CHECK(folder.names() == Names{"old"});
    CHECK(content(folder / "old") == "before");
}

TEST_CASE("an output path that cannot be written") {
    TemporaryFolder folder;
    folder.write("file", "x");
    fs::create_directory(folder / "folder");
    const auto refusal = [](const fs::path& path) { return message_of<io_error>([&] { OutputFile file(path); }); };
    CHECK(refusal(folder / "folder") == (folder / "folder").string() + ": cannot write: it is a directory");
    CHECK(refusal(folder / "missing" / "t") ==
          (folder / "missing" / "t").string() + ": cannot write: No such file or directory");
    CHECK(refusal(folder / "file" / "t") == (folder / "file" / "t").string() + ": cannot write: Not a directory");
    CHECK(folder.names() == Names{"file", "folder"});
    CHECK(content(folder / "file") == "x");
}

TEST_CASE("a name without a folder is written to the current one") {
    TemporaryFolder folder;
    const auto before = fs::current_path();
    fs::current_path(folder.path());
    write_through("plain", "bytes");
    fs::current_path(before);
    CHECK(folder.names() == Names{"plain"});
    CHECK(content(folder / "plain") == "bytes");
}

} // namespace test_files

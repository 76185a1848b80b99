#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "io/memory.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/manifest.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/targets.hpp"
#include "logitstat/io/text_trace_writer.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#define LOGITSTAT_TEST_POSIX 1
#endif

namespace test_hostile_files {

/// Files that ask for more than there is, and places that do not behave as files on a healthy disk do.
using namespace testing;
using logitstat::io_error;
using logitstat::MappedFile;
using logitstat::parse_error;
using logitstat::parse_text_trace;
using logitstat::read_logits;
using logitstat::read_trace;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

logitstat::Trace<double> small_trace() { return parse_text_trace(tsv(rows), "small"); }

/// Every reader, by what it reads.
const std::vector<std::pair<std::string, std::function<void(const fs::path&)>>> readers{
    {"trace", [](const fs::path& path) { read_trace(path); }},
    {"text trace", [](const fs::path& path) { logitstat::read_text_trace(path); }},
    {"binary trace", [](const fs::path& path) { logitstat::MappedTrace<double> trace(path); }},
    {"logits", [](const fs::path& path) { read_logits(path); }},
    {"positions", [](const fs::path& path) { logitstat::read_positions(path); }},
    {"safetensors", [](const fs::path& path) { logitstat::SafetensorsFile file(path); }},
    {"npy", [](const fs::path& path) { logitstat::NpyFile file(path); }},
    {"kld", [](const fs::path& path) { logitstat::KldFile file(path); }},
    {"manifest", [](const fs::path& path) { logitstat::read_manifest(path); }}};

} // namespace

// ---- metadata ------------------------------------------------------------------------------------------------------

TEST_CASE("metadata of more words than a program writes is refused, by readers and writers, in both formats") {
    TemporaryFolder folder;
    constexpr std::size_t most = logitstat::detail::most_metadata_words;
    const auto lines = [](std::size_t count) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) { text += "#\n"; }
        return text;
    };
    auto trace = parse_text_trace(lines(most) + tsv(rows), "t");
    CHECK(trace.source.metadata.lines().size() == most);
    CHECK(message_of<parse_error>([&] { parse_text_trace(lines(most + 1) + tsv(rows), "t"); }) ==
          "t:65537:1: more than 65536 words of metadata: '#'");
    CHECK(message_of<parse_error>([&] {
              parse_text_trace("# " + std::string(most, '\t') + "\n" + tsv(rows), "t"); // one line of so many words
          }).starts_with("t:1:1: more than 65536 words of metadata: "));

    logitstat::write_binary_trace(folder / "whole.safetensors", trace);
    CHECK(read_trace(folder / "whole.safetensors").source.metadata == trace.source.metadata);
    trace.source.metadata.add({"one more"});
    const std::string refused = "more than 65536 words of metadata";
    CHECK(message_of<std::invalid_argument>([&] { logitstat::write_text_trace(folder / "t.tsv", trace); }) == refused);
    CHECK(message_of<std::invalid_argument>([&] { logitstat::write_binary_trace(folder / "t", trace); }) == refused);
    CHECK(folder.names() == Names{"whole.safetensors"});

    // Pairs that are stored as lines and as keys are counted once: what is written can be read.
    std::string pairs;
    for (std::size_t i = 0; i < most / 2; ++i) { pairs += "# key" + std::to_string(i) + "\tv\n"; }
    const auto full = parse_text_trace(pairs + tsv(rows), "t");
    logitstat::write_binary_trace(folder / "whole.safetensors", full);
    CHECK(read_trace(folder / "whole.safetensors").source.metadata == full.source.metadata);

    // Foreign files: as lines, and as keys of their own.
    const auto refusal = [&](const logitstat::SafetensorsMetadata& more) {
        const auto view = trace.view();
        const std::vector<logitstat::Tensor> tensors{
            logitstat::tensor_over<double>("nll", {3}, view.nll),
            logitstat::tensor_over<double>("top_logits", {3, 3}, view.top_logits),
            logitstat::tensor_over<std::int32_t>("chunk", {3}, view.chunk),
            logitstat::tensor_over<std::int32_t>("pos", {3}, view.pos),
            logitstat::tensor_over<std::int32_t>("target", {3}, view.target),
            logitstat::tensor_over<std::int32_t>("top_ids", {3, 3}, view.top_ids)};
        logitstat::SafetensorsMetadata metadata{{"format", "logitstat-trace"}, {"version", "1"}};
        metadata.insert(metadata.end(), more.begin(), more.end());
        logitstat::write_safetensors(folder / "foreign", tensors, metadata);
        return message_of<parse_error>([&] { read_trace(folder / "foreign"); });
    };
    const std::string wanted = (folder / "foreign").string() + ": " + refused;
    CHECK(refusal({{"header_lines", lines(most + 1)}}) == wanted);
    logitstat::SafetensorsMetadata keys;
    for (std::size_t i = 0; i <= most / 2; ++i) { keys.emplace_back("k" + std::to_string(i), "v"); }
    CHECK(refusal(keys) == wanted);
}

TEST_CASE("one doubt about the columns line is one warning, however often it is written") {
    std::string text;
    for (int i = 0; i < 1000; ++i) { text += "# columns\tchunk\tpos\n"; }
    CHECK(parse_text_trace(text + tsv(rows), "t").source.warnings.size() == 1);
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

TEST_CASE("a line of 64 megabytes: as chatter, as metadata, as data that is none") {
    const std::string filler(std::size_t{64} << 20, 'x');
    const auto trace = parse_text_trace(filler + "\n" + tsv(rows), "t");
    CHECK(trace.source.skipped.size() == filler.size() + 1);
    for (const std::string& before : {std::string("# k\t"), "0\t1\t" + std::string(1, '2'), tsv(rows)}) {
        const std::string message =
            message_of<parse_error>([&] { parse_text_trace(before + filler + "\n" + tsv(rows), "t"); });
        CHECK(message.size() < 300);
    }
}

TEST_CASE("a row of half a million candidates is read, one of ids alone is refused") {
    constexpr std::size_t k = 500'000;
    std::string ids, logits;
    for (std::size_t j = 0; j < k; ++j) {
        ids += (j == 0 ? "" : ",") + std::to_string(j);
        logits += j == 0 ? "0" : ",0";
    }
    const auto trace = parse_text_trace("0\t0\t5\t1.0\t" + ids + "\t" + logits + "\n", "t");
    CHECK(trace.k == k);
    CHECK(trace.top_ids.back() == static_cast<std::int32_t>(k - 1));
    CHECK(message_of<parse_error>([&] { parse_text_trace("0\t0\t5\t1.0\t" + ids + "\t1,0\n", "t"); }).size() < 200);
}

#if defined(__linux__)

TEST_CASE("files of a terabyte: every reader refuses, or maps without reading") {
    TemporaryFolder folder;
    constexpr std::uintmax_t terabyte = std::uintmax_t{1} << 40;
    const auto int32s = [](std::vector<std::int32_t> values) { return packed(values); };
    const std::vector<std::pair<std::string, std::string>> heads{
        {"zeros", ""},
        {"a trace, then zeros", tsv(rows)},
        {"a manifest, then zeros", "name\ttag\treference\tcandidate\nm\tt\ta\tb\n"},
        {"a header of 2^63 bytes", little_endian(std::uint64_t{1} << 63, 8) + "{"},
        {"a header of the largest size", little_endian(logitstat::longest_safetensors_header, 8) + "{\"a\":"},
        {"a tensor whose size overflows",
         safetensors_bytes(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,64]}})", "")},
        {"a tensor of the largest size",
         safetensors_bytes(
             R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,18446744073709551615]}})", "")},
        {"an array whose size overflows", npy("<f4", "(9223372036854775807, 9223372036854775807)", "")},
        {"an array of the largest size", npy("|u1", "(18446744073709551615,)", "")},
        {"an .npy header of 4 GB", "\x93NUMPY\x02" + std::string(1, '\0') + "\xff\xff\xff\xff{"},
        {".kld counts whose product overflows", "_logits_" + int32s({2147483647, 2147483647, 2147483647})},
        {"a .kld file of one huge row", "_logits_" + int32s({3, 2147483647, 1, 0, 0, 0})}};
    for (const auto& head : heads) {
        CAPTURE(head.first);
        const auto path = sparse_file(folder, "sparse", head.second, terabyte);
        if (!path) {
            MESSAGE("SKIPPED: no sparse files here");
            return;
        }
        for (const auto& reader : readers) {
            CAPTURE(reader.first);
            const auto grown = peak_growth([&] {
                const std::string message = message_of<parse_error>([&] { reader.second(*path); });
                CHECK(message.size() < path->string().size() + 300);
            });
            if (grown) { CHECK(*grown < (std::size_t{64} << 20)); }
        }
    }
    // What is as large as it says is opened, since nothing of it is read.
    const std::size_t n = (terabyte - 128) / 128; // numpy puts 128 bytes ahead of rows of 32 floats
    const auto array = sparse_file(folder, "array", npy("<f4", "(" + std::to_string(n) + ", 32)", ""), terabyte);
    REQUIRE(array);
    const auto grown = peak_growth([&] { CHECK(read_logits(*array).size() == n); });
    if (grown) { CHECK(*grown < (std::size_t{64} << 20)); }
}

#endif

#ifdef LOGITSTAT_TEST_POSIX

// ---- files that become shorter -------------------------------------------------------------------------------------

TEST_CASE("a file that became shorter while it was mapped is an error at the end, not zeros that look like data") {
    TemporaryFolder folder;
    const auto path = folder / "t.safetensors";
    logitstat::write_binary_trace(path, small_trace());
    const auto trace = read_trace(path);
    CHECK_NOTHROW(trace.require_whole());
    const auto size = fs::file_size(path);
    fs::resize_file(path, size - 4); // inside its last page: no signal, zeros
    CHECK(message_of<io_error>([&] { trace.require_whole(); }) ==
          path.string() + ": became shorter while it was read: " + std::to_string(size - 4) + " bytes of " +
              std::to_string(size));
    // Whoever reads it to the end says so: a comparison, and the writers, before the file has its name.
    CHECK_THROWS_AS(logitstat::compare(trace, trace), io_error);
    CHECK_THROWS_AS(logitstat::write_text_trace(folder / "copy.tsv", trace), io_error);
    CHECK_THROWS_AS(logitstat::write_binary_trace(folder / "copy.safetensors", trace), io_error);
    CHECK(folder.names() == Names{"t.safetensors"});

    const auto array = folder.write("x.npy", npy("<f4", "(2, 2)", std::string(16, '\0')));
    const auto file = read_logits(array);
    const auto other = folder.write("other.npy", npy("<f4", "(1, 2)", std::string(8, '\0')));
    fs::rename(other, array); // what is mapped is another file now, and whole
    CHECK_NOTHROW(file.require_whole());
    const auto again = read_logits(array);
    fs::resize_file(array, 100);
    CHECK_THROWS_AS(again.require_whole(), io_error);
    fs::remove(array);
    CHECK_NOTHROW(again.require_whole()); // nobody can tell any more

    const auto base = folder.write("x.kld", small_kld());
    const auto kld = read_logits(base);
    fs::resize_file(base, 100);
    CHECK_THROWS_AS(kld.require_whole(), io_error);
}

// ---- pipes ---------------------------------------------------------------------------------------------------------

namespace {

/// What a reader makes of these bytes from a pipe; `taken` counts what the pipe took of `repeats` times the bytes.
template <class Read>
void read_pipe(const fs::path& path, const std::string& bytes, std::size_t repeats, std::size_t& taken, Read read) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const auto handler = std::signal(SIGPIPE, SIG_IGN);
    std::thread writer([&] {
        const int pipe = ::open(path.c_str(), O_WRONLY);
        for (std::size_t i = 0; i < repeats; ++i) {
            for (std::string_view rest = bytes; !rest.empty();) {
                const ::ssize_t written = ::write(pipe, rest.data(), rest.size());
                if (written <= 0) { // the reader has gone
                    ::close(pipe);
                    return;
                }
                taken += static_cast<std::size_t>(written);
                rest.remove_prefix(static_cast<std::size_t>(written));
            }
        }
        ::close(pipe);
    });
    read(path);
    writer.join();
    std::signal(SIGPIPE, handler);
    fs::remove(path);
}

} // namespace

TEST_CASE("every format is read from a pipe") {
    TemporaryFolder folder;
    std::size_t taken = 0;
    const auto from_pipe = [&](const std::string& bytes, auto read) {
        read_pipe(folder / "pipe", bytes, 1, taken, read);
    };
    from_pipe(tsv(rows), [](const auto& path) { CHECK(read_trace(path).size() == 3); });
    from_pipe(tsv(rows), [](const auto& path) { CHECK(logitstat::read_targets(path).size() == 3); });
    logitstat::write_binary_trace(folder / "t", small_trace());
    from_pipe(content(folder / "t"), [](const auto& path) { CHECK(same_data(read_trace(path), small_trace())); });
    from_pipe(npy("<f4", "(2, 2)", std::string(16, '\0')),
              [](const auto& path) { CHECK(read_logits(path).size() == 2); });
    from_pipe(small_kld(), [](const auto& path) { CHECK(read_logits(path).size() == 4); });
    from_pipe("name\ttag\treference\tcandidate\nm\tt\ta\tb\n",
              [](const auto& path) { CHECK(logitstat::read_manifest(path).size() == 1); });
    from_pipe("", [](const auto& path) {
        CHECK(message_of<parse_error>([&] { read_trace(path); }) == path.string() + ": the file is empty");
    });
}

TEST_CASE("a pipe of another format is refused at its first bytes, however long it is") {
    TemporaryFolder folder;
    const std::string block("\x7f"
                            "ELF\0\x01",
                            6);
    const std::string zeros = block + std::string(1 << 16, '\0');
    for (const auto& reader : readers) {
        const std::string& kind = reader.first;
        if (kind != "trace" && kind != "logits" && kind != "positions") { continue; } // what programs read
        CAPTURE(kind);
        std::size_t taken = 0;
        read_pipe(folder / "pipe", zeros, 4096, taken, [&](const auto& path) {
            CHECK(message_of<parse_error>([&] { reader.second(path); }).starts_with(path.string() + ": "));
        });
        CHECK(taken < (std::size_t{4} << 20)); // of 256 MiB: what fits into the pipe
    }
}

TEST_CASE("a pipe or a device among the files of a folder is no trace, and is not opened") {
    TemporaryFolder folder;
    fs::create_directory(folder / "a");
    fs::create_directory(folder / "b");
    for (const char* side : {"a", "b"}) {
        folder.write(std::string(side) + "/t.tsv", tsv(rows));
        REQUIRE(::mkfifo((folder / side / "pipe").c_str(), 0600) == 0);
    }
    const auto pairs = logitstat::pair_folders(folder / "a", folder / "b");
    REQUIRE(pairs.size() == 1);
    CHECK(pairs[0].name == "t.tsv");
}

// ---- writers -------------------------------------------------------------------------------------------------------

namespace {

/// Until the end of its life no file of this process becomes larger: a full disk.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(::rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
        const ::rlimit limit{bytes, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

  private:
    ::rlimit before_{};
    void (*handler_)(int);
};

/// The permissions of a user without rights, where the tests run as root, whom none stops.
class Unprivileged {
  public:
    Unprivileged() : changed_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
    Unprivileged(const Unprivileged&) = delete;
    Unprivileged& operator=(const Unprivileged&) = delete;
    ~Unprivileged() {
        if (changed_ && ::seteuid(0) != 0) { std::abort(); }
    }

  private:
    bool changed_;
};

} // namespace

TEST_CASE("writers on a disk that gets full leave the file from before, and nothing else") {
    TemporaryFolder folder;
    folder.write("old.tsv", "before");
    folder.write("old.safetensors", "before");
    const auto trace = parse_text_trace(generated_rows(2000, 4, 3), "t");
    const Names names = folder.names();
    std::string text, binary, new_text;
    {
        const FileSizeLimit limit(1 << 12);
        text = message_of<io_error>([&] { logitstat::write_text_trace(folder / "old.tsv", trace); });
        binary = message_of<io_error>([&] { logitstat::write_binary_trace(folder / "old.safetensors", trace); });
        new_text = message_of<io_error>([&] { logitstat::write_text_trace(folder / "new.tsv", trace); });
    }
    const std::string reason = std::string(": cannot write: ") + std::strerror(EFBIG);
    CHECK(text == (folder / "old.tsv").string() + reason);
    CHECK(binary == (folder / "old.safetensors").string() + reason);
    CHECK(new_text == (folder / "new.tsv").string() + reason);
    CHECK(folder.names() == names);
    CHECK(content(folder / "old.tsv") == "before");
    CHECK(content(folder / "old.safetensors") == "before");
}

TEST_CASE("the folder's permissions say whether a file may be written, its own stay") {
    TemporaryFolder folder;
    fs::create_directory(folder / "closed");
    folder.write("closed/t.tsv", "before");
    folder.write("t.tsv", "before");
    fs::permissions(folder / "t.tsv", fs::perms::owner_read | fs::perms::group_read);
    fs::permissions(folder / "closed", fs::perms(0555));
    std::string refused;
    {
        const Unprivileged user;
        refused =
            message_of<io_error>([&] { logitstat::write_text_trace(folder / "closed" / "t.tsv", small_trace()); });
    }
    CHECK(refused == (folder / "closed" / "t.tsv").string() + ": cannot write: Permission denied");
    logitstat::write_text_trace(folder / "t.tsv", small_trace());
    CHECK(read_trace(folder / "t.tsv").size() == 3);
    CHECK(fs::status(folder / "t.tsv").permissions() == (fs::perms::owner_read | fs::perms::group_read));
    CHECK(content(folder / "closed" / "t.tsv") == "before");
    fs::permissions(folder / "closed", fs::perms(0755));
    CHECK(folder.names() == Names{"closed", "t.tsv"});
}

// ---- names ---------------------------------------------------------------------------------------------------------

TEST_CASE("names with spaces, quotes, line breaks and bytes that are no UTF-8") {
    TemporaryFolder folder;
    Names written;
    for (const std::string name : {" a b ", "q\"'\\", "two\nlines", "Z\xC3\xBCrich", "bad\xFF\xFE", "\x1b[31m", "-"}) {
        CAPTURE(name);
        const auto text = folder / (name + ".tsv"), binary = folder / (name + ".safetensors");
        logitstat::write_text_trace(text, small_trace());
        logitstat::write_binary_trace(binary, read_trace(text));
        CHECK(read_trace(text).source.path == text.string());
        CHECK(same_data(read_trace(binary), small_trace()));
        CHECK(logitstat::read_targets(binary).size() == 3);
        const auto array = folder.write(name + ".npy", npy("<f4", "(1, 2)", std::string(8, '\0')));
        CHECK(read_logits(array).name() == array.string());
        CHECK(message_of<io_error>([&] { read_trace(folder / (name + "?")); }).starts_with((folder / name).string()));
        for (const char* extension : {".tsv", ".safetensors", ".npy"}) { written.insert(name + extension); }
        if (name.find('\n') != name.npos) { continue; } // a manifest has its pairs in lines
        const auto manifest = folder.write(name + ".list", "name\ttag\treference\tcandidate\n" + name + "\t\t" + name +
                                                               ".tsv\t" + name + ".safetensors\n");
        written.insert(name + ".list");
        const auto pairs = logitstat::read_manifest(manifest);
        REQUIRE(pairs.size() == 1);
        CHECK(pairs[0].reference == text);
        CHECK(read_trace(pairs[0].candidate).size() == 3);
    }
    CHECK(folder.names() == written);
}

#endif

} // namespace test_hostile_files

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/stat.h>
#define LOGITSTAT_TEST_POSIX 1
#endif

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "io/memory.hpp"
#include "logitstat/io/logits_file.hpp"
#include "sanitizers.hpp"

namespace test_large_logits {

/// Files larger than memory: what is read is given back. The files are sparse, so that they need no disk.
using namespace testing;
using logitstat::LogitsFile;
using logitstat::MappedFile;
using logitstat::read_logits;
namespace fs = std::filesystem;

TEST_CASE("bytes that were released are read again") {
    TemporaryFolder folder;
    std::string bytes;
    for (std::uint32_t i = 0; i < 30000; ++i) { bytes += little_endian(i * 2654435761u, 4); }
    const MappedFile file(folder.write("x", bytes));
    CHECK((file.text() == bytes));
    for (const auto& [begin, end] :
         std::vector<std::pair<std::size_t, std::size_t>>{{0, bytes.size()},
                                                          {0, 0},
                                                          {1, 4097},
                                                          {5000, 70000},
                                                          {100000, SIZE_MAX},
                                                          {SIZE_MAX, SIZE_MAX},
                                                          {70000, 5000},
                                                          {SIZE_MAX - 5, 3},
                                                          {bytes.size(), bytes.size() + 9999}}) {
        file.release(begin, end);
        CHECK((file.text() == bytes));
    }
}

#ifdef LOGITSTAT_TEST_POSIX
TEST_CASE("a pipe's bytes stay, whatever is released") {
    TemporaryFolder folder;
    const auto path = folder / "pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const std::string values(4'000'000, 'x'), bytes = npy("<f4", "(1000, 1000)", values);
    std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
    LogitsFile file = read_logits(path);
    writer.join();
    CHECK(file.size() == 1000);
    file.release_before(1000);
    const auto rows = file.rows<float>();
    CHECK((std::string_view(reinterpret_cast<const char*>(rows.row(0).data()), values.size()) == values));
}
#endif

#if defined(__linux__)

namespace {

/// The header that numpy would write ahead of that many bytes.
std::string npy_head(const std::string& descr, std::size_t n, std::size_t v) {
    return npy(descr, "(" + std::to_string(n) + ", " + std::to_string(v) + ")", "");
}

/// Reads a value of every page of rows [0, end), and gives back what lies behind when `release`.
void walk(LogitsFile& file, std::size_t end, bool release) {
    double sum = 0;
    std::size_t pages = 0;
    file.visit([&](auto rows) {
        for (std::size_t i = 0; i < end; ++i) {
            const auto row = rows.row(i);
            for (std::size_t j = 0; j < row.size(); j += 4096 / sizeof(row[0]), ++pages) {
                sum += static_cast<double>(row[j]);
            }
            if (release) { file.release_before(i); }
        }
    });
    CHECK(sum <= 0); // holes read as zeros, in a .kld file as min_log_prob
    CHECK(pages > 0);
}

constexpr std::size_t megabyte = std::size_t{1} << 20;

} // namespace

TEST_CASE("a file of several gigabytes is walked in a few megabytes") {
    TemporaryFolder folder;
    constexpr std::size_t v = 151936, n = 5400; // 3.28 GB
    const std::string head = npy_head("<f4", n, v);
    const auto path = sparse_file(folder, "large.npy", head, head.size() + std::uintmax_t{n} * v * 4);
    std::optional<LogitsFile> file;
    try {
        if (path) { file.emplace(read_logits(*path)); }
    } catch (const logitstat::io_error& e) { MESSAGE(e.what()); } // an address space too small
    if (!file) {
        MESSAGE("SKIPPED: no sparse files here, or no room to map one");
        return;
    }
    REQUIRE(file->size() == n);
    // That the measure measures: without giving back, 300 MB of rows are 300 MB of memory.
    const auto kept = peak_growth([&] { walk(*file, 300 * megabyte / (v * 4), false); });
    if (!kept) {
        MESSAGE("SKIPPED: the system does not tell peak memory");
        return;
    }
    CHECK(*kept > 250 * megabyte);
    file->release_before(n);
    for (int pass = 0; pass < 2; ++pass) { // a second walk begins anew
        const auto growth = peak_growth([&] { walk(*file, pass == 0 ? n : n / 4, true); });
        REQUIRE(growth);
        MESSAGE("3.28 GB: peak memory grows by " << *growth / 1024 << " KiB");
        CHECK(*growth < (has_shadow_memory ? 64 * megabyte + n * v * 4 / 8 : 64 * megabyte));
        file->release_before(n);
    }
    // Going back gives back all that lies before, not only what follows the last call: it has to be read again.
    const std::size_t some = 300 * megabyte / (v * 4);
    walk(*file, some, false);
    file->release_before(some);
    CHECK(peak_growth([&] { walk(*file, some, false); }).value_or(0) > 250 * megabyte);
}

TEST_CASE("shards and .kld files are given back too") {
    TemporaryFolder folder;
    constexpr std::size_t v = 50001, n = 1000; // float16: 100 MB, rows that are no pages
    const std::string head = npy_head("<f2", n, v);
    const auto a = sparse_file(folder, "a.npy", head, head.size() + n * v * 2);
    const auto b = sparse_file(folder, "b.npy", head, head.size() + n * v * 2);
    constexpr std::int32_t chunks = 1000; // of 8 tokens, 3 rows each: 300 MB
    const std::string kld_head = "_logits_" + packed<std::int32_t>({8, v, chunks}) + std::string(chunks * 8 * 4, '\0');
    const auto kld = sparse_file(folder, "c.kld", kld_head, kld_head.size() + chunks * 3 * (8 + (v + 1) * 2));
    if (!a || !b || !kld || !peak_growth([] {})) {
        MESSAGE("SKIPPED: no sparse files here, or the system does not tell peak memory");
        return;
    }
    LogitsFile shards = read_logits(std::vector{*a, *b});
    REQUIRE(shards.size() == 2 * n);
    const auto kept = peak_growth([&] { walk(shards, 2 * n, false); });
    CHECK(kept.value_or(0) > 150 * megabyte);
    shards.release_before(2 * n);
    CHECK(peak_growth([&] { walk(shards, 2 * n, true); }).value_or(SIZE_MAX) < 32 * megabyte);

    { // rows of equal probabilities, of which only scale and min_log_prob are not zero
        std::fstream file(*kld, std::ios::binary | std::ios::in | std::ios::out);
        const std::string equal = packed<float>({0, -std::log(static_cast<float>(v))});
        for (std::size_t i = 0; i < 3 * chunks; ++i) {
            file.seekp(static_cast<std::streamoff>(kld_head.size() + i * (8 + (v + 1) * 2)));
            file.write(equal.data(), std::ssize(equal));
        }
        REQUIRE(file.flush());
    }
    LogitsFile base = read_logits(*kld);
    REQUIRE(base.size() == 3 * chunks);
    CHECK(peak_growth([&] { CHECK(positions_of(*base.kld()).censored_count() == 3 * chunks); }).value_or(SIZE_MAX) <
          32 * megabyte);
    CHECK(peak_growth([&] { walk(base, base.size(), true); }).value_or(SIZE_MAX) < 32 * megabyte);
    base.release_before(base.size());
    CHECK(peak_growth([&] { walk(base, base.size(), false); }).value_or(0) > 250 * megabyte);
}

#endif

} // namespace test_large_logits

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <doctest/doctest.h>

#include "io/invariants.hpp"
#include "logitstat/io/text_trace_reader.hpp"

/// What the tests of the file formats share.
namespace testing {

/// Rows as the tables of these tests write them: ' ' stands for a tab and '_' for a space.
inline std::string tsv(std::string text) {
    std::replace(text.begin(), text.end(), ' ', '\t');
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

/// Three good rows of three candidates, all numbers with as many decimals. Static, not inline: other statics are made of
/// them, in whatever order inline ones would begin.
static const std::string row0 = "0 0 5 1.250000 7,8,9 3.500000,2.500000,-1.500000\n";
static const std::string row1 = "0 1 6 0.500000 4,3,2 9.000000,8.000000,7.000000\n";
static const std::string row2 = "1 0 7 2.000000 1,5,6 4.000000,4.000000,0.250000\n";
static const std::string rows = row0 + row1 + row2;

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
        text.replace(at, from.size(), to);
    }
    return text;
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// What `action` throws as an E (exactly: another type fails the test); "" and a failed test when it does not.
template <class E, class Action> std::string message_of(Action action) {
    try {
        action();
    } catch (const E& e) { return e.what(); }
    FAIL_CHECK("nothing was thrown");
    return "";
}

/// Rows of a trace that a harness might have written: `k` candidates, six decimals, chunks of 8 positions.
inline std::string generated_rows(std::size_t n, std::size_t k, std::uint32_t seed) {
    std::mt19937 random(seed);
    const auto decimal = [&](int whole) {
        const std::string digits = std::to_string(random() % 1000000);
        return std::to_string(whole) + "." + std::string(6 - digits.size(), '0') + digits;
    };
    std::string text;
    for (std::size_t i = 0; i < n; ++i) {
        text += std::to_string(i / 8) + '\t' + std::to_string(i % 8) + '\t' + std::to_string(random() % 50000) + '\t' +
                decimal(static_cast<int>(random() % 12));
        for (std::size_t j = 0; j < k; ++j) {
            text += (j == 0 ? '\t' : ',') + std::to_string((random() % 100) * k + j); // distinct: j differs modulo k
        }
        for (std::size_t j = 0; j < k; ++j) { text += (j == 0 ? '\t' : ',') + decimal(static_cast<int>(k - j) * 2); }
        text += '\n';
    }
    return text;
}

/// A folder of its own for one test, removed with all it holds.
class TemporaryFolder {
  public:
    TemporaryFolder()
        : path_(std::filesystem::temp_directory_path() / ("logitstat-test-" + std::to_string(std::random_device{}()))) {
        std::filesystem::create_directory(path_);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

    std::filesystem::path write(std::string_view name, std::string_view bytes) const {
        // A file system may flush a file that is truncated and written anew: ten thousands of those take minutes.
        std::filesystem::remove(path_ / name);
        std::ofstream file(path_ / name, std::ios::binary);
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        REQUIRE(file.flush().good());
        return path_ / name;
    }
    /// The names in the folder: shows that no temporary stays behind.
    std::set<std::string> names() const {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator(path_)) {
            found.insert(entry.path().filename().string());
        }
        return found;
    }

  private:
    std::filesystem::path path_;
};

inline std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace testing

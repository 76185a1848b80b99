// dump_logits logits FILE... | dump_logits targets FILE
//
// What the library reads, for npy_numpy.py: one line of element type, rows and vocabulary, then a line of the bits of
// each row's values in hexadecimal; or one line of targets. An error goes to standard error, with status 1.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>
#include <vector>

#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/targets.hpp"

int main(int count, char** words) try {
    const std::vector<std::filesystem::path> paths(words + 2, words + count);
    if (std::string_view(words[1]) == "targets") {
        for (const auto target : logitstat::read_targets(paths.at(0))) { std::cout << target << ' '; }
        std::cout << '\n';
        return 0;
    }
    const auto file = logitstat::read_logits(paths);
    std::cout << to_string(file.element_type()) << ' ' << file.size() << ' ' << file.vocabulary() << '\n' << std::hex;
    file.visit([](auto rows) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (const auto value : rows.row(i)) {
                std::uint64_t bits = 0;
                std::memcpy(&bits, static_cast<const void*>(&value), sizeof value);
                std::cout << bits << ' ';
            }
            std::cout << '\n';
        }
    });
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}

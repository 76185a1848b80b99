// fuzz_replay                        runs every target on its seeds
// fuzz_replay FOLDER                 and on the files of FOLDER/TARGET, where that folder is
// fuzz_replay --write-seeds FOLDER   writes the seeds to FOLDER/TARGET instead
// fuzz_replay --list                 prints the targets' names
//
// Needs no libFuzzer, so that whatever a fuzzer has found is a test also where there is none.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/target.hpp"

namespace {

namespace fs = std::filesystem;

/// From memory of exactly this size, so that a sanitizer sees a read beyond it.
void run(const fuzz::Target& target, const std::string& name, std::string_view bytes) noexcept {
    const auto exact = std::make_unique<char[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), exact.get());
    std::printf("%s %s\n", target.name.c_str(), name.c_str()); // the last line names the input that ends the process
    std::fflush(stdout);
    target.run({exact.get(), bytes.size()});
}

void write(const fs::path& path, std::string_view bytes) {
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    fuzz::require(file.flush().good(), path.string() + " is written");
}

/// The seeds of a target, and a list of them as libFuzzer's -seed_inputs=@FILE takes it.
void write_seeds(const fuzz::Target& target, const fs::path& folder) {
    fs::create_directories(folder / target.name);
    std::string list;
    std::size_t number = 0;
    for (const std::string& bytes : target.seeds()) {
        const fs::path path = folder / target.name / ("seed-" + std::to_string(number++));
        write(path, bytes);
        list += (list.empty() ? "" : ",") + path.string();
    }
    write(folder / (target.name + ".list"), list);
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    std::size_t inputs = 0;
    for (const fuzz::Target& target : fuzz::targets()) {
        if (!arguments.empty() && arguments[0] == "--list") {
            std::printf("%s\n", target.name.c_str());
            continue;
        }
        if (arguments.size() == 2 && arguments[0] == "--write-seeds") {
            write_seeds(target, arguments[1]);
            continue;
        }
        std::size_t number = 0;
        for (const std::string& bytes : target.seeds()) {
            run(target, "seed-" + std::to_string(number++), bytes);
            ++inputs;
        }
        if (arguments.empty() || !fs::is_directory(fs::path(arguments[0]) / target.name)) { continue; }
        for (const auto& entry : fs::directory_iterator(fs::path(arguments[0]) / target.name)) {
            std::ifstream file(entry.path(), std::ios::binary);
            run(target, entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(file), {}));
            ++inputs;
        }
    }
    if (inputs > 0) { std::printf("%zu inputs\n", inputs); }
}

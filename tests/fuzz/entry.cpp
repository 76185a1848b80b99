// What libFuzzer calls. It passes its own options only, so the target comes in an environment variable.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/target.hpp"

namespace {
void (*run)(std::string_view) = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) noexcept;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* const wanted = std::getenv("LOGITSTAT_FUZZ_TARGET");
    std::string names;
    for (const fuzz::Target& target : fuzz::targets()) {
        if (wanted != nullptr && target.name == wanted) { run = target.run; }
        names += " " + target.name;
    }
    if (run == nullptr) {
        std::fprintf(stderr, "LOGITSTAT_FUZZ_TARGET must be one of%s\n", names.c_str());
        std::exit(2);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) noexcept {
    run({reinterpret_cast<const char*>(data), size});
    return 0;
}

#pragma once

#if defined(__linux__)

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <sys/stat.h>
#include <sys/vfs.h>

#include "io/helpers.hpp"

/// How much memory reading takes, and files that are larger than any memory. Linux.
namespace testing {

/// By how many bytes the action raises the most memory that this process has held; nothing when the system cannot say.
template <class Action> std::optional<std::size_t> peak_growth(Action action) {
    const auto status = [](const std::string& key) -> std::size_t {
        std::ifstream file("/proc/self/status");
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with(key + ":")) { return std::stoull(line.substr(key.size() + 1)) * 1024; }
        }
        return 0;
    };
    std::ofstream reset("/proc/self/clear_refs"); // 5: the peak becomes what is held now
    reset << "5" << std::flush;
    const std::size_t before = status("VmHWM");
    if (!reset || before == 0 || before > status("VmRSS") + (std::size_t{8} << 20)) { return std::nullopt; }
    action();
    return status("VmHWM") - before;
}

/// `head`, then zeros up to `size`, which take no room; nothing where the file system cannot do that, or keeps files in
/// memory.
inline std::optional<std::filesystem::path> sparse_file(const TemporaryFolder& folder, const std::string& name,
                                                        const std::string& head, std::uintmax_t size) {
    struct ::statfs system = {};
    constexpr long tmpfs = 0x01021994, ramfs = 0x858458f6;
    if (::statfs(folder.path().c_str(), &system) != 0 || system.f_type == tmpfs || system.f_type == ramfs) {
        return std::nullopt;
    }
    const std::filesystem::path path = folder.write(name, head);
    std::error_code error;
    std::filesystem::resize_file(path, size, error);
    struct ::stat file = {};
    if (error || ::stat(path.c_str(), &file) != 0 || file.st_blocks * 512 > (1 << 20)) { return std::nullopt; }
    return path;
}

} // namespace testing

#endif

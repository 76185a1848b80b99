#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/target.hpp"

/// Files for readers and writers that take a path, without a disk: thousands are needed a second.
namespace fuzz {

namespace detail {
inline std::filesystem::path path_of(int descriptor) {
    require(descriptor >= 0, "the system gives a file in memory");
    return "/proc/self/fd/" + std::to_string(descriptor);
}
inline void write_all(int descriptor, std::string_view bytes) {
    while (!bytes.empty()) {
        const ::ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
        require(written > 0, "a file in memory takes bytes");
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}
} // namespace detail

/// A regular file that holds these bytes; the path is good until the next call with the same number.
template <int number = 0> std::filesystem::path file_of(std::string_view bytes) {
    static const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
    const auto path = detail::path_of(file);
    require(::ftruncate(file, 0) == 0 && ::lseek(file, 0, SEEK_SET) == 0, "a file in memory can be emptied");
    detail::write_all(file, bytes);
    return path;
}

/// What `write` writes to the path that it is given: a pipe, which the library writes to directly. Less than 1 MiB.
template <class Write> std::string written_by(const Write& write) {
    static const auto ends = [] {
        std::array<int, 2> pipe{};
        require(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0, "the system gives a pipe");
        require(::fcntl(pipe[1], F_SETPIPE_SZ, 1 << 20) >= 1 << 20, "a pipe can hold 1 MiB");
        return pipe;
    }();
    std::string bytes;
    const auto drain = [&] {
        std::array<char, 1 << 14> block;
        for (::ssize_t got = 0; (got = ::read(ends[0], block.data(), block.size())) > 0;) {
            bytes.append(block.data(), static_cast<std::size_t>(got));
        }
    };
    try {
        write(detail::path_of(ends[1]));
    } catch (...) {
        drain();
        require(bytes.empty(), "a writer that refuses has written nothing");
        throw;
    }
    drain();
    return bytes;
}

} // namespace fuzz

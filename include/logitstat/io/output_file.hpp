#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <random>
#include <string>
#include <system_error>

#include "logitstat/error.hpp"

namespace logitstat {

namespace detail {
/// The path that symbolic links lead to, whether or not there is a file yet. Throws io_error when they do not end.
inline std::filesystem::path behind_symbolic_links(const std::filesystem::path& path) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    fs::path target = path;
    for (int hops = 0; fs::is_symlink(target, ignored); ++hops) {
        if (hops == 40) { throw io_error(path.string(), "cannot write: too many symbolic links"); }
        target = target.parent_path() / fs::read_symlink(target, ignored); // an absolute link replaces the path
    }
    return target;
}
} // namespace detail

/// A file that appears under its name only when it is complete: bytes go to a temporary beside it, `commit` renames.
/// Without `commit` (an exception on the way) the temporary is removed and a previous file keeps its content. Who may
/// write is thus for the folder to say: in one that can be written a read-only file is replaced, and stays read-only;
/// in a read-only folder nothing is written. A target that is not a regular file (/dev/stdout, a pipe) is written to
/// directly, never replaced; a symbolic link is followed.
class OutputFile {
  public:
    /// Throws io_error when the path is a directory, its symbolic links do not end, or the temporary cannot be created.
    explicit OutputFile(const std::filesystem::path& path) : name_(path.string()) {
        namespace fs = std::filesystem;
        std::error_code ignored;
        const fs::file_status status = fs::status(path, ignored);
        if (fs::is_directory(status)) { throw io_error(name_, "cannot write: it is a directory"); }
        direct_ = fs::exists(status) && !fs::is_regular_file(status);
        target_ = direct_ ? path : detail::behind_symbolic_links(path);
        written_ =
            direct_ ? target_ : target_.parent_path() / (".logitstat-part-" + std::to_string(std::random_device{}()));
        errno = 0;
        stream_.open(written_, std::ios::binary | std::ios::trunc);
        if (!stream_) { throw io_error(name_, "cannot write: " + reason()); }
        if (!direct_ && fs::exists(status)) { fs::permissions(written_, status.permissions(), ignored); }
    }

    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    ~OutputFile() {
        if (!committed_ && !direct_) {
            stream_.close();
            std::error_code ignored;
            std::filesystem::remove(written_, ignored);
        }
    }

    /// Where the bytes go, unchanged. A write that fails shows in its state, and in `commit`.
    std::ostream& stream() noexcept { return stream_; }

    /// Hands all bytes to the system. Throws io_error when one could not be written.
    void flush() {
        if (stream_) { errno = 0; } // as in `commit`
        if (!stream_.flush()) { throw io_error(name_, "cannot write: " + reason()); }
    }

    /// Completes the file under its name. Throws io_error when a byte could not be written or the rename fails; then
    /// nothing has appeared.
    void commit() {
        if (stream_) { errno = 0; } // else it is the reason why a write failed
        stream_.close();
        if (!stream_) { throw io_error(name_, "cannot write: " + reason()); }
        if (!direct_) {
            std::error_code error;
            std::filesystem::rename(written_, target_, error);
            if (error) { throw io_error(name_, "cannot write: " + error.message()); }
        }
        committed_ = true;
    }

  private:
    static std::string reason() {
        return errno != 0 ? std::generic_category().message(errno) : std::string("the output stream failed");
    }

    std::string name_;
    std::filesystem::path target_, written_;
    std::ofstream stream_;
    bool direct_ = false;
    bool committed_ = false;
};

} // namespace logitstat

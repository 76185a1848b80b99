#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <sys/stat.h>
#endif

#include "logitstat/error.hpp"

#if defined(__unix__) || defined(__APPLE__)
#define LOGITSTAT_HAS_STAT
#endif

namespace logitstat {

/// The bytes of a file, read-only: mapped when it is a regular file, so that nothing is copied and pages come as they
/// are touched; read to the end when it is a pipe (`<(zcat trace.gz)`, /dev/stdin). Movable; the bytes
/// live as long as the object.
///
/// The file must not shrink while it is mapped: touching a page beyond the new end ends the process (SIGBUS on POSIX;
/// Windows refuses to cut such a file), and between the new end and the end of its page there are zeros. Programs that
/// watch for the former (examples/cli.hpp does) and call `require_whole` against the latter are safe.
class MappedFile {
  public:
    static constexpr std::size_t head_size = 4096; ///< bytes that a reader may look at before the rest is read

    /// Throws io_error when the path does not exist, is a directory or a device, or cannot be opened, mapped or read.
    /// `look` is called with the first `head_size` bytes (all of a shorter file; not of an empty one) and throws when
    /// they are none of its format: of a pipe nothing more is then read.
    explicit MappedFile(const std::filesystem::path& path, const std::function<void(std::string_view)>& look = {})
        : path_(path) {
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::file_status status = fs::status(path, error);
        if (error) { throw io_error(path.string(), "cannot open: " + error.message()); }
        if (fs::is_directory(status)) { throw io_error(path.string(), "is a directory, not a file"); }
        if (fs::is_character_file(status) || fs::is_block_file(status)) {
            throw io_error(path.string(), "is a device, not a file");
        }
        if (!fs::is_regular_file(status)) {
            read_all(path, look);
            return;
        }
        const std::uintmax_t size = fs::file_size(path, error);
        if (error) { throw io_error(path.string(), "cannot read its size: " + error.message()); }
        if (size == 0) { // an empty mapping is refused by the system, and special files (/proc) claim to be empty
            read_all(path, look);
            return;
        }
#ifdef LOGITSTAT_HAS_STAT
        struct ::stat opened = {};
        if (::stat(path.c_str(), &opened) == 0) { device_ = opened.st_dev, inode_ = opened.st_ino; }
#endif
        try {
            using namespace boost::interprocess;
            region_ = mapped_region(file_mapping(path.string().c_str(), read_only), read_only);
            region_.advise(mapped_region::advice_sequential);
        } catch (const boost::interprocess::interprocess_exception& e) {
            throw io_error(path.string(), std::string("cannot open: ") + e.what());
        }
        if (look) { look(text().substr(0, head_size)); }
    }

    /// All bytes of the file. O(1).
    std::string_view text() const noexcept {
        if (region_.get_address() != nullptr) {
            return {static_cast<const char*>(region_.get_address()), region_.get_size()};
        }
        return buffer_;
    }

    /// Throws io_error when the file has become shorter since it was opened, so that what was read may be zeros that it
    /// never held. For the end of reading. Says nothing of a pipe, which was read whole, of a file that has another
    /// name by now, and where the system has no such call. O(1).
    void require_whole() const {
#ifdef LOGITSTAT_HAS_STAT
        struct ::stat now = {};
        if (region_.get_address() == nullptr || ::stat(path_.c_str(), &now) != 0 || now.st_dev != device_ ||
            now.st_ino != inode_) {
            return;
        }
        if (const auto size = static_cast<std::uintmax_t>(now.st_size); size < region_.get_size()) {
            throw io_error(path_.string(), "became shorter while it was read: " + std::to_string(size) + " bytes of " +
                                               std::to_string(region_.get_size()));
        }
#endif
    }

    /// Says that the bytes from `begin` up to `end` will not be read again soon, so that the memory of the pages wholly
    /// among them is given back: a walk over a file larger than memory stays small. They can still be read, from the
    /// file again, also by another thread at this moment. Nothing happens to a pipe's bytes, beyond the file's end, and
    /// where the system has no such call. O(pages); offsets in bytes.
    void release([[maybe_unused]] std::size_t begin, [[maybe_unused]] std::size_t end) const noexcept {
#if (defined(__unix__) || defined(__APPLE__)) && defined(MADV_DONTNEED)
        // Not for buffer_: the system would replace memory that is no file's by zeros.
        if (region_.get_address() == nullptr) { return; }
        const std::size_t page = boost::interprocess::mapped_region::get_page_size();
        const std::size_t size = region_.get_size();
        const std::size_t first = begin / page + (begin % page != 0 ? 1 : 0);
        const std::size_t last = end >= size ? size / page + (size % page != 0 ? 1 : 0) : end / page;
        if (first >= last) { return; }
        ::madvise(static_cast<char*>(region_.get_address()) + first * page, (last - first) * page, MADV_DONTNEED);
#endif
    }

  private:
    void read_all(const std::filesystem::path& path, const std::function<void(std::string_view)>& look) {
        std::ifstream stream(path, std::ios::binary);
        if (!stream) { throw io_error(path.string(), "cannot open"); }
        try {
            std::vector<char> block(head_size);
            while (stream.read(block.data(), std::ssize(block)), stream.gcount() > 0) {
                buffer_.append(block.data(), static_cast<std::size_t>(stream.gcount()));
                if (block.size() == head_size) {
                    if (look) { look(buffer_); }
                    block.resize(std::size_t{1} << 20);
                }
            }
        } catch (const std::bad_alloc&) {
            throw io_error(path.string(), "does not fit into memory");
        } catch (const std::ios_base::failure&) { throw io_error(path.string(), "cannot read"); }
        if (stream.bad()) { throw io_error(path.string(), "cannot read"); }
    }

    std::filesystem::path path_;
#ifdef LOGITSTAT_HAS_STAT
    ::dev_t device_ = 0; ///< of the file that is mapped: another may come under its name
    ::ino_t inode_ = 0;
#endif
    boost::interprocess::mapped_region region_;
    std::string buffer_;
};

#undef LOGITSTAT_HAS_STAT

} // namespace logitstat

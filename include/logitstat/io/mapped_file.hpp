#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
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
#endif

#include "logitstat/error.hpp"

namespace logitstat {

/// The bytes of a file, read-only: mapped when it is a regular file, so that nothing is copied and pages come as they
/// are touched; read to the end when it is a pipe (`<(zcat trace.gz)`, /dev/stdin). Movable; the bytes
/// live as long as the object.
///
/// The file must not shrink while it is mapped: touching a page beyond the new end ends the process (SIGBUS on POSIX).
class MappedFile {
  public:
    /// Throws io_error when the path does not exist, is a directory or a device, or cannot be opened, mapped or read.
    explicit MappedFile(const std::filesystem::path& path) {
        namespace fs = std::filesystem;
        std::error_code error;
        const fs::file_status status = fs::status(path, error);
        if (error) { throw io_error(path.string(), "cannot open: " + error.message()); }
        if (fs::is_directory(status)) { throw io_error(path.string(), "is a directory, not a file"); }
        if (fs::is_character_file(status) || fs::is_block_file(status)) {
            throw io_error(path.string(), "is a device, not a file");
        }
        if (!fs::is_regular_file(status)) {
            read_all(path);
            return;
        }
        const std::uintmax_t size = fs::file_size(path, error);
        if (error) { throw io_error(path.string(), "cannot read its size: " + error.message()); }
        if (size == 0) { // an empty mapping is refused by the system, and special files (/proc) claim to be empty
            read_all(path);
            return;
        }
        try {
            using namespace boost::interprocess;
            region_ = mapped_region(file_mapping(path.string().c_str(), read_only), read_only);
            region_.advise(mapped_region::advice_sequential);
        } catch (const boost::interprocess::interprocess_exception& e) {
            throw io_error(path.string(), std::string("cannot open: ") + e.what());
        }
    }

    /// All bytes of the file. O(1).
    std::string_view text() const noexcept {
        if (region_.get_address() != nullptr) {
            return {static_cast<const char*>(region_.get_address()), region_.get_size()};
        }
        return buffer_;
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
    void read_all(const std::filesystem::path& path) {
        std::ifstream stream(path, std::ios::binary);
        if (!stream) { throw io_error(path.string(), "cannot open"); }
        try {
            std::vector<char> block(std::size_t{1} << 20);
            while (stream.read(block.data(), std::ssize(block)), stream.gcount() > 0) {
                buffer_.append(block.data(), static_cast<std::size_t>(stream.gcount()));
            }
        } catch (const std::bad_alloc&) {
            throw io_error(path.string(), "does not fit into memory");
        } catch (const std::ios_base::failure&) { throw io_error(path.string(), "cannot read"); }
        if (stream.bad()) { throw io_error(path.string(), "cannot read"); }
    }

    boost::interprocess::mapped_region region_;
    std::string buffer_;
};

} // namespace logitstat

#pragma once

#include <bit>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/npy_header.hpp"
#include "logitstat/io/tensor.hpp"

/// The .npy format (numpy.lib.format): "\x93NUMPY", two bytes of version, the length of the header in 2 bytes (version
/// 1) or 4 (versions 2 and 3), little-endian; the header; the elements of one array.
namespace logitstat {

static_assert(std::endian::native == std::endian::little, ".npy data are viewed in place: little-endian only");

/// Headers longer than this are refused: those of plain arrays have some hundred bytes, and numpy itself takes 10,000.
inline constexpr std::size_t longest_npy_header = 65'535;

/// Do these bytes begin like an .npy file?
inline bool looks_like_npy(std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); }

/// An .npy file, memory-mapped: one array of numbers, row-major. Only the header is read; the tensor is a view of the
/// mapping and lives as long as this object, also when it is moved.
class NpyFile {
  public:
    /// O(header). Throws io_error when the file cannot be opened; parse_error, naming the file and what is wrong, for a
    /// version other than 1.0, 2.0 and 3.0, a header that is not of numpy's form, a dtype that is big-endian or no
    /// number of 1 to 8 bytes, an array in column order, and data shorter or longer than the shape asks for.
    explicit NpyFile(const std::filesystem::path& path) : NpyFile(MappedFile(path), path.string()) {}

    /// The same from a file that has been opened; `name` stands for it in errors.
    NpyFile(MappedFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {
        const std::string_view bytes = file_.text();
        const auto fail = [&](const std::string& reason) { throw parse_error(name_, "npy: " + reason); };
        if (!looks_like_npy(bytes)) { fail("the file does not begin with \\x93NUMPY"); }
        const auto byte = [&](std::size_t at) -> std::size_t {
            if (at >= bytes.size()) { fail("the file ends at byte " + std::to_string(at) + ", inside its header"); }
            return static_cast<unsigned char>(bytes[at]);
        };
        const std::size_t major = byte(6), minor = byte(7);
        if (major < 1 || major > 3 || minor != 0) {
            fail("version " + std::to_string(major) + "." + std::to_string(minor) + ", known are 1.0, 2.0 and 3.0");
        }
        std::size_t length = byte(8) | byte(9) << 8, begin = 10;
        if (major > 1) {
            length |= byte(10) << 16 | byte(11) << 24;
            begin = 12;
        }
        if (length > longest_npy_header) {
            fail("a header of " + std::to_string(length) + " bytes, more than " + std::to_string(longest_npy_header));
        }
        if (length > bytes.size() - begin) {
            fail("a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(bytes.size()));
        }
        auto header = detail::NpyHeaderParser(bytes.substr(begin, length), begin, name_).parse();
        tensor_.type = detail::npy_tensor_type(header.descr, name_);
        if (header.fortran_order) {
            fail("the array is in column order (fortran_order is True): write it with numpy.ascontiguousarray");
        }
        tensor_.shape = std::move(header.shape);
        const std::string_view data = bytes.substr(begin + length);
        const auto wanted = byte_count(tensor_.type, tensor_.shape);
        if (!wanted) {
            fail("shape " + detail::shape_text(tensor_.shape) + " asks for more bytes than can be counted");
        }
        if (*wanted != data.size()) {
            fail("shape " + detail::shape_text(tensor_.shape) + " of " + std::string(header.descr) + " asks for " +
                 std::to_string(*wanted) + " bytes, the file holds " + std::to_string(data.size()) +
                 (data.size() < *wanted ? ": it was cut" : ""));
        }
        tensor_.bytes = std::as_bytes(std::span(data));
    }

    const Tensor& tensor() const noexcept { return tensor_; }  ///< without a name
    const std::string& name() const noexcept { return name_; } ///< as errors give it
    const MappedFile& file() const noexcept { return file_; }  ///< the bytes

  private:
    MappedFile file_;
    std::string name_;
    Tensor tensor_;
};

} // namespace logitstat

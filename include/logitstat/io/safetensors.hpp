#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/safetensors_header.hpp"
#include "logitstat/io/tensor.hpp"

/// The safetensors format (github.com/huggingface/safetensors): 8 bytes of header length, little-endian; a JSON header;
/// the tensors' bytes, back to back. Needs nlohmann-json.
namespace logitstat {

static_assert(std::endian::native == std::endian::little, "safetensors data are viewed in place: little-endian only");

/// Headers longer than this are refused, as the format's reference implementation does.
inline constexpr std::uint64_t longest_safetensors_header = 100'000'000;

/// Do these bytes begin like a safetensors file? A header's length has zeros in its upper bytes, so that no text does.
inline bool looks_like_safetensors(std::string_view bytes) {
    return bytes.size() > 8 && bytes.substr(4, 5) == std::string_view("\0\0\0\0{", 5);
}

/// A safetensors file, memory-mapped. Only the header is read; tensors are views of the mapping and live as long as
/// this object, also when it is moved.
class SafetensorsFile {
  public:
    /// O(header). Throws io_error when the file cannot be opened; parse_error, naming the file, the tensor and what is
    /// wrong, for anything but a file that the reference implementation would accept. Stricter than that: the header
    /// begins with '{', no key comes twice, a tensor has no members but dtype, shape and data_offsets, and at most 64
    /// dimensions.
    explicit SafetensorsFile(const std::filesystem::path& path) : SafetensorsFile(MappedFile(path), path.string()) {}

    /// The same from a file that has been opened; `name` stands for it in errors.
    SafetensorsFile(MappedFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {
        const std::string_view bytes = file_.text();
        const auto fail = [&](const std::string& reason) {
            throw parse_error(name_, "not a safetensors file: " + reason);
        };
        std::uint64_t length = 0;
        if (bytes.size() < sizeof length) {
            fail(std::to_string(bytes.size()) + " bytes are fewer than a header's length takes");
        }
        std::memcpy(&length, bytes.data(), sizeof length);
        if (length > longest_safetensors_header) {
            fail("a header of " + std::to_string(length) + " bytes, more than " +
                 std::to_string(longest_safetensors_header));
        }
        if (length > bytes.size() - sizeof length) {
            fail("a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(bytes.size()));
        }
        const std::string_view data = bytes.substr(sizeof length + length);
        auto header = detail::parse_safetensors_header(bytes.substr(sizeof length, length), data.size(), name_);
        metadata_ = std::move(header.metadata);
        tensors_.reserve(header.tensors.size());
        for (detail::TensorEntry& entry : header.tensors) {
            entry.tensor.bytes = std::as_bytes(std::span(data.substr(entry.begin, entry.end - entry.begin)));
            tensors_.push_back(std::move(entry.tensor));
        }
        by_name_.resize(tensors_.size());
        for (std::size_t i = 0; i < by_name_.size(); ++i) { by_name_[i] = i; }
        std::ranges::sort(by_name_, {}, [&](std::size_t i) { return std::string_view(tensors_[i].name); });
    }

    const std::vector<Tensor>& tensors() const noexcept { return tensors_; }   ///< in the order of their bytes
    const SafetensorsMetadata& metadata() const noexcept { return metadata_; } ///< `__metadata__`, in the file's order
    const std::string& name() const noexcept { return name_; }                 ///< as errors give it
    const MappedFile& file() const noexcept { return file_; }                  ///< the bytes
    std::size_t size() const noexcept { return file_.text().size(); }          ///< bytes of the whole file

    /// The tensor of that name, nullptr when absent. O(log tensors).
    const Tensor* find(std::string_view name) const {
        const auto at = std::ranges::lower_bound(by_name_, name, {},
                                                 [&](std::size_t i) { return std::string_view(tensors_[i].name); });
        return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
    }

    /// The elements in place, row-major. T is the C++ type of the tensor's type (Eigen::half for F16, Eigen::bfloat16
    /// for BF16, std::uint8_t for U8 and BOOL). Throws parse_error when it is another, or when the bytes are not
    /// aligned for T, which files of other writers may be: see `is_aligned`.
    template <class T> std::span<const T> values(const Tensor& tensor) const {
        const auto fail = [&](const std::string& reason) {
            throw parse_error(name_, "tensor " + detail::excerpt(tensor.name) + ": " + reason);
        };
        const bool as_byte = tensor.type == tensor_type::BOOL && tensor_type_for<T>() == tensor_type::U8;
        if (tensor.type != tensor_type_for<T>() && !as_byte) {
            fail("is of type " + std::string(to_string(tensor.type)) + ", not " +
                 std::string(to_string(tensor_type_for<T>())));
        }
        if (!is_aligned(tensor)) { fail("its bytes are not aligned for its type and cannot be viewed in place"); }
        return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
    }

    /// Can the elements be viewed in place? Always so in files of `write_safetensors`.
    static bool is_aligned(const Tensor& tensor) {
        const std::size_t alignment = (std::max)(1u, element_bits(tensor.type) / 8);
        return tensor.bytes.empty() || reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % alignment == 0;
    }

  private:
    MappedFile file_;
    std::string name_;
    SafetensorsMetadata metadata_;
    std::vector<Tensor> tensors_;
    std::vector<std::size_t> by_name_; ///< indices into tensors_, by their names
};

namespace detail {

/// The header for tensors that are in the order of their bytes, padded so that the data begin at a multiple of 64.
inline std::string safetensors_header(std::span<const Tensor* const> tensors, const SafetensorsMetadata& metadata) {
    nlohmann::ordered_json::object_t header; // a vector of members: appending does not search
    if (!metadata.empty()) {
        nlohmann::ordered_json::object_t strings;
        for (const auto& [key, value] : metadata) { strings.push_back({key, value}); }
        header.push_back({"__metadata__", std::move(strings)});
    }
    std::uint64_t offset = 0;
    for (const Tensor* tensor : tensors) {
        const std::uint64_t end = offset + tensor->bytes.size();
        header.push_back({tensor->name, nlohmann::ordered_json{{"dtype", to_string(tensor->type)},
                                                               {"shape", tensor->shape},
                                                               {"data_offsets", {offset, end}}}});
        offset = end;
    }
    std::string text;
    try {
        text = nlohmann::ordered_json(std::move(header)).dump();
    } catch (const nlohmann::ordered_json::type_error&) {
        throw std::invalid_argument("safetensors: a tensor's name or a metadata string is not UTF-8");
    }
    text.append((64 - (sizeof(std::uint64_t) + text.size()) % 64) % 64, ' ');
    return text;
}

} // namespace detail

/// Writes a safetensors file, which appears under its name only when it is complete. The data begin at a multiple of 64
/// and the tensors follow each other by descending element size, otherwise in the given order: so each is aligned for
/// its type although the format allows no padding between them. O(bytes).
/// Throws std::invalid_argument before the first byte when bytes do not fit type and shape, a shape has more than 64
/// dimensions, a name or a metadata key comes twice, a name is `__metadata__`, a string is not UTF-8, or a reader would
/// refuse the header's size; io_error when the file cannot be written; and whatever `last_check` throws, which is
/// called when all is written and before the file has its name: of bytes that are viewed in a file, that it did not
/// shrink.
inline void write_safetensors(const std::filesystem::path& path, std::span<const Tensor> tensors,
                              const SafetensorsMetadata& metadata = {}, const std::function<void()>& last_check = {}) {
    const auto fail = [](const std::string& what, const std::string& name, const std::string& reason) {
        throw std::invalid_argument("safetensors: " + what + " " + detail::excerpt(name) + ": " + reason);
    };
    std::vector<const Tensor*> order;
    std::vector<std::string_view> names, keys;
    for (const Tensor& tensor : tensors) {
        if (tensor.name == "__metadata__") { fail("tensor", tensor.name, "the name is reserved"); }
        if (tensor.shape.size() > detail::SafetensorsHeaderSax::most_dimensions) {
            fail("tensor", tensor.name, "too many dimensions");
        }
        if (const auto wanted = byte_count(tensor.type, tensor.shape); !wanted || *wanted != tensor.bytes.size()) {
            fail("tensor", tensor.name,
                 std::to_string(tensor.bytes.size()) + " bytes do not fit its type and shape" +
                     (wanted ? ", which ask for " + std::to_string(*wanted) : std::string()));
        }
        order.push_back(&tensor);
        names.push_back(tensor.name);
    }
    for (const auto& [key, value] : metadata) { keys.push_back(key); }
    std::ranges::sort(names);
    std::ranges::sort(keys);
    if (const auto twin = std::ranges::adjacent_find(names); twin != names.end()) {
        fail("tensor", std::string(*twin), "comes twice");
    }
    if (const auto twin = std::ranges::adjacent_find(keys); twin != keys.end()) {
        fail("metadata", std::string(*twin), "comes twice");
    }
    std::ranges::stable_sort(order, std::greater(), [](const Tensor* tensor) { return element_bits(tensor->type); });

    const std::string header = detail::safetensors_header(order, metadata);
    const std::uint64_t length = header.size();
    if (length > longest_safetensors_header) {
        throw std::invalid_argument("safetensors: a header of " + std::to_string(length) +
                                    " bytes, more than readers take");
    }
    OutputFile file(path);
    std::array<char, sizeof length> length_bytes;
    std::memcpy(length_bytes.data(), &length, sizeof length);
    file.stream().write(length_bytes.data(), length_bytes.size());
    file.stream().write(header.data(), static_cast<std::streamsize>(header.size()));
    for (const Tensor* tensor : order) {
        file.stream().write(reinterpret_cast<const char*>(tensor->bytes.data()),
                            static_cast<std::streamsize>(tensor->bytes.size()));
    }
    file.flush();
    if (last_check) { last_check(); }
    file.commit();
}

} // namespace logitstat

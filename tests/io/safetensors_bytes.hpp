#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Safetensors files put together byte by byte, without the library's writer.
namespace testing {

inline std::string with_length(std::string_view header, std::string_view data, std::uint64_t length) {
    std::string bytes;
    for (int shift = 0; shift < 64; shift += 8) { bytes += static_cast<char>((length >> shift) & 255); }
    return bytes.append(header).append(data);
}
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
    return with_length(header, data, header.size());
}

/// A tensor of a foreign writer, its values as bytes.
struct ForeignTensor {
    std::string name, dtype;
    std::vector<std::size_t> shape;
    std::string data;
};

template <class T> std::string bytes_of(std::span<const T> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
template <class To, class From> std::string bytes_as(std::span<const From> values) {
    std::vector<To> converted;
    for (const From value : values) { converted.push_back(static_cast<To>(value)); }
    return bytes_of(std::span<const To>(converted));
}

/// Tensors in the given order, the header neither sorted nor padded but for `spaces`.
inline std::string foreign_file(const std::vector<ForeignTensor>& tensors, const std::string& metadata,
                                std::size_t spaces = 0) {
    std::string header = "{\"__metadata__\": " + metadata, data;
    for (const ForeignTensor& tensor : tensors) {
        std::string shape;
        for (const std::size_t extent : tensor.shape) { shape += (shape.empty() ? "" : ",") + std::to_string(extent); }
        header += ", \"" + tensor.name + "\": {\"shape\": [" + shape + "], \"data_offsets\": [" +
                  std::to_string(data.size()) + ", " + std::to_string(data.size() + tensor.data.size()) +
                  "], \"dtype\": \"" + tensor.dtype + "\"}";
        data += tensor.data;
    }
    return safetensors_bytes(header + "}" + std::string(spaces, ' '), data);
}

} // namespace testing

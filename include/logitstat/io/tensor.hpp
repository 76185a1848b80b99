#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <Eigen/Core>

/// A tensor as a file holds it: a name, a type, a shape, and the bytes.
namespace logitstat {

/// Element types of the safetensors format. The last of them have no C++ type here: their bytes can be carried, not
/// interpreted.
enum class tensor_type {
    F64,
    F32,
    F16,
    BF16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    BOOL,
    C64,
    F8_E5M2,
    F8_E4M3,
    F8_E8M0,
    F6_E2M3,
    F6_E3M2,
    F4
};

namespace detail {
struct TensorTypeInfo {
    tensor_type type;
    std::string_view name;
    unsigned bits;
};
inline constexpr TensorTypeInfo tensor_types[] = {
    {tensor_type::F64, "F64", 64},        {tensor_type::F32, "F32", 32},
    {tensor_type::F16, "F16", 16},        {tensor_type::BF16, "BF16", 16},
    {tensor_type::I64, "I64", 64},        {tensor_type::I32, "I32", 32},
    {tensor_type::I16, "I16", 16},        {tensor_type::I8, "I8", 8},
    {tensor_type::U64, "U64", 64},        {tensor_type::U32, "U32", 32},
    {tensor_type::U16, "U16", 16},        {tensor_type::U8, "U8", 8},
    {tensor_type::BOOL, "BOOL", 8},       {tensor_type::C64, "C64", 64},
    {tensor_type::F8_E5M2, "F8_E5M2", 8}, {tensor_type::F8_E4M3, "F8_E4M3", 8},
    {tensor_type::F8_E8M0, "F8_E8M0", 8}, {tensor_type::F6_E2M3, "F6_E2M3", 6},
    {tensor_type::F6_E3M2, "F6_E3M2", 6}, {tensor_type::F4, "F4", 4}};
} // namespace detail

/// The name in a file, "F32".
constexpr std::string_view to_string(tensor_type type) {
    return detail::tensor_types[static_cast<std::size_t>(type)].name;
}
/// Bits of one element: below 8 for the packed types.
constexpr unsigned element_bits(tensor_type type) { return detail::tensor_types[static_cast<std::size_t>(type)].bits; }
/// The type of that name; nothing when there is none.
constexpr std::optional<tensor_type> tensor_type_of(std::string_view name) {
    for (const detail::TensorTypeInfo& info : detail::tensor_types) {
        if (info.name == name) { return info.type; }
    }
    return std::nullopt;
}

/// Non-owning: the bytes belong to the file or to whoever fills the tensor. Row-major, little-endian.
struct Tensor {
    std::string name;                      ///< in a safetensors file; empty for .npy, which has none
    tensor_type type = tensor_type::F32;   ///< of the elements
    std::vector<std::uint64_t> shape = {}; ///< empty: one element
    std::span<const std::byte> bytes = {}; ///< `byte_count(type, shape)` of them
};

/// The bytes that type and shape ask for; nothing when they do not fit 64 bits or are no whole number.
constexpr std::optional<std::uint64_t> byte_count(tensor_type type, std::span<const std::uint64_t> shape) {
    std::uint64_t bits = element_bits(type);
    for (const std::uint64_t extent : shape) {
        if (extent != 0 && bits > UINT64_MAX / extent) { return std::nullopt; }
        bits *= extent;
    }
    return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

namespace detail {
/// "[3, 8]", for errors.
inline std::string shape_text(std::span<const std::uint64_t> shape) {
    std::string text;
    for (const std::uint64_t extent : shape) { text += (text.empty() ? "" : ", ") + std::to_string(extent); }
    return "[" + text + "]";
}
} // namespace detail

/// The tensor_type of a C++ type. BOOL has none: reading a byte other than 0 and 1 as a bool is undefined.
template <class T> constexpr tensor_type tensor_type_for() {
    if constexpr (std::is_same_v<T, double>) {
        return tensor_type::F64;
    } else if constexpr (std::is_same_v<T, float>) {
        return tensor_type::F32;
    } else if constexpr (std::is_same_v<T, Eigen::half>) {
        return tensor_type::F16;
    } else if constexpr (std::is_same_v<T, Eigen::bfloat16>) {
        return tensor_type::BF16;
    } else {
        static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool>, "no tensor type for this C++ type");
        constexpr tensor_type with_sign[] = {tensor_type::I8, tensor_type::I16, tensor_type::I32, tensor_type::I64};
        constexpr tensor_type without[] = {tensor_type::U8, tensor_type::U16, tensor_type::U32, tensor_type::U64};
        constexpr std::size_t size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return std::is_signed_v<T> ? with_sign[size] : without[size];
    }
}

/// A tensor over values that the caller keeps alive. Its shape is not checked against their number: writing it does.
template <class T> Tensor tensor_over(std::string name, std::vector<std::uint64_t> shape, std::span<const T> values) {
    return {std::move(name), tensor_type_for<T>(), std::move(shape), std::as_bytes(values)};
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "logitstat/io/tensor.hpp"
#include "logitstat/trace/column.hpp"

/// Tensors that cannot be viewed in place, turned into columns of the library's own types.
namespace logitstat::detail {

/// to[i] = one(element i as a From, i). Through memcpy, since the bytes may have any alignment.
template <class From, class To, class Convert>
void convert_elements(const Tensor& from, Column<To>& to, const Convert& one) {
    to.resize(from.bytes.size() / sizeof(From));
    for (std::size_t i = 0; i < to.size(); ++i) {
        From value;
        std::memcpy(static_cast<void*>(&value), from.bytes.data() + i * sizeof(From), sizeof(From));
        to[i] = one(value, i);
    }
}

constexpr bool is_integer(tensor_type type) { return type >= tensor_type::I64 && type <= tensor_type::U8; }

/// The same from whichever integer type the tensor has; false, and nothing done, when it has none.
template <class To, class Convert> bool convert_integers(const Tensor& from, Column<To>& to, const Convert& one) {
    switch (from.type) {
    case tensor_type::I8: convert_elements<std::int8_t>(from, to, one); return true;
    case tensor_type::I16: convert_elements<std::int16_t>(from, to, one); return true;
    case tensor_type::I32: convert_elements<std::int32_t>(from, to, one); return true;
    case tensor_type::I64: convert_elements<std::int64_t>(from, to, one); return true;
    case tensor_type::U8: convert_elements<std::uint8_t>(from, to, one); return true;
    case tensor_type::U16: convert_elements<std::uint16_t>(from, to, one); return true;
    case tensor_type::U32: convert_elements<std::uint32_t>(from, to, one); return true;
    case tensor_type::U64: convert_elements<std::uint64_t>(from, to, one); return true;
    default: return false;
    }
}

} // namespace logitstat::detail

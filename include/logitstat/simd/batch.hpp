#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include <xsimd/xsimd.hpp>

/// The only header that names calls which differ between versions of xsimd (8 to 13), and the few vector idioms that
/// the kernels share. Everything is templated on the architecture, so that one build can hold several.
namespace logitstat::simd {

/// One register of T in the instruction set Arch.
template <class T, class Arch> using batch = xsimd::batch<T, Arch>;

/// Sum of the lanes. By way of memory: it runs once a block, and g++ 12 warns inside its own AVX-512 headers when xsimd
/// adds across a register.
template <class T, class Arch> T sum_lanes(const batch<T, Arch>& x) {
    std::array<T, batch<T, Arch>::size> lanes;
    x.store_unaligned(lanes.data());
    return std::accumulate(lanes.begin(), lanes.end(), T(0));
}

/// The same, added in double.
template <class T, class Arch> double sum_in_double(const batch<T, Arch>& x) {
    std::array<T, batch<T, Arch>::size> lanes;
    x.store_unaligned(lanes.data());
    double sum = 0;
    for (const T lane : lanes) { sum += static_cast<double>(lane); }
    return sum;
}

/// Largest of the lanes.
template <class T, class Arch> T max_lane(const batch<T, Arch>& x) {
    std::array<T, batch<T, Arch>::size> lanes;
    x.store_unaligned(lanes.data());
    T max = lanes[0];
    for (const T lane : lanes) { max = lane > max ? lane : max; }
    return max;
}

/// Bitwise or of the lanes.
template <std::unsigned_integral T, class Arch> T or_lanes(const batch<T, Arch>& x) {
    std::array<T, batch<T, Arch>::size> lanes;
    x.store_unaligned(lanes.data());
    return std::accumulate(lanes.begin(), lanes.end(), T(0), std::bit_or<>());
}

namespace detail {
#if defined(__GNUC__)
template <class T, std::size_t Bytes> struct vector_of { using type [[gnu::vector_size(Bytes)]] = T; };
#endif
} // namespace detail

/// A batch of wider numbers from memory of any alignment, each converted exactly. By the compilers' own vector
/// conversion where they have one: a loop becomes one only at high optimisation, and xsimd's converting load is a loop.
template <class To, class Arch, class From> batch<To, Arch> load_widened(const From* from) {
    constexpr std::size_t lanes = batch<To, Arch>::size;
#if defined(__GNUC__)
    typename detail::vector_of<From, lanes * sizeof(From)>::type narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    const auto wide = __builtin_convertvector(narrow, typename detail::vector_of<To, lanes * sizeof(To)>::type);
#else
    std::array<To, lanes> wide;
    std::copy_n(from, lanes, wide.begin());
#endif
    std::array<To, lanes> memory; // of which no trace is left: a load from what was just stored is the register
    std::memcpy(memory.data(), &wide, sizeof memory);
    return batch<To, Arch>::load_unaligned(memory.data());
}

/// A batch of doubles from `double` or `float` memory of any alignment; floats are widened exactly.
template <class Arch> batch<double, Arch> load_doubles(const double* from) {
    return batch<double, Arch>::load_unaligned(from);
}
/// The same of floats.
template <class Arch> batch<double, Arch> load_doubles(const float* from) { return load_widened<double, Arch>(from); }

/// Where comparisons are counted: comparing 512-bit registers gives a mask register, of which few are made a cycle, so
/// the 256-bit form, whose result is a vector that is subtracted, counts faster.
template <class Arch>
using counting_arch = std::conditional_t<std::is_base_of_v<xsimd::avx512f, Arch>, xsimd::avx2, Arch>;

/// Adds one to the lanes of `count` where `mask` holds. Counting in the type that was compared keeps mask and counter
/// in registers of one shape; a count in double is exact up to 2^53.
template <class T, class Arch> void count_lanes(batch<T, Arch>& count, const xsimd::batch_bool<T, Arch>& mask) {
    if constexpr (std::is_integral_v<T> && sizeof(mask) == sizeof(count)) {
        count -= xsimd::bitwise_cast(mask); // a true lane is all ones, that is -1
    } else {
        count = xsimd::select(mask, count + batch<T, Arch>(T(1)), count); // one masked addition on AVX-512
    }
}

} // namespace logitstat::simd

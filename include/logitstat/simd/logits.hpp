#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <Eigen/Core>

#include "logitstat/simd/batch.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/x86.hpp"

/// The element types that a row of logits may have, and how they become registers of float or double. Sixteen-bit types
/// are widened in registers by arithmetic that every instruction set has; all conversions are exact.
namespace logitstat::simd {

/// float, double, IEEE half precision (Eigen::half) or bfloat16 (Eigen::bfloat16).
template <class T>
concept logit_type = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Eigen::half> ||
    std::same_as<T, Eigen::bfloat16>;

/// The type that reductions over T compute in: double for double, float for the others.
template <logit_type T> using wide_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// One logit, widened exactly. NaN and infinities keep their meaning.
template <logit_type T> wide_t<T> widen(T x) { return static_cast<wide_t<T>>(x); }

/// Two registers of consecutive logits, in an order of their own: sums and maxima do not ask for one.
template <class Real, class Arch> struct TwoBatches {
    batch<Real, Arch> a, ///< one half of them
        b;               ///< the other
};

/// Does load_two keep the order of memory?
template <logit_type T, class Arch>
inline constexpr bool loads_in_order = sizeof(T) > 2 || (std::is_same_v<T, Eigen::half> && f16c_arch<Arch>);

/// Logits in two registers of T's wide type.
template <logit_type T, class Arch> inline constexpr std::size_t two_batches = 2 * batch<wide_t<T>, Arch>::size;

namespace detail {

template <class Arch> using words32 = batch<std::uint32_t, Arch>;

/// 2n sixteen-bit logits as n words: the low halves hold one of each two neighbours, the high halves the other.
template <class Arch, class T> [[gnu::always_inline]] inline words32<Arch> load_words(const T* from) {
    static_assert(sizeof(T) == 2);
    using shorts = batch<std::uint16_t, Arch>;
    return xsimd::bitwise_cast<words32<Arch>>(shorts::load_unaligned(reinterpret_cast<const std::uint16_t*>(from)));
}

/// Half precision in the upper 16 bits of each word (the lower ones are ignored) to float, exact for every input.
///
/// Exponent and fraction move to their places in a float and the exponent gets the bias of float: t. That is the value
/// of a normal number; a subnormal one, whose exponent field is 0, must be 2t - 2^-14, and that is the smaller of the
/// two exactly for those. No float on the way is subnormal, so the result does not depend on flush-to-zero modes.
template <class Arch> [[gnu::always_inline]] inline batch<float, Arch> widen_half(const words32<Arch>& word) {
    using floats = batch<float, Arch>;
    using ints = batch<std::int32_t, Arch>;
    constexpr std::int32_t rebias = (127 - 15) << 23, largest = 0x0f7f'ffff;
    const ints magnitude = (xsimd::bitwise_cast<ints>(word) >> 3) & ints(0x0fff'e000);
    const floats t = xsimd::bitwise_cast<floats>(magnitude + ints(rebias));
    const ints finite = xsimd::bitwise_cast<ints>((xsimd::min)(t, xsimd::fma(t, floats(2.f), floats(-0x1p-14f))));
    const ints value = xsimd::select(magnitude > ints(largest), finite + ints(rebias), finite); // infinity and NaN
    return xsimd::bitwise_cast<floats>(xsimd::bitwise_cast<words32<Arch>>(value) |
                                       (word & words32<Arch>(0x8000'0000u)));
}

} // namespace detail

/// two_batches<T, Arch> logits from memory of any alignment.
template <class Arch, logit_type T> [[gnu::always_inline]] inline TwoBatches<wide_t<T>, Arch> load_two(const T* from) {
    if constexpr (sizeof(T) > 2) {
        using reals = batch<T, Arch>;
        return {reals::load_unaligned(from), reals::load_unaligned(from + reals::size)};
    } else if constexpr (loads_in_order<T, Arch>) {
        return {detail::load_halves<Arch>(from), detail::load_halves<Arch>(from + batch<float, Arch>::size)};
    } else {
        using words = detail::words32<Arch>;
        const words both = detail::load_words<Arch>(from);
        const words low = both << 16;
        if constexpr (std::is_same_v<T, Eigen::half>) {
            return {detail::widen_half<Arch>(low), detail::widen_half<Arch>(both)};
        } else {
            using floats = batch<float, Arch>;
            return {xsimd::bitwise_cast<floats>(low), xsimd::bitwise_cast<floats>(both & words(0xffff'0000u))};
        }
    }
}

/// True for NaN of either sign and +infinity, by the bits; false for -infinity, which is a masked token's logit.
template <logit_type T> bool is_nan_or_positive_infinity(T x) {
    using bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
    constexpr bits infinity = sizeof(bits) == 8 ? static_cast<bits>(0x7ff0'0000'0000'0000u) : bits{0x7f80'0000u};
    constexpr bits sign = ~(~bits(0) >> 1);
    const bits value = std::bit_cast<bits>(widen(x));
    return (value & ~sign) > infinity || value == infinity;
}

} // namespace logitstat::simd

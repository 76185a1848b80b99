#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "logitstat/simd/batch.hpp"

/// Reductions over whole columns: one streaming pass each, memory bound, any alignment, any length.
namespace logitstat::simd {

/// Index of the first i with a[i] != b[i], or a.size() when there is none. Precondition: equal sizes. O(n), stops at
/// the first difference.
template <class Arch = xsimd::default_arch>
std::size_t first_difference(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    using ints = batch<std::int32_t, Arch>;
    std::size_t i = 0;
    for (; i + ints::size <= a.size(); i += ints::size) {
        if (xsimd::any(ints::load_unaligned(&a[i]) != ints::load_unaligned(&b[i]))) { break; }
    }
    while (i < a.size() && a[i] == b[i]) { ++i; }
    return i;
}

/// Number of i with a[i] != b[i]. Precondition: equal sizes. O(n).
template <class Arch = xsimd::default_arch>
std::int64_t count_different(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    using ints = batch<std::int32_t, Arch>;
    // Lanes count in int32, so they are emptied into the 64-bit total long before they could overflow.
    constexpr std::size_t stretch = ints::size * (std::size_t{1} << 20);
    std::int64_t total = 0;
    std::size_t i = 0;
    while (i + ints::size <= a.size()) {
        const std::size_t end = (std::min)(a.size(), i + stretch);
        ints lanes(0);
        for (; i + ints::size <= end; i += ints::size) {
            count_lanes(lanes, ints::load_unaligned(&a[i]) != ints::load_unaligned(&b[i]));
        }
        total += sum_lanes(lanes);
    }
    for (; i < a.size(); ++i) { total += a[i] != b[i]; }
    return total;
}

/// True when the exponent is not all ones: neither infinite nor NaN. Tests the bits, so -ffast-math cannot remove it.
template <std::floating_point Real> constexpr bool is_finite(Real x) noexcept {
    if constexpr (sizeof(Real) == 4) {
        return (~std::bit_cast<std::uint32_t>(x) & 0x7f80'0000u) != 0;
    } else {
        return (~std::bit_cast<std::uint64_t>(x) & 0x7ff0'0000'0000'0000u) != 0;
    }
}

/// True for an infinity of either sign, by the bits.
template <std::floating_point Real> constexpr bool is_infinite(Real x) noexcept {
    if constexpr (sizeof(Real) == 4) {
        return (std::bit_cast<std::uint32_t>(x) << 1) == 0xff00'0000u;
    } else {
        return (std::bit_cast<std::uint64_t>(x) << 1) == 0xffe0'0000'0000'0000u;
    }
}

/// No lane is infinite or NaN.
template <std::floating_point Real, class Arch> bool all_finite(const batch<Real, Arch>& x) {
    std::array<Real, batch<Real, Arch>::size> lanes;
    x.store_unaligned(lanes.data());
    bool all = true;
    for (const Real lane : lanes) { all &= is_finite(lane); }
    return all;
}

/// Index of the first infinite or NaN value, or values.size() when all are finite. O(n), stops at the first.
template <class Arch = xsimd::default_arch, std::floating_point Real>
std::size_t first_non_finite(std::span<const Real> values) {
    using bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
    using words = batch<bits, Arch>;
    static constexpr bits exponent = sizeof(Real) == 4 ? bits(0x7f80'0000u) : bits(0x7ff0'0000'0000'0000u);
    static constexpr bits exponent_unit = exponent & (~exponent + 1);
    constexpr std::size_t block = 16 * words::size;
    std::size_t i = 0;
    for (; i + block <= values.size(); i += block) {
        // Adding one unit to a masked exponent carries into the sign bit exactly when the exponent is all ones.
        words carry(bits(0));
        for (std::size_t j = 0; j < block; j += words::size) {
            const auto x = xsimd::batch<Real, Arch>::load_unaligned(&values[i + j]);
            carry |= (xsimd::bitwise_cast<words>(x) & words(exponent)) + words(exponent_unit);
        }
        if ((or_lanes(carry) & ~(~bits(0) >> 1)) != 0) { break; }
    }
    while (i < values.size() && is_finite(values[i])) { ++i; }
    return i;
}

} // namespace logitstat::simd

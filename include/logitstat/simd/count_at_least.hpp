#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "logitstat/simd/batch.hpp"

namespace logitstat::simd {

/// Sum of the lanes of a counter. Bytes are unsigned, and added by halves: neighbours in a lane twice as wide.
template <class Arch> std::int64_t sum_counts(const batch<double, Arch>& counts) {
    return static_cast<std::int64_t>(sum_lanes(counts));
}
/// The same of bytes.
template <class Arch> std::int64_t sum_counts(const batch<std::int8_t, Arch>& counts) {
    const auto halves = [](const auto& x, auto low) {
        return (x & std::decay_t<decltype(x)>(low)) + (x >> static_cast<std::int32_t>(4 * sizeof(low)));
    };
    const auto by2 = halves(xsimd::bitwise_cast<batch<std::uint16_t, Arch>>(counts), std::uint16_t{0xff});
    const auto by4 = halves(xsimd::bitwise_cast<batch<std::uint32_t, Arch>>(by2), std::uint32_t{0xffff});
    const auto by8 = halves(xsimd::bitwise_cast<batch<std::uint64_t, Arch>>(by4), std::uint64_t{0xffff'ffff});
    return static_cast<std::int64_t>(sum_lanes(by8));
}

/// counts[slots[j]] += number of values >= levels[j]. O(values x levels), meant for values in cache. Preconditions: the
/// values fill whole registers; of bytes there are at most 255 registers, and no level is -128; no value is NaN.
template <class Arch, class T>
void count_at_least(std::span<const T> values, std::span<const T> levels, std::span<const std::size_t> slots,
                    std::span<std::int64_t> counts) {
    using lanes = batch<T, Arch>;
    // Integers have a strict comparison in every instruction set, >= only in some: x >= t is x > t - 1.
    constexpr bool strict = std::integral<T>;
    const auto bound = [&](std::size_t j) {
        return lanes(static_cast<T>(levels[(std::min)(j, levels.size() - 1)] - (strict ? 1 : 0)));
    };
    const auto reaches = [](const lanes& value, const lanes& level) {
        if constexpr (strict) {
            return value > level;
        } else {
            return value >= level;
        }
    };
    for (std::size_t j = 0; j < levels.size(); j += 4) { // four levels share one load of the values
        const lanes t0 = bound(j), t1 = bound(j + 1), t2 = bound(j + 2), t3 = bound(j + 3);
        lanes n0(T(0)), n1(T(0)), n2(T(0)), n3(T(0));
        if (j + 1 == levels.size()) { // so that a single threshold costs one
            for (std::size_t i = 0; i < values.size(); i += lanes::size) {
                count_lanes(n0, reaches(lanes::load_unaligned(&values[i]), t0));
            }
        } else {
            for (std::size_t i = 0; i < values.size(); i += lanes::size) {
                const lanes value = lanes::load_unaligned(&values[i]);
                count_lanes(n0, reaches(value, t0));
                count_lanes(n1, reaches(value, t1));
                count_lanes(n2, reaches(value, t2));
                count_lanes(n3, reaches(value, t3));
            }
        }
        const auto add = [&](std::size_t at, const lanes& count) {
            if (at < levels.size()) { counts[slots[at]] += sum_counts(count); }
        };
        add(j, n0);
        add(j + 1, n1);
        add(j + 2, n2);
        add(j + 3, n3);
    }
}

} // namespace logitstat::simd

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logitstat/simd/batch.hpp"

/// Where columns first break a rule that a whole trace must keep. Each is a streaming pass that stops at the first
/// place, any alignment, any length. NaN breaks no order: look for it with `first_non_finite`.
namespace logitstat::simd {

/// Index of the first value below zero, or values.size(). O(n).
template <class Arch = xsimd::default_arch> std::size_t first_negative(std::span<const std::int32_t> values) {
    using ints = batch<std::int32_t, Arch>;
    std::size_t i = 0;
    for (; i + ints::size <= values.size(); i += ints::size) {
        if (xsimd::any(ints::load_unaligned(&values[i]) < ints(0))) { break; }
    }
    while (i < values.size() && values[i] >= 0) { ++i; }
    return i;
}

/// Index of the first a[i] > b[i], or a.size(). Precondition: equal sizes. O(n).
template <class Arch = xsimd::default_arch, std::floating_point Real>
std::size_t first_greater(std::span<const Real> a, std::span<const Real> b) {
    using reals = batch<Real, Arch>;
    std::size_t i = 0;
    for (; i + reals::size <= a.size(); i += reals::size) {
        if (xsimd::any(reals::load_unaligned(&a[i]) > reals::load_unaligned(&b[i]))) { break; }
    }
    while (i < a.size() && !(a[i] > b[i])) { ++i; }
    return i;
}

/// Index of the first i >= 1 whose pair (major[i], minor[i]) is not above the pair before, in lexicographic order, or
/// the size. Precondition: equal sizes. O(n).
template <class Arch = xsimd::default_arch>
std::size_t first_not_increasing(std::span<const std::int32_t> major, std::span<const std::int32_t> minor) {
    using ints = batch<std::int32_t, Arch>;
    std::size_t i = 1;
    for (; i + ints::size <= major.size(); i += ints::size) {
        const auto before = ints::load_unaligned(&major[i - 1]), here = ints::load_unaligned(&major[i]);
        const auto minor_rises = ints::load_unaligned(&minor[i]) > ints::load_unaligned(&minor[i - 1]);
        if (!xsimd::all((here > before) | ((here == before) & minor_rises))) { break; }
    }
    while (i < major.size() && (major[i] > major[i - 1] || (major[i] == major[i - 1] && minor[i] > minor[i - 1]))) {
        ++i;
    }
    return (std::min)(i, major.size());
}

/// The first position i of k planes of n (plane after plane) at which two planes hold the same value, or n. O(n k^2)
/// for k up to 64, with as many positions at once as a register holds; O(n k log k) above. Precondition: planes.size()
/// is n k.
template <class Arch = xsimd::default_arch>
std::size_t first_repeat(std::span<const std::int32_t> planes, std::size_t n, std::size_t k) {
    using ints = batch<std::int32_t, Arch>;
    std::vector<std::int32_t> row(k);
    const auto repeats_at = [&](std::size_t i) {
        for (std::size_t j = 0; j < k; ++j) { row[j] = planes[j * n + i]; }
        std::ranges::sort(row);
        return std::ranges::adjacent_find(row) != row.end();
    };
    std::size_t i = 0;
    for (; k <= 64 && i + ints::size <= n; i += ints::size) {
        xsimd::batch_bool<std::int32_t, Arch> twins(false);
        for (std::size_t j = 1; j < k; ++j) {
            const auto ids = ints::load_unaligned(&planes[j * n + i]);
            for (std::size_t other = 0; other < j; ++other) {
                twins = twins | (ids == ints::load_unaligned(&planes[other * n + i]));
            }
        }
        if (xsimd::any(twins)) { break; }
    }
    while (i < n && !repeats_at(i)) { ++i; }
    return i;
}

} // namespace logitstat::simd

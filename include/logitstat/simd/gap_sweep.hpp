#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logitstat/simd/batch.hpp"
#include "logitstat/simd/columns.hpp"

/// Margins against many thresholds at once. The columns are streamed once; a block of gaps stays in the first-level
/// cache while every threshold reads it there, so that memory sees the same traffic for one threshold as for sixteen.
namespace logitstat::simd {

/// Positions worked on together: the gaps (8 KiB), their high words and the gaps at differences fit the first-level
/// cache together, and the sum over lanes that ends each count is paid once in so many positions.
inline constexpr std::size_t gap_block = 1024;

/// |x| by its bits, also where -ffast-math lets a compiler take -0.0 for 0.0.
inline double without_sign(double x) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) << 1 >> 1); }

/// gaps[i] = double(best[i]) - double(second[i]), and never -0.0. Returns false when a gap is negative or not finite,
/// that is when the input is no pair of best and second-best finite logits; the caller finds out where. Precondition:
/// sizes are equal.
template <class Arch = xsimd::default_arch, std::floating_point Real>
bool fill_gaps(std::span<const Real> best, std::span<const Real> second, std::span<double> gaps) {
    using doubles = batch<double, Arch>;
    using words = batch<std::uint64_t, Arch>;
    constexpr std::uint64_t exponent = 0x7ff0'0000'0000'0000u, exponent_unit = 0x0010'0000'0000'0000u;
    // The sign bit collects both failures: a negative gap has it, and an exponent of all ones carries into it.
    words bad(std::uint64_t{0});
    std::size_t i = 0;
    for (; i + doubles::size <= gaps.size(); i += doubles::size) {
        const doubles gap = load_doubles<Arch>(&best[i]) - load_doubles<Arch>(&second[i]);
        gap.store_unaligned(&gaps[i]);
        const words bits = xsimd::bitwise_cast<words>(gap);
        bad |= bits | ((bits & words(exponent)) + words(exponent_unit));
    }
    std::uint64_t suspect = or_lanes(bad);
    for (; i < gaps.size(); ++i) {
        gaps[i] = static_cast<double>(best[i]) - static_cast<double>(second[i]);
        const auto bits = std::bit_cast<std::uint64_t>(gaps[i]);
        suspect |= bits | ((bits & exponent) + exponent_unit);
    }
    if ((suspect >> 63) == 0) { return true; }
    // -0.0 - 0.0 is -0.0: a sign bit, but a gap of zero, which is stored as +0.0. By its bits, since a compiler that is
    // told to ignore the sign of zeros would see nothing to do.
    for (double& gap : gaps) {
        if (!is_finite(gap) || gap < 0) { return false; }
        gap = without_sign(gap);
    }
    return true;
}

/// counts[slots[j]] += number of values >= levels[j]. At most 2^31 values. O(values x levels), on data in cache.
template <class Arch = xsimd::default_arch, class T>
void count_at_least(std::span<const T> values, std::span<const T> levels, std::span<const std::size_t> slots,
                    std::span<std::int64_t> counts) {
    using lanes = batch<T, Arch>;
    constexpr std::size_t group = 4; // levels that share one load of the values
    // Integers have a strict comparison in every instruction set, >= only in some: x >= t is x > t - 1.
    constexpr bool strict = std::is_integral_v<T>;
    const auto reaches = [](const lanes& value, const lanes& bound) {
        if constexpr (strict) {
            return value > bound;
        } else {
            return value >= bound;
        }
    };
    for (std::size_t first = 0; first < levels.size(); first += group) {
        const std::size_t used = std::min(group, levels.size() - first);
        std::array<T, group> level;
        for (std::size_t j = 0; j < group; ++j) { level[j] = levels[first + std::min(j, used - 1)]; }
        const auto bound = [&](std::size_t j) { return lanes(static_cast<T>(level[j] - (strict ? 1 : 0))); };
        const lanes t0 = bound(0), t1 = bound(1), t2 = bound(2), t3 = bound(3);
        lanes n0(T(0)), n1(T(0)), n2(T(0)), n3(T(0));
        std::size_t i = 0;
        for (; i + lanes::size <= values.size(); i += lanes::size) {
            const lanes value = lanes::load_unaligned(&values[i]);
            count_lanes(n0, reaches(value, t0));
            count_lanes(n1, reaches(value, t1));
            count_lanes(n2, reaches(value, t2));
            count_lanes(n3, reaches(value, t3));
        }
        std::array<T, group> count{sum_lanes(n0), sum_lanes(n1), sum_lanes(n2), sum_lanes(n3)};
        for (; i < values.size(); ++i) {
            for (std::size_t j = 0; j < group; ++j) { count[j] = static_cast<T>(count[j] + (values[i] >= level[j])); }
        }
        for (std::size_t j = 0; j < used; ++j) { counts[slots[first + j]] += static_cast<std::int64_t>(count[j]); }
    }
}

/// The upper half of a double's bits. For non-negative x and t, x >= t exactly when bits(x) >= bits(t), and when the
/// lower half of t is zero that is high_word(x) >= high_word(t): half the width, twice the lanes, no rounding.
inline std::int32_t high_word(double x) { return static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x) >> 32); }

/// Thresholds sorted by how they can be compared: those with at most 20 fraction bits (0.5, 1, 2.25: nearly all that
/// are used) by their high words, the others (0.1) in double. Precondition: finite and >= 0.
struct SplitThresholds {
    std::vector<std::int32_t> high;
    std::vector<double> full;
    std::vector<std::size_t> high_slots, full_slots;

    explicit SplitThresholds(std::span<const double> thresholds) {
        for (std::size_t j = 0; j < thresholds.size(); ++j) {
            const double t = without_sign(thresholds[j]); // -0.0 becomes 0.0
            if (static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(t)) == 0) {
                high.push_back(high_word(t));
                high_slots.push_back(j);
            } else {
                full.push_back(t);
                full_slots.push_back(j);
            }
        }
    }

    /// counts[j] += number of gaps >= thresholds[j]. Precondition: at most gap_block gaps, each >= +0.0.
    template <class Arch> void count(std::span<const double> gaps, std::span<std::int64_t> counts) const {
        if (!high.empty()) {
            std::array<std::int32_t, gap_block> words;
            for (std::size_t i = 0; i < gaps.size(); ++i) { words[i] = high_word(gaps[i]); }
            count_at_least<Arch, std::int32_t>(std::span(words).first(gaps.size()), high, high_slots, counts);
        }
        count_at_least<Arch, double>(gaps, full, full_slots, counts);
    }
};

/// One streaming pass over two id columns and two logit columns: decided[j] += positions whose gap is at least
/// thresholds[j], mismatches[j] += those of them whose ids differ. Returns best.size(), or the start of the first block
/// that holds a negative or non-finite gap (the counts are then worthless). Preconditions: the four columns are equally
/// long, and so are the two counters; thresholds are finite and >= 0. Any alignment, any number of thresholds.
template <class Arch = xsimd::default_arch, std::floating_point Real>
std::size_t gap_sweep(std::span<const std::int32_t> ids_a, std::span<const std::int32_t> ids_b,
                      std::span<const Real> best, std::span<const Real> second, std::span<const double> thresholds,
                      std::span<std::int64_t> decided, std::span<std::int64_t> mismatches) {
    using ints = batch<std::int32_t, Arch>;
    const SplitThresholds levels(thresholds);
    std::array<double, gap_block> gaps;
    std::array<double, 2 * gap_block> at_difference; // differences are few: counted when a block's worth has come
    std::size_t different = 0;
    const auto count_differences = [&] {
        for (std::size_t i = 0; i < different; i += gap_block) {
            const std::size_t n = std::min(gap_block, different - i);
            levels.count<Arch>(std::span(at_difference).subspan(i, n), mismatches);
        }
        different = 0;
    };
    for (std::size_t i = 0; i < best.size(); i += gap_block) {
        const std::size_t n = std::min(gap_block, best.size() - i);
        const std::span<double> block = std::span(gaps).first(n);
        if (!fill_gaps<Arch>(best.subspan(i, n), second.subspan(i, n), block)) { return i; }
        const auto collect = [&](std::size_t from, std::size_t to) {
            for (std::size_t j = from; j < to; ++j) { // no branch: always stored, and kept when the index moves on
                at_difference[different] = gaps[j];
                different += ids_a[i + j] != ids_b[i + j];
            }
        };
        std::size_t j = 0;
        for (; j + ints::size <= n; j += ints::size) {
            if (xsimd::any(ints::load_unaligned(&ids_a[i + j]) != ints::load_unaligned(&ids_b[i + j]))) {
                collect(j, j + ints::size);
            }
        }
        collect(j, n);
        levels.count<Arch>(block, decided);
        if (different >= gap_block) { count_differences(); }
    }
    count_differences();
    return best.size();
}

} // namespace logitstat::simd

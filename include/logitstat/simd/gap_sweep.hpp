#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "logitstat/simd/batch.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/count_at_least.hpp"
#include "logitstat/simd/gap_keys.hpp"

/// Margins against many thresholds at once. The columns are streamed once, a block at a time; every threshold then
/// finds the block's gaps, or their keys, in the first-level cache.
namespace logitstat::simd {

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

/// The columns of a sweep, or a block of them.
template <std::floating_point Real> struct SweepColumns {
    std::span<const std::int32_t> ids_a, ///< [n] one arm's best tokens
        ids_b;                           ///< [n] the other's
    std::span<const Real> best,          ///< [n] the reference's best logits
        second;                          ///< [n] its second best

    std::size_t size() const { return best.size(); } ///< n
    /// The n positions from `first` on, unchecked.
    SweepColumns block(std::size_t first, std::size_t n) const {
        return {ids_a.subspan(first, n), ids_b.subspan(first, n), best.subspan(first, n), second.subspan(first, n)};
    }
    /// best - second of position i, in double.
    double gap(std::size_t i) const { return static_cast<double>(best[i]) - static_cast<double>(second[i]); }
};

/// The sweep at thresholds that have exact keys.
template <class Arch> class KeySweep {
    using shorts = batch<std::int16_t, Arch>;
    using ints = batch<std::int32_t, Arch>;
    using words = batch<std::uint64_t, Arch>;
    static constexpr std::size_t lanes = words::size, step = 4 * lanes;

  public:
    /// Of the thresholds and the places of their counts.
    explicit KeySweep(KeyThresholds thresholds) : thresholds_(std::move(thresholds)) {}

    /// Counts a block of at most gap_block positions. Returns false when a gap is negative or not finite.
    template <class Real>
    bool add(const SweepColumns<Real>& c, std::span<std::int64_t> decided, std::span<std::int64_t> mismatches) {
        const std::size_t used_before = used_;
        // Four registers of gaps make one of keys, each giving 16 bits of a 64-bit lane; a count does not mind the
        // order.
        const words top(0xffff'0000'0000'0000u);
        const auto gap = [&](std::size_t i) {
            return xsimd::bitwise_cast<words>(load_doubles<Arch>(&c.best[i]) - load_doubles<Arch>(&c.second[i])) & top;
        };
        const auto keys = [](const words& g0, const words& g1, const words& g2, const words& g3) {
            return xsimd::bitwise_cast<shorts>((g0 >> 48) | (g1 >> 32) | (g2 >> 16) | g3);
        };
        const auto where_different = [&](std::size_t i, const words& g) { // elsewhere all ones, which is no_key
            return xsimd::bitwise_cast<words>(xsimd::select(id_lanes(&c.ids_a[i]) == id_lanes(&c.ids_b[i]),
                                                            xsimd::bitwise_cast<ints>(top),
                                                            xsimd::bitwise_cast<ints>(g)));
        };
        shorts bad(std::int16_t{0});
        std::size_t i = 0;
        for (; i + step <= c.size(); i += step) {
            const words g0 = gap(i), g1 = gap(i + lanes), g2 = gap(i + 2 * lanes), g3 = gap(i + 3 * lanes);
            const shorts all = keys(g0, g1, g2, g3);
            all.store_unaligned(&block_[i]);
            // The sign bit collects both failures: a negative gap has it, and an exponent of all ones carries into it.
            bad |= all | (all + shorts(std::int16_t{0x10}));
            if (any_different(&c.ids_a[i], &c.ids_b[i])) {
                const shorts wrong = keys(where_different(i, g0), where_different(i + lanes, g1),
                                          where_different(i + 2 * lanes, g2), where_different(i + 3 * lanes, g3));
                wrong.store_unaligned(&different_[used_]);
                used_ += step;
            }
        }
        if (xsimd::any(bad < shorts(std::int16_t{0}))) { // or a gap of -0.0, which is none the less a gap of 0
            used_ = used_before;
            i = 0;
        }
        for (; i < c.size(); ++i) {
            if (!is_finite(c.gap(i)) || c.gap(i) < 0) { return false; }
            block_[i] = gap_key(without_sign(c.gap(i)));
            if (c.ids_a[i] != c.ids_b[i]) { different_[used_++] = block_[i]; }
        }
        std::fill_n(&block_[i], padding, no_key);
        thresholds_.count<Arch>(block_.data(), i, decided);
        if (used_ >= gap_block) { finish(mismatches); }
        return true;
    }

    /// Counts the differences that are still waiting: few a block, they are counted when there is a block's worth.
    void finish(std::span<std::int64_t> mismatches) {
        std::fill_n(&different_[used_], padding, no_key);
        for (std::size_t i = 0; i < used_; i += gap_block) {
            thresholds_.count<Arch>(&different_[i], (std::min)(gap_block, used_ - i), mismatches);
        }
        used_ = 0;
    }

  private:
    static bool any_different(const std::int32_t* a, const std::int32_t* b) {
        const auto different = [&](std::size_t i) { return ints::load_unaligned(a + i) ^ ints::load_unaligned(b + i); };
        static_assert(step == 2 * ints::size);
        return xsimd::any((different(0) | different(ints::size)) != ints(0));
    }
    /// Ids in the upper half of 64-bit lanes, so that a comparison of 32-bit lanes, which every instruction set has,
    /// says there whether they differ.
    static ints id_lanes(const std::int32_t* ids) {
        return xsimd::bitwise_cast<ints>(load_widened<std::int64_t, Arch>(ids) << 32);
    }

    KeyThresholds thresholds_;
    std::array<std::int16_t, gap_block + padding> block_;
    std::array<std::int16_t, 2 * gap_block + padding> different_; ///< keys where ids differ, with no_key among them
    std::size_t used_ = 0;
};

/// The sweep at the other thresholds (0.1), in double.
template <class Arch> class DoubleSweep {
    using ints = batch<std::int32_t, Arch>;
    static constexpr double none = -1; ///< below every threshold

  public:
    /// Thresholds, finite and >= 0; slots[j]: where the counts of thresholds[j] go.
    DoubleSweep(std::vector<double> thresholds, std::vector<std::size_t> slots)
        : thresholds_(std::move(thresholds)), slots_(std::move(slots)) {}

    /// As KeySweep::add.
    template <class Real>
    bool add(const SweepColumns<Real>& c, std::span<std::int64_t> decided, std::span<std::int64_t> mismatches) {
        if (!fill_gaps<Arch>(c.best, c.second, std::span<double>(block_).first(c.size()))) { return false; }
        std::size_t different = 0;
        const auto collect = [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from; i < to; ++i) { // no branch: always stored, and kept when the index moves on
                different_[different] = block_[i];
                different += c.ids_a[i] != c.ids_b[i];
            }
        };
        std::size_t i = 0;
        for (; i + ints::size <= c.size(); i += ints::size) {
            if (xsimd::any(ints::load_unaligned(&c.ids_a[i]) != ints::load_unaligned(&c.ids_b[i]))) {
                collect(i, i + ints::size);
            }
        }
        collect(i, c.size());
        count(block_, c.size(), decided);
        count(different_, different, mismatches);
        return true;
    }

  private:
    using Block = std::array<double, gap_block + padding>;
    void count(Block& values, std::size_t n, std::span<std::int64_t> counts) const {
        constexpr std::size_t lanes = batch<double, Arch>::size;
        std::fill_n(&values[n], padding, none);
        count_at_least<Arch, double>(std::span<const double>(values).first((n + lanes - 1) / lanes * lanes),
                                     thresholds_, slots_, counts);
    }

    std::vector<double> thresholds_;
    std::vector<std::size_t> slots_;
    Block block_, different_;
};

/// One streaming pass over two id columns and two logit columns: decided[j] += positions whose gap is at least
/// thresholds[j], mismatches[j] += those of them whose ids differ. Returns best.size(), or the start of the first block
/// that holds a negative or non-finite gap (the counts are then worthless). Preconditions: the four columns are equally
/// long, and so are the two counters; thresholds are finite and >= 0. Any alignment, any number of thresholds.
template <class Arch = xsimd::default_arch, std::floating_point Real>
std::size_t gap_sweep(std::span<const std::int32_t> ids_a, std::span<const std::int32_t> ids_b,
                      std::span<const Real> best, std::span<const Real> second, std::span<const double> thresholds,
                      std::span<std::int64_t> decided, std::span<std::int64_t> mismatches) {
    std::vector<double> with_key, without_key;
    std::vector<std::size_t> key_slots, other_slots;
    for (std::size_t j = 0; j < thresholds.size(); ++j) {
        const double t = without_sign(thresholds[j]);
        (has_exact_key(t) ? with_key : without_key).push_back(t);
        (has_exact_key(t) ? key_slots : other_slots).push_back(j);
    }
    KeySweep<Arch> keys(KeyThresholds(with_key, key_slots));
    DoubleSweep<Arch> doubles(without_key, other_slots);
    const SweepColumns<Real> columns{ids_a, ids_b, best, second};
    for (std::size_t i = 0; i < best.size(); i += gap_block) {
        const auto block = columns.block(i, (std::min)(gap_block, best.size() - i));
        // Without a threshold the input is still checked.
        const bool use_keys = !with_key.empty() || without_key.empty();
        if (use_keys && !keys.add(block, decided, mismatches)) { return i; }
        if (!without_key.empty() && !doubles.add(block, decided, mismatches)) { return i; }
    }
    keys.finish(mismatches);
    return best.size();
}

} // namespace logitstat::simd

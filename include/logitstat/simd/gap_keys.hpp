#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "logitstat/simd/batch.hpp"
#include "logitstat/simd/count_at_least.hpp"

/// Gaps as 16-bit keys. The key of a non-negative double is its upper 16 bits: the exponent and four fraction bits.
/// Keys are ordered as the doubles are, so where the lower 48 bits of a threshold t are zero (0.5, 1, 2.25, 10: nearly
/// all that are used), x >= t is exactly key(x) >= key(t). No rounding, and four times as many lanes as doubles have.
namespace logitstat::simd {

/// Positions worked on together: their keys stay in the first-level cache while every threshold reads them there, so
/// that memory sees the same traffic for one threshold as for sixteen; and their number fits the counters of a byte.
inline constexpr std::size_t gap_block = 2048;
/// Values that fill up the last register: as many as the widest registers could ask for.
inline constexpr std::size_t padding = 128;

/// The key of a gap; negative when the gap has a sign, at least 0x7ff0 when it is infinite or NaN without one.
inline std::int16_t gap_key(double gap) { return static_cast<std::int16_t>(std::bit_cast<std::uint64_t>(gap) >> 48); }
inline constexpr std::int16_t no_key = -1; ///< below every threshold's

/// Whether comparing keys is comparing with the threshold. Precondition: finite and not negative.
inline bool has_exact_key(double threshold) { return std::bit_cast<std::uint64_t>(threshold) << 16 == 0; }

/// Thresholds that have exact keys, in windows of keys that fit a byte: sixteen octaves of gaps, so that one window is
/// nearly always enough, and the keys of a block are narrowed once more, and then counted in twice as many lanes.
class KeyThresholds {
  public:
    /// slots[j]: where the counts of thresholds[j] go.
    KeyThresholds(std::span<const double> thresholds, std::span<const std::size_t> slots) {
        std::vector<std::pair<int, std::size_t>> sorted;
        for (std::size_t j = 0; j < slots.size(); ++j) { sorted.emplace_back(gap_key(thresholds[j]), slots[j]); }
        std::sort(sorted.begin(), sorted.end());
        for (const auto& [key, slot] : sorted) {
            if (windows_.empty() || key - windows_.back().centre > 127) {
                const int centre = (std::min)(key + 127, 0x7fff); // no difference to it leaves 16 bits
                windows_.push_back({static_cast<std::int16_t>(centre), {}, {}});
            }
            windows_.back().levels.push_back(static_cast<std::int8_t>(key - windows_.back().centre));
            windows_.back().slots.push_back(slot);
        }
    }

    /// counts[slot] += number of keys at or above the threshold's. Preconditions: at most gap_block keys, each from
    /// no_key up; the keys that follow them, up to `padding`, are no_key.
    template <class Arch> void count(const std::int16_t* keys, std::size_t n, std::span<std::int64_t> counts) const {
        using shorts = batch<std::int16_t, Arch>;
        constexpr std::size_t step = 2 * shorts::size;
        static_assert(step <= padding && gap_block % step == 0 && gap_block / 16 <= 255); // 16: bytes of a register
        const std::size_t whole = (n + step - 1) / step * step;
        std::array<std::int8_t, gap_block> narrow;
        for (const Window& window : windows_) {
            const shorts centre(window.centre), lowest(std::int16_t{-128}), highest(std::int16_t{127});
            const auto narrowed = [&](std::size_t i) {
                return (xsimd::min)((xsimd::max)(shorts::load_unaligned(keys + i) - centre, lowest), highest);
            };
            for (std::size_t i = 0; i < whole; i += step) { // interleaved: a count does not mind the order
                const shorts low = narrowed(i) & shorts(std::int16_t{0xff}), high = narrowed(i + shorts::size) << 8;
                xsimd::bitwise_cast<batch<std::int8_t, Arch>>(low | high).store_unaligned(&narrow[i]);
            }
            count_at_least<counting_arch<Arch>, std::int8_t>(std::span(narrow).first(whole), window.levels,
                                                             window.slots, counts);
        }
    }

  private:
    struct Window {
        std::int16_t centre;
        std::vector<std::int8_t> levels; ///< key - centre: from -127 up
        std::vector<std::size_t> slots;
    };
    std::vector<Window> windows_;
};

} // namespace logitstat::simd

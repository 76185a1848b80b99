#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "logitstat/simd/logits.hpp"

namespace logitstat::simd::detail {

/// One register of consecutive sixteen-bit logits, in the order of memory.
template <class Arch, logit_type T> [[gnu::always_inline]] inline batch<float, Arch> load_in_order(const T* from) {
    if constexpr (loads_in_order<T, Arch>) {
        return load_halves<Arch>(from);
    } else {
        const auto words = load_widened<std::uint32_t, Arch>(reinterpret_cast<const std::uint16_t*>(from)) << 16;
        if constexpr (std::is_same_v<T, Eigen::half>) {
            return widen_half<Arch>(words);
        } else {
            return xsimd::bitwise_cast<batch<float, Arch>>(words);
        }
    }
}

/// A block of logits as Real, in whole registers: where it lies when it is that, else in `memory`, with the lowest
/// number of Real where the last register has no logit. Kernels over pairs of rows so come in two types, not in one for
/// each two types of element. Precondition: the block fits.
template <class Arch, class Real, logit_type T, std::size_t Size>
const Real* widen_block(std::span<const T> block, std::array<Real, Size>& memory) {
    constexpr std::size_t lanes = batch<Real, Arch>::size;
    static_assert(Size % lanes == 0);
    if constexpr (std::is_same_v<T, Real>) {
        if (block.size() % lanes == 0) { return block.data(); }
    }
    std::size_t i = 0;
    if constexpr (sizeof(T) == 2 && std::is_same_v<Real, float>) {
        for (; i + lanes <= block.size(); i += lanes) {
            load_in_order<Arch>(block.data() + i).store_unaligned(memory.data() + i);
        }
    }
    for (; i < block.size(); ++i) { memory[i] = static_cast<Real>(widen(block[i])); }
    for (; i % lanes != 0; ++i) { memory[i] = std::numeric_limits<Real>::lowest(); }
    return memory.data();
}

} // namespace logitstat::simd::detail

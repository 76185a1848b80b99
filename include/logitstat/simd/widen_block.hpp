#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "logitstat/simd/dispatch.hpp"
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

/// to[i] = x[i], exactly. Precondition: n is a multiple of row_multiple.
template <class Arch, logit_type T> void widen_all(const T* x, std::size_t n, wide_t<T>* to) {
    if constexpr (table_arch<Arch>) {
        Arch::kernels().template row<T>().widen_all(x, n, to);
    } else {
        using reals = batch<wide_t<T>, Arch>;
        for (std::size_t i = 0; i < n; i += reals::size) {
            if constexpr (sizeof(T) == 2) {
                load_in_order<Arch>(x + i).store_unaligned(to + i);
            } else {
                reals::load_unaligned(x + i).store_unaligned(to + i);
            }
        }
    }
}

/// A block of logits as Real, in a multiple of row_multiple: where it lies when it is that, else in `memory`, with the
/// lowest number of Real at the end, where there is no logit. Kernels over pairs of rows so come in two types, not in
/// one for each two types of element. Precondition: the block fits.
template <class Arch, class Real, logit_type T, std::size_t Size>
const Real* widen_block(std::span<const T> block, std::array<Real, Size>& memory) {
    static_assert(Size % row_multiple == 0);
    if constexpr (std::is_same_v<T, Real>) {
        if (block.size() % row_multiple == 0) { return block.data(); }
    }
    std::size_t i = 0;
    if constexpr (std::is_same_v<wide_t<T>, Real>) {
        i = block.size() / row_multiple * row_multiple;
        widen_all<Arch>(block.data(), i, memory.data());
    }
    for (; i < block.size(); ++i) { memory[i] = static_cast<Real>(widen(block[i])); }
    for (; i % row_multiple != 0; ++i) { memory[i] = std::numeric_limits<Real>::lowest(); }
    return memory.data();
}

} // namespace logitstat::simd::detail

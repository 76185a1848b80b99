#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "logitstat/simd/batch.hpp"

namespace logitstat::simd {

/// Sum of a[i] b[i] in double, blocks of 512 summed apart so that the error grows with the number of blocks.
/// Precondition: equal sizes. Any alignment, any length; 0 for no values. O(n).
template <class Arch = xsimd::default_arch> double dot(std::span<const double> a, std::span<const double> b) {
    using doubles = batch<double, Arch>;
    constexpr std::size_t block = 512;
    double total = 0;
    for (std::size_t first = 0; first < a.size(); first += block) {
        const std::size_t end = (std::min)(a.size(), first + block);
        doubles even(0.0), odd(0.0);
        std::size_t i = first;
        for (; i + 2 * doubles::size <= end; i += 2 * doubles::size) {
            even = xsimd::fma(doubles::load_unaligned(&a[i]), doubles::load_unaligned(&b[i]), even);
            odd = xsimd::fma(doubles::load_unaligned(&a[i + doubles::size]),
                             doubles::load_unaligned(&b[i + doubles::size]), odd);
        }
        double sum = sum_lanes(even + odd);
        for (; i < end; ++i) { sum += a[i] * b[i]; }
        total += sum;
    }
    return total;
}

} // namespace logitstat::simd

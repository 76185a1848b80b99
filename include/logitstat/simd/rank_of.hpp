#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/logits.hpp"

namespace logitstat::simd {

namespace detail {

/// Number of logits for which above(register, level) holds. O(n).
template <class Arch, logit_type T, class Above>
std::int64_t count_if(const T* x, std::size_t n, wide_t<T> level, Above above) {
    using Real = wide_t<T>;
    using reals = batch<Real, Arch>;
    constexpr std::size_t step = two_batches<T, Arch>, stretch = step << 20; // lanes of float count up to 2^24
    const reals bound(level);
    std::int64_t total = 0;
    std::size_t i = 0;
    while (i + step <= n) {
        reals lanes(Real(0));
        for (const std::size_t end = (std::min)(n, i + stretch); i + step <= end; i += step) {
            const auto [a, b] = load_two<Arch>(x + i);
            count_lanes(lanes, above(a, bound));
            count_lanes(lanes, above(b, bound));
        }
        total += static_cast<std::int64_t>(sum_in_double(lanes));
    }
    for (; i < n; ++i) { total += above(widen(x[i]), level); }
    return total;
}

/// Number of x > level. Precondition: no NaN.
template <class Arch, logit_type T> std::int64_t count_above(const T* x, std::size_t n, wide_t<T> level) {
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template row<T>().count_above(x, n, level);
    } else {
        return count_if<Arch>(x, n, level, [](const auto& a, const auto& b) { return a > b; });
    }
}

/// Number of x >= level. Precondition: no NaN.
template <class Arch, logit_type T> std::int64_t count_at_least(const T* x, std::size_t n, wide_t<T> level) {
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template row<T>().count_at_least(x, n, level);
    } else {
        return count_if<Arch>(x, n, level, [](const auto& a, const auto& b) { return a >= b; });
    }
}

} // namespace detail

/// 1-based rank of a token in a full row of logits: one more than the logits above its own and the equal ones of lower
/// id. O(V), no token list needed. Preconditions: id < V, no NaN.
template <class Arch = preferred_arch, logit_type T> std::int64_t rank_of(std::span<const T> row, std::size_t id) {
    const auto own = widen(row[id]);
    return 1 + detail::count_at_least<Arch>(row.data(), id, own) +
           detail::count_above<Arch>(row.data() + id + 1, row.size() - id - 1, own);
}

} // namespace logitstat::simd

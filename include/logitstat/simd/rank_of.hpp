#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "logitstat/simd/logits.hpp"

namespace logitstat::simd {

/// 1-based rank of a token in a full row of logits: one more than the logits above its own and the equal ones of lower
/// id. O(V), no token list needed. Preconditions: id < V, no NaN.
template <class Arch = xsimd::default_arch, logit_type T> std::int64_t rank_of(std::span<const T> row, std::size_t id) {
    using Real = wide_t<T>;
    using reals = batch<Real, Arch>;
    constexpr std::size_t step = two_batches<T, Arch>, stretch = step << 20; // lanes of float count up to 2^24
    const Real own = widen(row[id]);
    const auto count = [](std::span<const T> part, auto counts) {
        std::int64_t total = 0;
        std::size_t i = 0;
        while (i + step <= part.size()) {
            reals lanes(Real(0));
            for (const std::size_t end = std::min(part.size(), i + stretch); i + step <= end; i += step) {
                const auto [a, b] = load_two<Arch>(&part[i]);
                count_lanes(lanes, counts(a));
                count_lanes(lanes, counts(b));
            }
            total += static_cast<std::int64_t>(sum_in_double(lanes));
        }
        for (; i < part.size(); ++i) { total += xsimd::any(counts(reals(widen(part[i])))); }
        return total;
    };
    const reals level(own);
    return 1 + count(row.first(id), [&](const reals& x) { return x >= level; }) +
           count(row.subspan(id + 1), [&](const reals& x) { return x > level; });
}

} // namespace logitstat::simd

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/exp.hpp"
#include "logitstat/simd/logits.hpp"

/// log sum exp of one row of logits in one streaming pass, and the pass itself, for reductions that go with it.
namespace logitstat::simd {

/// What a pass over a row gives: max = max x, sum = sum exp(x - max), both in double and kept apart, so that
/// log-sum-exp minus a logit can be had without cancellation. `refused` is the index of a NaN or +infinity (the first
/// in its row; max and sum are then worthless), or the row's length.
struct RowSum {
    double max = 0;          ///< largest logit
    double sum = 0;          ///< of exp(x - max)
    std::size_t refused = 0; ///< index of a NaN or +infinity, or the length of the row
    /// max + ln sum. Precondition: a row that is not refused.
    double log_sum_exp() const { return max + std::log(sum); }
    /// -log softmax of a finite logit of the row, in nats: both terms are at least 0 and the first is exact or nearly
    /// so, nothing cancels.
    double nll(double logit) const { return detail::opaque(max - logit) + std::log(sum); }
};

namespace detail {

/// Maximum, sum of exp(x - reference) and a look for non-finite values, in one pass over a block. Precondition: n is a
/// multiple of row_multiple.
template <class Arch, logit_type T> BlockSum<wide_t<T>> sum_block(const T* x, std::size_t n, wide_t<T> reference) {
    using Real = wide_t<T>;
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template row<T>().sum_block(x, n, reference);
    } else {
        using reals = batch<Real, Arch>;
        constexpr std::size_t step = two_batches<T, Arch>, group = 8 * step;
        static_assert(row_multiple % step == 0);
        const reals shift(reference), zero(Real(0));
        reals highest(std::numeric_limits<Real>::lowest()), total(zero), logits_a(zero), logits_b(zero);
        // Chains of eight additions, then chains of groups: one long chain of equal terms would round the same way each
        // time.
        for (std::size_t i = 0; i < n;) {
            reals even(zero), odd(zero);
            for (const std::size_t end = (std::min)(n, i + group); i < end; i += step) {
                const auto [a, b] = load_two<Arch>(x + i);
                highest = (xsimd::max)(highest, (xsimd::max)(a, b));
                logits_a += a; // an infinity or NaN stays in a sum
                logits_b += b;
                even += exp_nonpositive<Arch>(a - shift);
                odd += exp_nonpositive<Arch>(b - shift);
            }
            total += even + odd;
        }
        return {max_lane(highest), sum_in_double(total), !all_finite(logits_a + logits_b)};
    }
}

} // namespace detail

/// One streaming pass over a row, block by block. After each block that holds neither NaN nor +infinity,
/// on_block(block, first index, maximum of the block as wide_t<T>) may look at it while it is in the cache. O(V).
///
/// -infinity is a logit like any other (probability 0); a row without a finite logit has max = lowest() and a sum
/// without meaning, as has an empty row. Relative error of the sum: about 2e-7 for float and narrower types, 1e-15 for
/// double.
template <class Arch = preferred_arch, logit_type T, class OnBlock>
RowSum sweep_row(std::span<const T> row, OnBlock on_block) {
    using Real = wide_t<T>;
    Real reference = std::numeric_limits<Real>::lowest();
    RowSum result{0, 0, row.size()};
    std::array<T, row_block> tail;
    for (std::size_t first = 0; first < row.size(); first += row_block) {
        const std::span<const T> block = row.subspan(first, (std::min)(row_block, row.size() - first));
        const T* x = block.data();
        std::size_t n = block.size();
        if (n % row_multiple != 0) { // the last block, made whole by logits that add nothing
            const auto end = std::copy(block.begin(), block.end(), tail.begin());
            n += row_multiple - n % row_multiple;
            std::fill(end, tail.begin() + static_cast<std::ptrdiff_t>(n),
                      static_cast<T>(-std::numeric_limits<Real>::infinity()));
            x = tail.data();
        }
        // The reference is the maximum so far. The few blocks that raise it are summed a second time.
        auto sum = detail::sum_block<Arch>(x, n, reference);
        if (sum.has_non_finite) {
            const auto bad = std::find_if(block.begin(), block.end(), is_nan_or_positive_infinity<T>);
            if (bad != block.end()) {
                result.refused = first + static_cast<std::size_t>(bad - block.begin());
                return result;
            }
        }
        if (sum.max > reference) {
            result.sum *= std::exp(static_cast<double>(reference) - static_cast<double>(sum.max));
            reference = sum.max;
            sum = detail::sum_block<Arch>(x, n, reference);
        }
        result.sum += sum.sum;
        on_block(block, first, sum.max);
    }
    result.max = static_cast<double>(reference);
    return result;
}

/// max and sum of a row: sweep_row that does nothing else.
template <class Arch = preferred_arch, logit_type T> RowSum log_sum_exp(std::span<const T> row) {
    return sweep_row<Arch>(row, [](std::span<const T>, std::size_t, wide_t<T>) {});
}

} // namespace logitstat::simd

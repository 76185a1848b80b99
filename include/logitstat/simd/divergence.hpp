#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/divergence_terms.hpp"
#include "logitstat/simd/log_sum_exp.hpp"
#include "logitstat/simd/logit_difference.hpp"
#include "logitstat/simd/widen_block.hpp"

/// How far apart two rows of logits are, p = softmax(reference) and q = softmax(candidate) over the same V tokens.
namespace logitstat::simd {

/// The divergences of a pair of rows.
struct RowDivergence {
    double kl = 0;              ///< sum p ln(p / q), nats; +infinity when `lost` > 0
    double reverse_kl = 0;      ///< sum q ln(q / p), nats; +infinity when `gained` > 0
    double jensen_shannon = 0;  ///< (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2, nats, at most ln 2
    double total_variation = 0; ///< sum |p - q| / 2, at most 1
    double logit_shift = 0;     ///< mean of candidate - reference, over the tokens with a finite logit in both rows
    double logit_rms = 0;       ///< root mean square of candidate - reference - logit_shift, over the same tokens
    double logit_max = 0;       ///< largest |candidate - reference|, over the same tokens
    std::int64_t lost = 0;      ///< tokens with p > 0 whose candidate logit is -infinity
    std::int64_t gained = 0;    ///< tokens with q > 0 whose reference logit is -infinity
};

namespace detail {

/// A block's terms. `offset` is the difference of the two rows' log-sum-exps about their maxima. Precondition: n is a
/// multiple of row_multiple.
template <class Arch, class Real>
DivergenceSums divergence_sums(const Real* x, const Real* y, std::size_t n, Real largest_x, Real largest_y,
                               Real offset) {
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template pair<Real>().divergence_sums(x, y, n, largest_x, largest_y, offset);
    } else {
        using reals = batch<Real, Arch>;
        constexpr std::size_t group = 8 * reals::size;
        static_assert(row_multiple % (2 * reals::size) == 0);
        const reals max_x(largest_x), max_y(largest_y), shift(offset);
        // Subtracted first, whatever compilers may reassociate: large logits have nothing left below the point.
        const auto below_x = [&](std::size_t at) { return opaque(reals::load_unaligned(x + at) - max_x); };
        const auto below_y = [&](std::size_t at) { return opaque(reals::load_unaligned(y + at) - max_y); };
        FarSums<Real, Arch> far_sums;
        NearSums<Real, Arch> near_sums;
        for (std::size_t i = 0; i < n;) { // chains of eight additions, as in sum_block
            FarSums<Real, Arch> far_group;
            NearSums<Real, Arch> near_group;
            for (const std::size_t end = (std::min)(n, i + group); i < end;) {
                if constexpr (std::is_same_v<Real, float>) { // double would need polynomials of twice the degree
                    for (; i < end; i += 2 * reals::size) {  // a loop of its own keeps the sums in registers
                        const reals a = below_x(i), b = below_y(i), log_ratio = (a - b) - shift;
                        const reals next_a = below_x(i + reals::size), next_b = below_y(i + reals::size);
                        const reals next_log_ratio = (next_a - next_b) - shift;
                        if (!all_near(log_ratio, next_log_ratio)) { break; }
                        near_group.add(log_ratio, (a + b) + shift);
                        near_group.add(next_log_ratio, (next_a + next_b) + shift);
                    }
                    if (i == end) { break; }
                }
                for (int both = 0; both < 2; ++both, i += reals::size) { far_group.add(below_x(i), below_y(i), shift); }
            }
            far_sums.add(far_group);
            near_sums.add(near_group);
        }
        const double symmetric = sum_in_double(near_sums.symmetric), directed = sum_in_double(near_sums.directed);
        return {sum_in_double(far_sums.kl) + (symmetric + directed) / 2,
                sum_in_double(far_sums.reverse_kl) + (symmetric - directed) / 2,
                sum_in_double(far_sums.variation) + sum_in_double(near_sums.variation),
                sum_in_double(far_sums.mixture) + sum_in_double(near_sums.mixture)};
    }
}

/// The differences of a block that holds -infinity (or numbers too far apart for Real), and what is -infinity in one
/// row only. ln p below -700 is probability 0 here, too.
template <class Real>
void add_masked(const Real* x, const Real* y, std::size_t n, const RowSum& p, const RowSum& q,
                DifferenceMoments& moments, RowDivergence& result) {
    std::array<double, row_block> differences;
    std::size_t finite = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const bool in_p = is_finite(x[i]), in_q = is_finite(y[i]);
        if (in_p && in_q) {
            differences[finite++] = static_cast<double>(y[i]) - static_cast<double>(x[i]);
        } else if (in_p) {
            result.lost += p.nll(static_cast<double>(x[i])) <= 700;
        } else if (in_q) {
            result.gained += q.nll(static_cast<double>(y[i])) <= 700;
        }
    }
    moments.add(std::span<const double>(differences).first(finite));
}

/// What the kernels leave of ln(p / q) where one logit is further below its row's largest than they follow, and the
/// other is not: so that a mask by the lowest number is as far as it says. In halves, since whole differences may be
/// beyond double.
template <class R, class C>
void add_far_below(std::span<const R> reference, std::span<const C> candidate, const RowSum& p, const RowSum& q,
                   RowDivergence& result) {
    constexpr double lowest = -lowest_below_max / 2;
    const auto rest = [](double below_max, double sum, double half) { // of no weight nothing, however far
        const double weight = std::exp(below_max) / sum;
        return weight > 0 ? 2 * (weight * (lowest - half)) : 0.0;
    };
    for (std::size_t i = 0; i < reference.size(); ++i) {
        const double x = static_cast<double>(reference[i]), y = static_cast<double>(candidate[i]);
        if (!is_finite(x) || !is_finite(y)) { continue; }
        const double a = x / 2 - p.max / 2, b = y / 2 - q.max / 2;
        if (b < lowest && a >= lowest) { result.kl += rest(2 * a, p.sum, b); }
        if (a < lowest && b >= lowest) { result.reverse_kl += rest(2 * b, q.sum, a); }
    }
}

} // namespace detail

/// The divergences of two rows whose log-sum-exps are known (sweep_row, log_sum_exp), in one pass over both. O(V).
/// Preconditions: equal lengths, neither row refused, a finite logit in each.
///
/// Accuracy: where a row is float or narrower within 2e-6 + 2e-6 of the value of what long double gives, for two rows
/// of double 1e-12 + 1e-12 of it. Divergences are never negative, and small ones are not noise, since nothing cancels
/// (divergence_terms.hpp): float rows that differ by 1e-5 a token (KL near 1e-11) give a KL that is right to 1 %, by
/// 1e-6 (1e-13) to 15 %; -ffast-math may round the differences of the rows as coarsely as the logits, which leaves an
/// error of 5e-13. Rows of one type with equal logits give 0 everywhere.
///
/// -infinity is probability 0: 0 ln(0 / x) = 0; where p > 0 meets q = 0, kl is +infinity and everything else as
/// defined. A probability below e^-700 counts as 0 there. A finite logit counts as what it is: where one arm masks by
/// the lowest float and the other has p > 0, KL is finite and enormous. The three figures of the logits leave out
/// tokens that are -infinity in either row (all three are 0 when none is left); differences beyond 1e150 count as that.
/// No smoothing. No result is NaN.
template <class Arch = preferred_arch, logit_type R, logit_type C>
RowDivergence divergence(std::span<const R> reference, std::span<const C> candidate, const RowSum& p, const RowSum& q) {
    using Real = std::conditional_t<std::is_same_v<R, double> || std::is_same_v<C, double>, double, float>;
    const auto max_p = static_cast<Real>(p.max), max_q = static_cast<Real>(q.max);
    const auto offset = static_cast<Real>(std::log(p.sum) - std::log(q.sum));
    std::array<Real, row_block> x_block, y_block;
    RowDivergence result;
    DifferenceMoments moments;
    for (std::size_t first = 0; first < reference.size(); first += row_block) {
        const std::size_t n = (std::min)(row_block, reference.size() - first);
        const Real* const x = detail::widen_block<Arch, Real>(reference.subspan(first, n), x_block);
        const Real* const y = detail::widen_block<Arch, Real>(candidate.subspan(first, n), y_block);
        const std::size_t whole = (n + row_multiple - 1) / row_multiple * row_multiple;
        const DivergenceSums sums = detail::divergence_sums<Arch, Real>(x, y, whole, max_p, max_q, offset);
        result.kl += sums.kl;
        result.reverse_kl += sums.reverse_kl;
        result.total_variation += sums.twice_total_variation;
        result.jensen_shannon += sums.twice_jensen_shannon;
        if (!moments.add_finite<Arch>(x, y, n)) { detail::add_masked(x, y, n, p, q, moments, result); }
    }
    result.kl /= p.sum;
    result.reverse_kl /= p.sum;
    result.total_variation /= 2 * p.sum;
    result.jensen_shannon /= 2 * p.sum;
    result.logit_max = moments.largest();
    // A row's largest may be a token that the other row lacks, which logit_max leaves out.
    if (result.logit_max > detail::lowest_below_max / 4 || result.lost > 0 || result.gained > 0) {
        detail::add_far_below(reference, candidate, p, q, result);
    }
    if (result.lost > 0) { result.kl = std::numeric_limits<double>::infinity(); }
    if (result.gained > 0) { result.reverse_kl = std::numeric_limits<double>::infinity(); }
    result.logit_shift = moments.mean();
    result.logit_rms = moments.rms_about_mean();
    return result;
}

} // namespace logitstat::simd

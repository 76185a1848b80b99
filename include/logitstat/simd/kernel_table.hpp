#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "logitstat/simd/logits.hpp"

/// The kernels over a block or a row of logits as a table of functions, and what they take and give: plain numbers and
/// pointers. Whatever else a reduction does (its tail, its lists, its errors) happens in the caller, so that what is
/// compiled for a wide instruction set is these functions and nothing that another unit could share with them.
namespace logitstat::simd {

/// Logits worked on together: they stay in the first-level cache (4 KiB of float) for what is done to a block twice.
inline constexpr std::size_t row_block = 1024;

/// Kernels that take whole registers take a multiple of so many logits, whatever the instruction set: two registers of
/// the widest, twice.
inline constexpr std::size_t row_multiple = 64;

/// What a block adds to a row's log-sum-exp.
template <class Real> struct BlockSum {
    Real max;            ///< of the block
    double sum;          ///< of exp(x - reference); worthless when max > reference
    bool has_non_finite; ///< also when the sum of the logits overflows
};

/// A block's terms of the divergences, not divided by p's sum of exp(x - max).
struct DivergenceSums {
    double kl,                 ///< KL(p || q)
        reverse_kl,            ///< KL(q || p)
        twice_total_variation, ///< sum |p - q|
        twice_jensen_shannon;  ///< KL(p || m) + KL(q || m), m = (p + q) / 2
};

/// Of the differences d of a block's logits.
struct DifferenceSums {
    double about, ///< what the sums are taken about
        sum,      ///< of d - about
        squares,  ///< of (d - about)^2
        largest;  ///< largest |d|
};

/// Over logits of one type, x[0] to x[n - 1], of any alignment.
template <logit_type T> struct RowKernels {
    using Real = wide_t<T>;                                                 ///< in which they compute
    BlockSum<Real> (*sum_block)(const T* x, std::size_t n, Real reference); ///< n a multiple of row_multiple
    std::size_t (*first_above)(const T* x, std::size_t n, Real level);      ///< index of the first x > level, or n
    std::int64_t (*count_above)(const T* x, std::size_t n, Real level);     ///< logits > level
    std::int64_t (*count_at_least)(const T* x, std::size_t n, Real level);  ///< logits >= level
    void (*widen_all)(const T* x, std::size_t n, Real* to);                 ///< n a multiple of row_multiple
};

/// Over two blocks of float or double.
template <std::floating_point Real> struct PairKernels {
    /// `offset`: difference of the two log-sum-exps about the maxima; n a multiple of row_multiple.
    DivergenceSums (*divergence_sums)(const Real* x, const Real* y, std::size_t n, Real max_x, Real max_y, Real offset);
    /// Of y - x, any n.
    DifferenceSums (*difference_sums)(const Real* x, const Real* y, std::size_t n, Real about);
};

/// All kernels for one instruction set.
struct KernelTable {
    const char* name; ///< of the instruction set: sse2, avx2, avx512; elsewhere as xsimd calls it
    /// By type of the logits.
    std::tuple<RowKernels<float>, RowKernels<double>, RowKernels<Eigen::half>, RowKernels<Eigen::bfloat16>> rows;
    std::tuple<PairKernels<float>, PairKernels<double>> pairs; ///< by the type of the arithmetic

    /// The kernels over logits of type T.
    template <logit_type T> const RowKernels<T>& row() const { return std::get<RowKernels<T>>(rows); }
    /// The kernels over pairs in arithmetic of Real.
    template <std::floating_point Real> const PairKernels<Real>& pair() const {
        return std::get<PairKernels<Real>>(pairs);
    }
};

/// An Arch that is no instruction set of xsimd's but names a table.
template <class Arch>
concept table_arch = requires {
    { Arch::kernels() } -> std::same_as<const KernelTable&>;
};

} // namespace logitstat::simd

#pragma once

#include "logitstat/simd/divergence.hpp"
#include "logitstat/simd/kernel_choice.hpp"
#include "logitstat/simd/kernel_table.hpp"
#include "logitstat/simd/log_sum_exp.hpp"
#include "logitstat/simd/logit_difference.hpp"
#include "logitstat/simd/rank_of.hpp"
#include "logitstat/simd/top_k.hpp"
#include "logitstat/simd/widen_block.hpp"

/// The text of the translation units of `logitstat::dispatch`, one for each instruction set.
///
/// What such a unit compiles for a wide instruction set must not become the whole program's: of a function that several
/// units define (an inline function, a template of the standard library), the linker keeps one, which an older
/// processor may not be able to run. So every function of a wide unit has its Arch among its template arguments, or is
/// inlined at -O3, at which these units are always compiled; a test reads the object files.
namespace logitstat::simd::detail {

template <class Arch, logit_type T> constexpr RowKernels<T> row_kernels() {
    return {sum_block<Arch, T>, first_above<Arch, T>, count_above<Arch, T>, count_at_least<Arch, T>,
            widen_all<Arch, T>};
}

template <class Arch, class Real> constexpr PairKernels<Real> pair_kernels() {
    return {divergence_sums<Arch, Real>, difference_sums<Arch, Real>};
}

template <class Arch> constexpr KernelTable table_of(const char* name) {
    return {name,
            {row_kernels<Arch, float>(), row_kernels<Arch, double>(), row_kernels<Arch, Eigen::half>(),
             row_kernels<Arch, Eigen::bfloat16>()},
            {pair_kernels<Arch, float>(), pair_kernels<Arch, double>()}};
}

} // namespace logitstat::simd::detail

/// Defines detail::SET_kernels() with the kernels of ARCH.
#define LOGITSTAT_KERNEL_UNIT(SET, ARCH, NAME)                                                                         \
    const logitstat::simd::KernelTable& logitstat::simd::detail::SET##_kernels() {                                     \
        static constexpr KernelTable table = table_of<ARCH>(NAME);                                                     \
        return table;                                                                                                  \
    }

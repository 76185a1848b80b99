#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

#include "logitstat/simd/kernel_table.hpp"

/// Kernels chosen when the program runs. Link the CMake target `logitstat::dispatch`: it compiles them for SSE2, AVX2
/// (with FMA and F16C) and AVX-512 (F, BW, DQ, VL, CD), and what is declared here uses the widest that the processor
/// and the operating system support, in a program that is itself compiled for any of them. On other processors there is
/// the one set that the compiler's flags ask for.
///
/// The environment variable LOGITSTAT_SIMD (`sse2`, `avx2` or `avx512`), read at the first use, asks for another.
namespace logitstat::simd {

/// The tables that this processor can run, narrowest first; never empty. Defined in `logitstat::dispatch`.
std::span<const KernelTable* const> supported_kernels();

/// The table in use: the last supported one, or the one that LOGITSTAT_SIMD names. Thread-safe. Throws
/// std::runtime_error when LOGITSTAT_SIMD names none that is supported. Defined in `logitstat::dispatch`.
const KernelTable& chosen_kernels();

/// sse2, avx2 or avx512; elsewhere xsimd's name of the instruction set. Throws as chosen_kernels.
inline const char* dispatched_arch_name() { return chosen_kernels().name; }

/// As the Arch of a reduction over whole rows: the table in use.
struct dispatched {
    static const KernelTable& kernels() { return chosen_kernels(); } ///< throws as `chosen_kernels`
};

/// As the Arch of a reduction over whole rows: the table supported_kernels()[I], for tests and benchmarks. Throws
/// std::out_of_range when there is none.
template <std::size_t I> struct supported {
    /// The table. Throws std::out_of_range when there is none.
    static const KernelTable& kernels() {
        const auto tables = supported_kernels();
        if (I >= tables.size()) { throw std::out_of_range("no such instruction set here"); }
        return *tables[I];
    }
};

/// What reductions over whole rows use unless told otherwise: `dispatched` in a program that links
/// `logitstat::dispatch` (which defines LOGITSTAT_DISPATCH), else what this translation unit is compiled for. It is a
/// template argument, so that units with and without the macro may be linked together.
#if defined(LOGITSTAT_DISPATCH)
using preferred_arch = dispatched;
#else
using preferred_arch = xsimd::default_arch;
#endif

} // namespace logitstat::simd

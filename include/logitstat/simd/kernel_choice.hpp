#pragma once

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/x86.hpp"

/// Which of the tables of `logitstat::dispatch` a program uses.
namespace logitstat::simd::detail {

const KernelTable& baseline_kernels(); ///< each defined by one unit, those that the processor family has
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();

/// The table of this name, the last one when `wanted` is null or empty. Throws std::runtime_error, with the names that
/// there are, for another. Precondition: not empty.
inline const KernelTable& choose_kernels(std::span<const KernelTable* const> tables, const char* wanted) {
    if (wanted == nullptr || *wanted == '\0') { return *tables.back(); }
    std::string names;
    for (const KernelTable* const table : tables) {
        if (std::string_view(wanted) == table->name) { return *table; }
        names += (names.empty() ? "" : ", ") + std::string(table->name);
    }
    throw std::runtime_error("LOGITSTAT_SIMD is \"" + std::string(wanted) + "\"; this processor has: " + names);
}

/// As simd::supported_kernels. `Wide`: are there units of AVX2 and AVX-512?
template <bool Wide> std::span<const KernelTable* const> supported_tables() {
    static const std::vector<const KernelTable*> tables = [] {
        std::vector<const KernelTable*> all{&baseline_kernels()};
        if constexpr (Wide) {
            if (runs_avx2()) { all.push_back(&avx2_kernels()); }
            if (runs_avx2() && runs_avx512()) { all.push_back(&avx512_kernels()); }
        }
        return all;
    }();
    return tables;
}

} // namespace logitstat::simd::detail

/// Defines what dispatch.hpp declares: for one translation unit. WIDE: are there units of AVX2 and AVX-512?
#define LOGITSTAT_KERNEL_CHOICE(WIDE)                                                                                  \
    std::span<const logitstat::simd::KernelTable* const> logitstat::simd::supported_kernels() {                        \
        return detail::supported_tables<WIDE>();                                                                       \
    }                                                                                                                  \
    const logitstat::simd::KernelTable& logitstat::simd::chosen_kernels() {                                            \
        static const KernelTable& chosen = detail::choose_kernels(supported_kernels(), std::getenv("LOGITSTAT_SIMD")); \
        return chosen;                                                                                                 \
    }

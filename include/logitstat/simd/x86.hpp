#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <Eigen/Core>

#include "logitstat/simd/batch.hpp"

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#include <cpuid.h>
#endif

/// The only header with x86 intrinsics: operations that the instruction sets have and xsimd does not name. Each is an
/// overload, more constrained than the portable one of the same name, or a concept that tells whether it is there.
/// Nothing depends on it but speed (and the last bit: multiplication and addition fuse). And what the processor that
/// runs the program has.
namespace logitstat::simd {

#if defined(__AVX512F__) && defined(__AVX512DQ__) && XSIMD_WITH_AVX512F
template <class Arch>
concept avx512_arch = std::derived_from<Arch, xsimd::avx512f>;
#else
template <class Arch>
concept avx512_arch = false;
#endif

#if defined(__F16C__) && XSIMD_WITH_AVX
template <class Arch>
concept f16c_arch = avx512_arch<Arch> || std::derived_from<Arch, xsimd::avx>;
#else
template <class Arch>
concept f16c_arch = avx512_arch<Arch>;
#endif

namespace detail {

/// May this processor, under this operating system, run code for AVX2, FMA and F16C? The compiler's builtin looks at
/// the registers that the system saves, too; clang 14's does not know F16C, which has AVX's registers.
inline bool runs_avx2() {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
           (c & bit_F16C) != 0;
#else
    return false;
#endif
}
/// The same for AVX-512 F, BW, DQ, VL and CD.
inline bool runs_avx512() {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
#else
    return false;
#endif
}

/// x, of whose making the compiler knows nothing any more. Where it may reassociate, (a - b) c + d becomes
/// a c + (d - b c), and with b = 2^52 nothing is left of d.
template <class Real, class Arch> [[gnu::always_inline]] inline batch<Real, Arch> opaque(const batch<Real, Arch>& x) {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
    typename batch<Real, Arch>::register_type value = x;
    asm("" : "+x"(value));
    return value;
#elif defined(__GNUC__) && defined(__aarch64__)
    typename batch<Real, Arch>::register_type value = x;
    asm("" : "+w"(value));
    return value;
#else
    return x;
#endif
}

/// The same for one number.
[[gnu::always_inline]] inline double opaque(double x) {
#if defined(__GNUC__) && (defined(__x86_64__) || (defined(__i386__) && defined(__SSE2__)))
    asm("" : "+x"(x));
#elif defined(__GNUC__) && defined(__aarch64__)
    asm("" : "+w"(x));
#endif
    return x;
}

// For those architectures alone that the concepts name.
template <class Arch> batch<float, Arch> nearest(const batch<float, Arch>& t);
template <class Arch> batch<float, Arch> above_floor(const batch<float, Arch>& t);
template <class Arch> batch<float, Arch> times_power_of_two(const batch<float, Arch>& x, const batch<float, Arch>& t);
template <class Arch> batch<float, Arch> load_halves(const Eigen::half* from);

#if defined(__AVX512F__) && defined(__AVX512DQ__) && XSIMD_WITH_AVX512F
template <avx512_arch Arch>
[[gnu::always_inline]] inline batch<float, Arch> multiply_add(const batch<float, Arch>& x, const batch<float, Arch>& y,
                                                              const batch<float, Arch>& z) {
    return _mm512_fmadd_ps(x, y, z);
}
template <avx512_arch Arch>
[[gnu::always_inline]] inline batch<double, Arch>
multiply_add(const batch<double, Arch>& x, const batch<double, Arch>& y, const batch<double, Arch>& z) {
    return _mm512_fmadd_pd(x, y, z);
}
/// z - x y
template <avx512_arch Arch>
[[gnu::always_inline]] inline batch<float, Arch>
subtract_product(const batch<float, Arch>& z, const batch<float, Arch>& x, const batch<float, Arch>& y) {
    return _mm512_fnmadd_ps(x, y, z);
}
template <avx512_arch Arch>
[[gnu::always_inline]] inline batch<double, Arch>
subtract_product(const batch<double, Arch>& z, const batch<double, Arch>& x, const batch<double, Arch>& y) {
    return _mm512_fnmadd_pd(x, y, z);
}
/// The nearest integer.
template <avx512_arch Arch> [[gnu::always_inline]] inline batch<float, Arch> nearest(const batch<float, Arch>& t) {
    return _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/// t - floor(t); 0 for an infinity.
template <avx512_arch Arch> [[gnu::always_inline]] inline batch<float, Arch> above_floor(const batch<float, Arch>& t) {
    return _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
/// x 2^floor(t); 0 where that is too small.
template <avx512_arch Arch>
[[gnu::always_inline]] inline batch<float, Arch> times_power_of_two(const batch<float, Arch>& x,
                                                                    const batch<float, Arch>& t) {
    return _mm512_scalef_ps(x, t);
}
template <avx512_arch Arch> [[gnu::always_inline]] inline batch<float, Arch> load_halves(const Eigen::half* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
#endif

#if defined(__F16C__) && XSIMD_WITH_AVX
template <f16c_arch Arch>
requires(!avx512_arch<Arch>) [[gnu::always_inline]] inline batch<float, Arch> load_halves(const Eigen::half* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#endif

} // namespace detail
} // namespace logitstat::simd

#pragma once

#include <cstdint>

#include "logitstat/simd/batch.hpp"
#include "logitstat/simd/x86.hpp"

/// exp for arguments <= 0, as sums over a row need it: exp(x) = 2^n 2^f with x / ln 2 = n + f. Where compilers may
/// reassociate, x + large - large is x: what is rounded so is hidden from them. Inlined always: -O2 would call it, a
/// dozen constants at a time.
namespace logitstat::simd {

namespace detail {

/// x y + z, fused where xsimd or the compiler knows how.
template <class Real, class Arch>
[[gnu::always_inline]] inline batch<Real, Arch> multiply_add(const batch<Real, Arch>& x, const batch<Real, Arch>& y,
                                                             const batch<Real, Arch>& z) {
    return xsimd::fma(x, y, z);
}

/// z - x y, likewise.
template <class Real, class Arch>
[[gnu::always_inline]] inline batch<Real, Arch> subtract_product(const batch<Real, Arch>& z, const batch<Real, Arch>& x,
                                                                 const batch<Real, Arch>& y) {
    return xsimd::fnma(x, y, z);
}

/// c0 + c1 x + c2 x^2 + ... (Horner)
template <class Real, class Arch>
[[gnu::always_inline]] inline batch<Real, Arch> polynomial(const batch<Real, Arch>&, Real c0) {
    return batch<Real, Arch>(c0);
}
template <class Real, class Arch, class... More>
[[gnu::always_inline]] inline batch<Real, Arch> polynomial(const batch<Real, Arch>& x, Real c0, More... more) {
    return multiply_add(polynomial(x, more...), x, batch<Real, Arch>(c0));
}

/// exp(x / Share), where Share is a power of two: its powers go into the constants, exactly.
template <int Share, class Arch>
[[gnu::always_inline]] inline batch<float, Arch> exp_of_share(const batch<float, Arch>& argument) {
    using floats = batch<float, Arch>;
    using ints = batch<std::int32_t, Arch>;
    constexpr float share = 1.f / Share;
    const floats per_log2(0x1.715476p+0f * share);
    if constexpr (avx512_arch<Arch>) {
        const floats t = argument * per_log2;
        return times_power_of_two(polynomial(above_floor(t), 1.f, 0x1.62e4bap-1f, 0x1.ebdb56p-3f, 0x1.c91ce8p-5f,
                                             0x1.27785p-7f, 0x1.e9750ap-10f),
                                  t);
    } else {
        // Added to 1.5 2^23, x / ln 2 leaves n in the last bits; the others leave by the top.
        const floats offset(0x1.8p23f), x = (xsimd::max)(argument, floats(-86.f / share));
        const floats shifted = opaque(multiply_add(x, per_log2, offset));
        const floats r = subtract_product(x, shifted - offset, floats(0x1.62e43p-1f / share));
        const floats p = polynomial(
            r, 1.f, 0x1.fffff6p-1f * share, 0x1.fffdc4p-2f * (share * share), 0x1.555a7ep-3f * (share * share * share),
            0x1.573aeep-5f * (share * share * share * share), 0x1.0fa102p-7f * (share * share * share * share * share));
        return xsimd::bitwise_cast<floats>(xsimd::bitwise_cast<ints>(p) + (xsimd::bitwise_cast<ints>(shifted) << 23));
    }
}

} // namespace detail

/// exp(x) for x <= 0, in float: relative error below 2e-7 + 7.4e-8 |x| (tested with every float), and exp(0) = 1.
/// Below -86 (-infinity, too) something between 0 and exp(-86) = 4.5e-38, which a sum that holds a 1 cannot tell from
/// zero. Arguments up to 80 are as good; above, and for NaN, a number without meaning.
///
/// The part that grows with |x| is a product of that size being rounded once (2^-24 |x|; not where multiplication and
/// addition fuse, except on AVX-512) and 1 / ln 2 being a float (there, 1.3e-8 |x|):
/// where a sum of V terms, one of them 1, holds others at x that matter, |x| is at most ln V + a few, so that the sum
/// is wrong by less than 1.5e-6 of itself even if all of them err alike, and by 1e-7 when they do not. 2^f is a
/// polynomial of degree 5 with the constant 1, of f in [0, 1] on AVX-512, else of f ln 2 with |f| <= 1/2 (Remez; 8.2e-8
/// and 9.2e-8).
template <class Arch>
[[gnu::always_inline]] inline batch<float, Arch> exp_nonpositive(const batch<float, Arch>& argument) {
    return detail::exp_of_share<1>(argument);
}

/// exp(x / 2), as exp_nonpositive(x / 2) and without the multiplication.
template <class Arch>
[[gnu::always_inline]] inline batch<float, Arch> exp_half_nonpositive(const batch<float, Arch>& argument) {
    return detail::exp_of_share<2>(argument);
}

/// The same in double: error below 1.25 ulp (tested densely), below -700 it is exp(-700) = 9.9e-305. exp(x) = 2^n
/// exp(r), r = x - n ln 2 with ln 2 in two parts (Cody and Waite 1980); exp(r) = 1 + r + r^2 q(r) (Remez, 3.7e-18).
template <class Arch>
[[gnu::always_inline]] inline batch<double, Arch> exp_nonpositive(const batch<double, Arch>& argument) {
    using doubles = batch<double, Arch>;
    using words = batch<std::uint64_t, Arch>;
    // Added to 2^52 + 4096, x / ln 2 leaves n + 4096 in the last thirteen bits; 4096 leaves by the top when n is added
    // to the exponent.
    const doubles per_log2(0x1.71547652b82fep+0), unit(0x1p52), offset(0x1p52 + 4096);
    const doubles x = (xsimd::max)(argument, doubles(-700.0));
    const words n =
        xsimd::bitwise_cast<words>(detail::multiply_add(x, per_log2, offset)) & words(std::uint64_t{0x1fff});
    const doubles whole = detail::opaque(xsimd::bitwise_cast<doubles>(n | xsimd::bitwise_cast<words>(unit)) - offset);
    const doubles r = detail::multiply_add(whole, doubles(-0x1.f473de6af278fp-30),
                                           detail::multiply_add(whole, doubles(-0x1.62e42fep-1), x));
    const doubles p =
        detail::polynomial(r, 1.0, 1.0, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5,
                           0x1.1111111127be5p-7, 0x1.6c16c1842a11dp-10, 0x1.a01a012a57b51p-13, 0x1.a0199a0c677acp-16,
                           0x1.71df2552390c2p-19, 0x1.28ad72cc30daap-22, 0x1.ad7f6f0799ee2p-26);
    return xsimd::bitwise_cast<doubles>(xsimd::bitwise_cast<words>(p) + (n << 52));
}

} // namespace logitstat::simd

#pragma once

#include <cstdint>

#include "logitstat/simd/batch.hpp"

/// exp for arguments <= 0, as sums over a row need it: exp(x) = 2^n exp(r), n the integer nearest to x / ln 2 and
/// r = x - n ln 2 with ln 2 in two parts (Cody and Waite 1980); exp(r), |r| <= ln 2 / 2, by a minimax polynomial
/// 1 + r + r^2 q(r) (Remez; relative error 3.1e-9 in float, 3.7e-18 in double). Rounding to an integer goes by
/// integers: where compilers may reassociate, x + large - large is x. Inlined always: -O2 would call it, a dozen
/// constants at a time.
namespace logitstat::simd {

namespace detail {
/// c0 + c1 x + c2 x^2 + ... (Horner)
template <class Real, class Arch>
[[gnu::always_inline]] inline batch<Real, Arch> polynomial(const batch<Real, Arch>&, Real c0) {
    return batch<Real, Arch>(c0);
}
template <class Real, class Arch, class... More>
[[gnu::always_inline]] inline batch<Real, Arch> polynomial(const batch<Real, Arch>& x, Real c0, More... more) {
    return xsimd::fma(polynomial(x, more...), x, batch<Real, Arch>(c0));
}
} // namespace detail

/// exp(x) for x <= 0, in float: error below 1.2 ulp, 0.9 ulp where multiplication and addition
/// fuse (the maxima over all floats; the tests take one in 61). -ffast-math may join the two parts of ln 2: then up
/// to 1.2e-7, absolute. Below -86 (-infinity, too) it is exp(-86) = 4.5e-38, which a sum that holds a 1 cannot tell
/// from zero; no result is subnormal. Arguments above 0, and NaN, give a number without meaning.
template <class Arch>
[[gnu::always_inline]] inline batch<float, Arch> exp_nonpositive(const batch<float, Arch>& argument) {
    using floats = batch<float, Arch>;
    using ints = batch<std::int32_t, Arch>;
    const floats x = xsimd::max(argument, floats(-86.f));
    const ints n = xsimd::nearbyint_as_int(x * floats(0x1.715476p+0f));
    const floats whole = xsimd::batch_cast<float>(n);
    const floats r = xsimd::fma(whole, floats(0x1.bd0106p-13f), xsimd::fma(whole, floats(-0x1.63p-1f), x));
    const floats p = detail::polynomial(r, 1.f, 1.f, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f,
                                        0x1.6a2434p-10f);
    return xsimd::bitwise_cast<floats>(xsimd::bitwise_cast<ints>(p) + (n << 23));
}

/// The same in double: error below 1.25 ulp (tested densely), below -700 it is exp(-700) = 9.9e-305.
template <class Arch>
[[gnu::always_inline]] inline batch<double, Arch> exp_nonpositive(const batch<double, Arch>& argument) {
    using doubles = batch<double, Arch>;
    using words = batch<std::uint64_t, Arch>;
    // Added to 2^52 + 4096, x / ln 2 leaves n + 4096 in the last thirteen bits; 4096 leaves by the top when n is added
    // to the exponent.
    const doubles per_log2(0x1.71547652b82fep+0), unit(0x1p52), offset(0x1p52 + 4096);
    const doubles x = xsimd::max(argument, doubles(-700.0));
    const words n = xsimd::bitwise_cast<words>(xsimd::fma(x, per_log2, offset)) & words(std::uint64_t{0x1fff});
    const doubles whole = xsimd::bitwise_cast<doubles>(n | xsimd::bitwise_cast<words>(unit)) - offset;
    const doubles r =
        xsimd::fma(whole, doubles(-0x1.f473de6af278fp-30), xsimd::fma(whole, doubles(-0x1.62e42fep-1), x));
    const doubles p =
        detail::polynomial(r, 1.0, 1.0, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5,
                           0x1.1111111127be5p-7, 0x1.6c16c1842a11dp-10, 0x1.a01a012a57b51p-13, 0x1.a0199a0c677acp-16,
                           0x1.71df2552390c2p-19, 0x1.28ad72cc30daap-22, 0x1.ad7f6f0799ee2p-26);
    return xsimd::bitwise_cast<doubles>(xsimd::bitwise_cast<words>(p) + (n << 52));
}

} // namespace logitstat::simd

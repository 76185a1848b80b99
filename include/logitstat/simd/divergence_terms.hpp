#pragma once

#include <cstdint>
#include <type_traits>

#include "logitstat/simd/exp.hpp"

/// The terms of the divergences between two distributions p and q, for the tokens of one register each. With
/// P = max(p, q) and D = |ln p - ln q| every term is P times a function of D alone, and none is a difference of what
/// the sum over a row cancels:
///
///   p ln(p/q) - p + q   =  P phi(D) where p is the larger, else P psi(D)     (sums to KL(p || q))
///   q ln(q/p) - q + p   =  the other of the two                              (sums to KL(q || p))
///   |p - q| / 2         =  P (1 - e^-D) / 2                                  (sums to the total variation)
///   p ln(p/m) + q ln(q/m), m = (p + q) / 2, halved  =  P chi(D)              (sums to the Jensen-Shannon divergence)
///
///   phi(D) = D - 1 + e^-D,   psi(D) = 1 - e^-D - D e^-D,   chi(D) = (psi(D) - E^2 k(E)) / 2,   E = e^-D - 1,
///   k(E) = ((2 + E) ln(1 + E/2) - E) / E^2, smooth on [-1, 0].
///
/// All are at least 0, 0 exactly at D = 0, and near it D^2/2, D^2/2, D/2, D^2/8 with a small relative error: what p and
/// q add to KL there is known although ln p - ln q could not be told from rounding in the sum of p ln(p/q). Adding q -
/// p to each term changes the sum over a row by nothing.
namespace logitstat::simd::detail {

template <class Real, class Arch> struct DivergenceTerms { batch<Real, Arch> phi, psi, one_minus_ratio, twice_chi; };

/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: relative error 5e-8 in float, 1e-16 in double (Remez).
template <class Arch> [[gnu::always_inline]] inline batch<float, Arch> exp_remainder(const batch<float, Arch>& r) {
    return polynomial(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239e2p-7f, 0x1.6a2434p-10f);
}
template <class Arch> [[gnu::always_inline]] inline batch<double, Arch> exp_remainder(const batch<double, Arch>& r) {
    return polynomial(r, 0x1.000000000000ap-1, 0x1.55555555554fap-3, 0x1.555555555087cp-5, 0x1.1111111127be5p-7,
                      0x1.6c16c1842a11dp-10, 0x1.a01a012a57b51p-13, 0x1.a0199a0c677acp-16, 0x1.71df2552390c2p-19,
                      0x1.28ad72cc30daap-22, 0x1.ad7f6f0799ee2p-26);
}

/// k(E) for -1 <= E <= 0: relative error 1.8e-7 in float, 1.2e-16 in double (Remez).
template <class Arch> [[gnu::always_inline]] inline batch<float, Arch> mixture_remainder(const batch<float, Arch>& e) {
    return polynomial(e, 0x1.000002p-2f, -0x1.554c9p-5f, 0x1.576982p-7f, -0x1.6b08f8p-9f, 0x1.01473cp-9f,
                      0x1.9ccc5ep-11f, 0x1.910248p-11f);
}
template <class Arch>
[[gnu::always_inline]] inline batch<double, Arch> mixture_remainder(const batch<double, Arch>& e) {
    return polynomial(e, 0x1.fffffffffffffp-3, -0x1.5555555556013p-5, 0x1.555555543a4bep-7, -0x1.99999a521142fp-9,
                      0x1.1110f16cb08a4p-10, -0x1.861ef861473b0p-12, 0x1.241e5bfb0f508p-13, -0x1.d233fe88a8626p-15,
                      0x1.0a287692dddaep-16, -0x1.d3b592365ce27p-16, -0x1.648be777d7ef7p-15, -0x1.685da429e8625p-14,
                      -0x1.e088b7a0b1057p-14, -0x1.e8d9f878898f0p-14, -0x1.60ffae21233bep-14, -0x1.5e70ef9747d7cp-15,
                      -0x1.a9f7a762e563ep-17, -0x1.ef5d2ffc31c7ep-20);
}

/// The four functions of D >= 0 (finite), by e^-D = 2^n e^r with r = -D - n ln 2, |r| <= ln 2 / 2. Where n = 0, which
/// is where they are small, r is -D exactly.
template <class Real, class Arch>
[[gnu::always_inline]] inline DivergenceTerms<Real, Arch> divergence_terms(const batch<Real, Arch>& distance) {
    using reals = batch<Real, Arch>;
    constexpr bool narrow = std::is_same_v<Real, float>;
    using ints = batch<std::conditional_t<narrow, std::int32_t, std::int64_t>, Arch>;
    const reals one(Real(1));
    const reals d = xsimd::min(distance, reals(Real(narrow ? 86 : 700))); // beyond it e^-D is nothing beside 1
    reals r, power;
    if constexpr (narrow) {
        const ints n = xsimd::nearbyint_as_int(d * reals(-0x1.715476p+0f));
        const reals whole = xsimd::batch_cast<float>(n);
        r = multiply_add(whole, reals(0x1.bd0106p-13f), multiply_add(whole, reals(-0x1.63p-1f), -d));
        power = xsimd::bitwise_cast<reals>((n << 23) + ints(0x3f80'0000));
    } else {
        // As in exp_nonpositive: -D / ln 2 + 4096, rounded, in the last thirteen bits.
        using words = batch<std::uint64_t, Arch>;
        const reals unit(0x1p52), offset(0x1p52 + 4096);
        const words n = xsimd::bitwise_cast<words>(multiply_add(d, reals(-0x1.71547652b82fep+0), offset)) &
                        words(std::uint64_t{0x1fff});
        const reals whole = xsimd::bitwise_cast<reals>(n | xsimd::bitwise_cast<words>(unit)) - offset;
        r = multiply_add(whole, reals(-0x1.f473de6af278fp-30), multiply_add(whole, reals(-0x1.62e42fep-1), -d));
        power = xsimd::bitwise_cast<reals>((n << 52) + xsimd::bitwise_cast<words>(one));
    }
    const reals square = r * r, v = square * exp_remainder<Arch>(r), rise = r + v; // e^r = 1 + r + v
    const reals ratio = multiply_add(power, rise, power);                          // e^-D
    const auto near = power == one;
    const reals e = xsimd::select(near, rise, ratio - one);
    const reals phi = xsimd::select(near, v, distance + e);
    const reals psi = xsimd::select(near, multiply_add(r - one, v, square), multiply_add(-ratio, d, -e));
    return {phi, psi, -e, multiply_add(-(e * e), mixture_remainder<Arch>(e), psi)};
}

} // namespace logitstat::simd::detail

#pragma once

#include <bit>
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
///   phi(D) = D - 1 + e^-D,   psi(D) = 1 - e^-D - D e^-D,   chi(D) = (psi(D) - m^2 k(m)) / 2,   m = 1 - e^-D,
///   k(m) = ((2 - m) ln(1 - m/2) + m) / m^2, smooth on [0, 1].
///
/// All are at least 0, 0 exactly at D = 0, and near it D^2/2, D^2/2, D/2, D^2/8 with a small relative error: what p and
/// q add to KL there is known although ln p - ln q could not be told from rounding in the sum of p ln(p/q). Adding q -
/// p to each term changes the sum over a row by nothing.
namespace logitstat::simd::detail {

template <class Real, class Arch> struct DivergenceTerms { batch<Real, Arch> phi, psi, one_minus_ratio, twice_chi; };

/// (e^-s - 1 + s) / s^2 for |s| <= ln 2 / 2: relative error 5e-8 in float, 1e-16 in double (Remez).
template <class Arch> [[gnu::always_inline]] inline batch<float, Arch> exp_remainder(const batch<float, Arch>& s) {
    return polynomial(s, 0x1.fffffcp-2f, -0x1.555492p-3f, 0x1.5558f2p-5f, -0x1.1239e2p-7f, 0x1.6a2434p-10f);
}
template <class Arch> [[gnu::always_inline]] inline batch<double, Arch> exp_remainder(const batch<double, Arch>& s) {
    return polynomial(s, 0x1.000000000000ap-1, -0x1.55555555554fap-3, 0x1.555555555087cp-5, -0x1.1111111127be5p-7,
                      0x1.6c16c1842a11dp-10, -0x1.a01a012a57b51p-13, 0x1.a0199a0c677acp-16, -0x1.71df2552390c2p-19,
                      0x1.28ad72cc30daap-22, -0x1.ad7f6f0799ee2p-26);
}

/// k(m) for 0 <= m <= 1: relative error 1.4e-6 in float, 1.2e-16 in double (Remez).
template <class Arch> [[gnu::always_inline]] inline batch<float, Arch> mixture_remainder(const batch<float, Arch>& m) {
    return polynomial(m, 0x1.ffffd2p-3f, 0x1.558608p-5f, 0x1.4cfe86p-7f, 0x1.0e06aap-8f, -0x1.4b9892p-11f,
                      0x1.8c975p-10f);
}
template <class Arch>
[[gnu::always_inline]] inline batch<double, Arch> mixture_remainder(const batch<double, Arch>& m) {
    return polynomial(m, 0x1.fffffffffffffp-3, 0x1.5555555556013p-5, 0x1.555555543a4bep-7, 0x1.99999a521142fp-9,
                      0x1.1110f16cb08a4p-10, 0x1.861ef861473b0p-12, 0x1.241e5bfb0f508p-13, 0x1.d233fe88a8626p-15,
                      0x1.0a287692dddaep-16, 0x1.d3b592365ce27p-16, -0x1.648be777d7ef7p-15, 0x1.685da429e8625p-14,
                      -0x1.e088b7a0b1057p-14, 0x1.e8d9f878898f0p-14, -0x1.60ffae21233bep-14, 0x1.5e70ef9747d7cp-15,
                      -0x1.a9f7a762e563ep-17, 0x1.ef5d2ffc31c7ep-20);
}

/// D = s + n ln 2 with |s| <= ln 2 / 2, and e^-D = 2^-n e^-s.
template <class Real, class Arch> struct Reduced {
    batch<Real, Arch> s;     ///< D exactly where n = 0
    batch<Real, Arch> power; ///< 2^-n, or -n where the processor scales by a power of two itself
};
template <class Arch> [[gnu::always_inline]] inline Reduced<float, Arch> reduce(const batch<float, Arch>& distance) {
    using floats = batch<float, Arch>;
    const floats per_log2(-0x1.715476p+0f);
    if constexpr (avx512_arch<Arch>) {
        const floats whole = nearest(distance * per_log2);
        return {multiply_add(whole, floats(0x1.62e43p-1f), distance), whole}; // wrong by 2e-9 n
    } else {
        using ints = batch<std::int32_t, Arch>;
        const floats d = (xsimd::min)(distance, floats(86.f)); // beyond it e^-D is nothing beside 1
        const ints n = xsimd::nearbyint_as_int(d * per_log2);
        const floats whole = xsimd::batch_cast<float>(n);
        return {multiply_add(whole, floats(-0x1.bd0106p-13f), multiply_add(whole, floats(0x1.63p-1f), d)),
                xsimd::bitwise_cast<floats>((n << 23) + ints(0x3f80'0000))};
    }
}
template <class Arch> [[gnu::always_inline]] inline Reduced<double, Arch> reduce(const batch<double, Arch>& distance) {
    using doubles = batch<double, Arch>;
    using words = batch<std::uint64_t, Arch>; // -D / ln 2 + 4096, rounded, in the last thirteen bits: exp_nonpositive
    const doubles unit(0x1p52), offset(0x1p52 + 4096), d = (xsimd::min)(distance, doubles(700.0));
    const words n = xsimd::bitwise_cast<words>(multiply_add(d, doubles(-0x1.71547652b82fep+0), offset)) &
                    words(std::uint64_t{0x1fff});
    const doubles whole = opaque(xsimd::bitwise_cast<doubles>(n | xsimd::bitwise_cast<words>(unit)) - offset);
    return {multiply_add(whole, doubles(0x1.f473de6af278fp-30), multiply_add(whole, doubles(0x1.62e42fep-1), d)),
            xsimd::bitwise_cast<doubles>((n << 52) + xsimd::bitwise_cast<words>(doubles(1.0)))};
}

/// The four functions of 0 <= D <= 2e9.
template <class Real, class Arch>
[[gnu::always_inline]] inline DivergenceTerms<Real, Arch> divergence_terms(const batch<Real, Arch>& distance) {
    using reals = batch<Real, Arch>;
    constexpr bool scales = std::is_same_v<Real, float> && avx512_arch<Arch>;
    const reals one(Real(1));
    const auto [s, power] = reduce(distance);
    const reals square = s * s, v = square * exp_remainder<Arch>(s), fall = s - v; // e^-s = 1 - s + v
    reals ratio;                                                                   // e^-D
    if constexpr (scales) {
        ratio = times_power_of_two(one - fall, power);
    } else {
        ratio = subtract_product(power, power, fall);
    }
    const auto near = power == reals(Real(scales ? 0 : 1)); // n = 0: nothing may cancel
    const reals m = xsimd::select(near, fall, one - ratio);
    const reals phi = xsimd::select(near, v, distance - m);
    const reals psi = xsimd::select(near, subtract_product(square, s + one, v), subtract_product(m, ratio, distance));
    return {phi, psi, m, subtract_product(psi, m * m, mixture_remainder<Arch>(m))};
}

/// A logit further below the largest counts as exactly so far here, where nothing may overflow: its probability is 0 in
/// any arithmetic. What is missing of KL is added by `add_far_below` (divergence.hpp).
inline constexpr double lowest_below_max = 1e9;

/// Sums of the terms: of KL(p || q), of KL(q || p), |p - q|, the mixture's.
template <class Real, class Arch> struct FarSums {
    batch<Real, Arch> kl = batch<Real, Arch>(Real(0)), reverse_kl = kl, variation = kl, mixture = kl;

    /// x and y are the logits minus the largest of their rows, `shift` what ln p - ln q has beyond x - y.
    [[gnu::always_inline]] void add(const batch<Real, Arch>& x, const batch<Real, Arch>& y,
                                    const batch<Real, Arch>& shift) {
        using reals = batch<Real, Arch>;
        const reals zero(Real(0)), lowest(static_cast<Real>(-lowest_below_max));
        const reals a = (xsimd::max)(x, lowest), b = (xsimd::max)(y, lowest);
        const reals log_ratio = (a - b) - shift; // the maxima have cancelled before anything is rounded
        const reals larger = exp_nonpositive<Arch>((xsimd::max)(a, b + shift));
        const auto terms = divergence_terms<Real, Arch>(xsimd::abs(log_ratio));
        const auto p_larger = log_ratio > zero;
        kl = multiply_add(larger, xsimd::select(p_larger, terms.phi, terms.psi), kl);
        reverse_kl = multiply_add(larger, xsimd::select(p_larger, terms.psi, terms.phi), reverse_kl);
        variation = multiply_add(larger, terms.one_minus_ratio, variation);
        mixture = multiply_add(larger, terms.twice_chi, mixture);
    }
    void add(const FarSums& other) {
        kl += other.kl;
        reverse_kl += other.reverse_kl;
        variation += other.variation;
        mixture += other.mixture;
    }
};

/// Where ln p and ln q are no further apart than 2 (nearly everywhere, in rows worth comparing), every term is sqrt(p
/// q) times a function of L = ln p - ln q that is smooth at 0, so that neither branches nor selections are needed. With
/// sqrt(p q) = c and h = L / 2:
///
///   the terms of KL(p || q) and of KL(q || p)  =  c (2 h sinh h +- 2 (h cosh h - sinh h))  =  c L^2 (S +- L W) / 2
///   |p - q|                                    =  2 c |sinh h|                             =  c |L| S
///   p ln(p/m) + q ln(q/m)                      =  2 c (h sinh h - cosh h ln cosh h)        =  c L^2 J
///
/// S = 2 sinh(L/2) / L, W = 4 (h cosh h - sinh h) / L^3 and J are even: polynomials in L^2 with relative errors of
/// 4e-8, 2e-6 (of what adds at most a third) and 4e-7 (Remez). J has no term in L^2.
inline constexpr float near_limit = 2;

/// No lane is further from 0 than near_limit, or NaN: by the bits, which are in the order of the sizes.
template <class Arch>
[[gnu::always_inline]] inline bool all_near(const batch<float, Arch>& log_ratio, const batch<float, Arch>& another) {
    using ints = batch<std::int32_t, Arch>;
    const ints sizes(0x7fff'ffff), limit(std::bit_cast<std::int32_t>(near_limit));
    return !xsimd::any(((xsimd::bitwise_cast<ints>(log_ratio) & sizes) > limit) |
                       ((xsimd::bitwise_cast<ints>(another) & sizes) > limit));
}

/// Sums of these terms: c L^2 S, c L^3 W, |p - q| and the mixture's.
template <class Real, class Arch> struct NearSums {
    batch<Real, Arch> symmetric = batch<Real, Arch>(Real(0)), directed = symmetric, variation = symmetric,
                      mixture = symmetric;

    /// `both` is ln p + ln q, plus any constant.
    [[gnu::always_inline]] void add(const batch<float, Arch>& log_ratio,
                                    const batch<float, Arch>& both) requires std::is_same_v<Real, float> {
        using floats = batch<float, Arch>;
        const floats c = exp_half_nonpositive<Arch>(both), square = log_ratio * log_ratio;
        const floats s = polynomial(square, 1.f, 0x1.5555bp-5f, 0x1.10f458p-11f, 0x1.abb22ep-19f);
        const floats w = polynomial(square, 0x1.555582p-3f, 0x1.10f71ep-8f, 0x1.40cb6p-15f);
        const floats j =
            multiply_add(square * square, polynomial(square, 0x1.c5bb14p-13f, -0x1.52bc3ep-17f, 0x1.bae3eep-22f),
                         floats(0x1.000006p-2f));
        const floats first = c * log_ratio, second = first * log_ratio;
        symmetric = multiply_add(second, s, symmetric);
        directed = multiply_add(second * log_ratio, w, directed);
        variation = multiply_add(xsimd::abs(first), s, variation);
        mixture = multiply_add(second, j, mixture);
    }
    void add(const NearSums& other) {
        symmetric += other.symmetric;
        directed += other.directed;
        variation += other.variation;
        mixture += other.mixture;
    }
};

} // namespace logitstat::simd::detail

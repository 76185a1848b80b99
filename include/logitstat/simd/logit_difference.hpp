#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/exp.hpp"
#include "logitstat/simd/logits.hpp"

namespace logitstat::simd {

namespace detail {

/// Of d = y[i] - x[i], in arithmetic of Real. O(n).
template <class Arch, class Real>
DifferenceSums difference_sums(const Real* x, const Real* y, std::size_t n, Real about) {
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template pair<Real>().difference_sums(x, y, n, about);
    } else {
        using reals = batch<Real, Arch>;
        constexpr std::size_t lanes = reals::size;
        const reals shift(about);
        constexpr std::size_t chains = 4; // of which none waits for another
        std::array<reals, chains> sum, squares, largest;
        for (auto* const all : {&sum, &squares, &largest}) { all->fill(reals(Real(0))); }
        std::size_t i = 0;
        for (; i + chains * lanes <= n; i += chains * lanes) {
            for (std::size_t c = 0; c < chains; ++c) {
                const std::size_t at = i + c * lanes;
                const reals d = reals::load_unaligned(y + at) - reals::load_unaligned(x + at);
                const reals away = d - shift;
                sum[c] += away;
                squares[c] = multiply_add(away, away, squares[c]);
                largest[c] = (xsimd::max)(largest[c], xsimd::abs(d));
            }
        }
        DifferenceSums sums{static_cast<double>(about), sum_in_double((sum[0] + sum[1]) + (sum[2] + sum[3])),
                            sum_in_double((squares[0] + squares[1]) + (squares[2] + squares[3])),
                            static_cast<double>(max_lane((xsimd::max)((xsimd::max)(largest[0], largest[1]),
                                                                      (xsimd::max)(largest[2], largest[3]))))};
        for (; i < n; ++i) {
            const Real d = y[i] - x[i];
            const double away = static_cast<double>(d - about), size = static_cast<double>(d < 0 ? -d : d);
            sums.sum += away;
            sums.squares += away * away;
            sums.largest = size > sums.largest ? size : sums.largest;
        }
        return sums;
    }
}

} // namespace detail

/// Mean, sum of squares about it and largest size of numbers that come block by block (Chan, Golub and LeVeque 1983,
/// "Algorithms for computing the sample variance", eq. 2.1). Each block is summed about the mean so far: what is left
/// to cancel is small.
class DifferenceMoments {
  public:
    double mean() const { return mean_; } ///< of the differences so far; 0 without one
    /// Root mean square of the differences about their mean; 0 without one.
    double rms_about_mean() const { return count_ > 0 ? std::sqrt(squares_ / count_) : 0; }
    double largest() const { return largest_; } ///< |difference|; 0 without one

    /// Takes the differences y[i] - x[i], or nothing when one of them is not finite or its square overflows: then
    /// false. Arithmetic in Real.
    template <class Arch, class Real> bool add_finite(const Real* x, const Real* y, std::size_t n) {
        auto sums = detail::difference_sums<Arch>(x, y, n, static_cast<Real>(mean_));
        if (!is_finite(sums.squares)) { return false; }
        if (count_ == 0) { // no mean to sum about yet
            sums = detail::difference_sums<Arch>(x, y, n, static_cast<Real>(sums.sum / static_cast<double>(n)));
            if (!is_finite(sums.squares)) { return false; }
        }
        add(sums, n);
        return true;
    }

    /// Takes differences one by one, those beyond +-1e150 as that (the square of more is no double).
    void add(std::span<const double> differences) {
        DifferenceSums sums{0, 0, 0, 0};
        for (int pass = 0; pass < 2; ++pass) { // the first for the mean
            const double about = sums.sum / static_cast<double>(std::max<std::size_t>(1, differences.size()));
            sums = {about, 0, 0, 0};
            for (const double unbounded : differences) {
                const double d = std::clamp(unbounded, -1e150, 1e150);
                sums.sum += d - about;
                sums.squares += (d - about) * (d - about);
                sums.largest = (std::max)(sums.largest, std::abs(d));
            }
        }
        if (!differences.empty()) { add(sums, differences.size()); }
    }

  private:
    void add(const DifferenceSums& block, std::size_t size) {
        const auto n = static_cast<double>(size);
        const double away = block.about + block.sum / n - mean_;
        squares_ +=
            (std::max)(0.0, block.squares - block.sum * block.sum / n) + away * away * count_ * n / (count_ + n);
        count_ += n;
        mean_ += away * n / count_;
        largest_ = (std::max)(largest_, block.largest);
    }

    double count_ = 0, mean_ = 0, squares_ = 0, largest_ = 0;
};

} // namespace logitstat::simd

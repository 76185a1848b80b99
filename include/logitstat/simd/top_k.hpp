#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "logitstat/simd/dispatch.hpp"
#include "logitstat/simd/logits.hpp"

namespace logitstat::simd {

namespace detail {

/// Index of the first logit above `level`, or n. O(n). Precondition: no NaN.
template <class Arch, logit_type T> std::size_t first_above(const T* x, std::size_t n, wide_t<T> level) {
    if constexpr (table_arch<Arch>) {
        return Arch::kernels().template row<T>().first_above(x, n, level);
    } else {
        using reals = batch<wide_t<T>, Arch>;
        constexpr std::size_t step = two_batches<T, Arch>, group = 8 * step;
        const reals bound(level);
        const auto highest_of = [&](std::size_t i) {
            const auto [a, b] = load_two<Arch>(x + i);
            return (xsimd::max)(a, b);
        };
        std::size_t i = 0;
        for (; i + group <= n; i += group) { // most groups hold none: one comparison tells
            reals highest = highest_of(i);
            for (std::size_t j = i + step; j < i + group; j += step) { highest = (xsimd::max)(highest, highest_of(j)); }
            if (xsimd::any(highest > bound)) { break; }
        }
        while (i + step <= n && !xsimd::any(highest_of(i) > bound)) { i += step; }
        while (i < n && !(widen(x[i]) > level)) { ++i; }
        return i;
    }
}

} // namespace detail

/// The k largest logits of a row that comes block by block, in order of the ids; of equal logits the lowest ids.
/// Precondition: no NaN, k >= 1. O(V) comparisons of registers, plus O(log k) for each logit that is among the k best
/// of those before it: about k ln(V / k) of them in a row in random order.
template <class Real> class TopK {
  public:
    /// A logit that is among the best so far.
    struct Candidate {
        Real logit;      ///< exact
        std::int32_t id; ///< token
    };

    /// Before the first block: nothing is known.
    explicit TopK(std::size_t k) : k_(k) { heap_.reserve(k); }

    /// When k logits are known to be at least `floor` (finite), only those are looked at: the heap begins full of what
    /// each of them displaces, also where subnormal numbers are taken for zero.
    TopK(std::size_t k, Real floor) : k_(k) {
        using limits = std::numeric_limits<Real>;
        const Real below = floor - (std::max)(limits::epsilon() * std::abs(floor), 2 * (limits::min)());
        heap_.assign(k, {below, (std::numeric_limits<std::int32_t>::max)()});
    }

    /// May a block with this maximum hold a logit that enters? An equal one came before and keeps its place.
    bool may_enter(Real max) const { return heap_.size() < k_ || max > heap_.front().logit; }

    /// Looks at the logits of ids first, first + 1, ... Their ids are above all those seen before.
    template <class Arch, logit_type T> void scan(std::span<const T> block, std::size_t first) {
        const auto id = [&](std::size_t i) { return static_cast<std::int32_t>(first + i); };
        std::size_t i = 0;
        for (; i < block.size() && heap_.size() < k_; ++i) { offer(widen(block[i]), id(i)); }
        for (;; ++i) {
            i += detail::first_above<Arch>(block.data() + i, block.size() - i, heap_.front().logit);
            if (i == block.size()) { return; }
            offer(widen(block[i]), id(i));
        }
    }

    /// Best first; all of them when fewer than k were seen.
    std::vector<Candidate> sorted() && {
        std::sort_heap(heap_.begin(), heap_.end(), better);
        return std::move(heap_);
    }

  private:
    static bool better(const Candidate& a, const Candidate& b) {
        return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    }

    void offer(Real logit, std::int32_t id) {
        if (!may_enter(logit)) { return; }
        if (heap_.size() == k_) {
            std::pop_heap(heap_.begin(), heap_.end(), better);
            heap_.back() = {logit, id};
        } else {
            heap_.push_back({logit, id});
        }
        std::push_heap(heap_.begin(), heap_.end(), better);
    }

    std::size_t k_;
    std::vector<Candidate> heap_; ///< the worst in front
};

} // namespace logitstat::simd

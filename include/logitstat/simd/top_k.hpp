#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "logitstat/simd/logits.hpp"

namespace logitstat::simd {

/// The k largest logits of a row that comes block by block, in order of the ids; of equal logits the lowest ids.
/// Precondition: no NaN. O(V) comparisons of registers, plus O(k) for each logit that is among the k best of those
/// before it: k ln(V / k) of them in a row in random order.
template <class Real> class TopK {
  public:
    struct Candidate {
        Real logit;
        std::int32_t id;
    };

    explicit TopK(std::size_t k) : k_(k) { best_.reserve(k + 1); }

    /// May a block with this maximum hold a logit that enters?
    bool may_enter(Real max) const { return best_.size() < k_ || max > best_.back().logit; }

    /// Looks at the logits of ids first, first + 1, ... Their ids are above all those seen before.
    template <class Arch, logit_type T> void scan(std::span<const T> block, std::size_t first) {
        using reals = batch<Real, Arch>;
        constexpr std::size_t step = two_batches<T, Arch>;
        const auto offer = [&](std::size_t i) { this->offer(widen(block[i]), static_cast<std::int32_t>(first + i)); };
        std::size_t i = 0;
        while (i < block.size() && best_.size() < k_) { offer(i++); }
        for (; i + step <= block.size(); i += step) {
            const auto [a, b] = load_two<Arch>(&block[i]);
            if (xsimd::any(xsimd::max(a, b) > reals(best_.back().logit))) {
                for (std::size_t j = i; j < i + step; ++j) { offer(j); }
            }
        }
        for (; i < block.size(); ++i) { offer(i); }
    }

    /// Best first; all of them when fewer than k were seen.
    std::span<const Candidate> best() const { return best_; }

  private:
    /// An equal logit came before and keeps its place: only a larger one moves it.
    void offer(Real logit, std::int32_t id) {
        if (!may_enter(logit)) { return; }
        const auto place = std::upper_bound(best_.begin(), best_.end(), logit,
                                            [](Real x, const Candidate& other) { return x > other.logit; });
        best_.insert(place, {logit, id});
        if (best_.size() > k_) { best_.pop_back(); }
    }

    std::size_t k_;
    std::vector<Candidate> best_;
};

} // namespace logitstat::simd

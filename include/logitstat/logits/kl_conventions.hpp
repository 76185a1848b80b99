#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/log_sum_exp.hpp"
#include "logitstat/simd/logits.hpp"

namespace logitstat {

/// Departures from the definition of KL by which other tools arrive at their figures: for holding this library against
/// them, not for judging a model. By default there are none.
struct KlConventions {
    /// Terms p ln(p / q) with ln p at most this (nats) are left out.
    std::optional<double> skip_below = {};
    /// Log-probabilities that a file holds (.kld) are not normalized, although rounding has left their sum at 1 -+
    /// 1e-4.
    bool as_stored = false;
    /// Log-sum-exps, NLLs, probabilities and the terms of KL are rounded to float.
    bool single_precision = false;

    /// Whether there is any departure from the definition.
    bool any() const { return skip_below.has_value() || as_stored || single_precision; }
    /// Those of llama.cpp's perplexity tool; its quantiles are quantile_rule::linear_float.
    static KlConventions llama_cpp() { return {.skip_below = -16.0, .as_stored = true, .single_precision = true}; }
    /// The same departures.
    friend bool operator==(const KlConventions&, const KlConventions&) = default;
};

/// KL and NLL of one pair of rows by the conventions, in Real. For reproducing figures: `simd::divergence` is the fast
/// and the exact one.
template <std::floating_point Real> struct ConventionalRow {
    Real max = 0,    ///< the largest logit
        log_sum = 0; ///< ln of the sum of exp(x - max): ln p = x - max - log_sum

    /// Of probabilities that are exp(x) as they are.
    ConventionalRow() = default;
    /// Of softmax(row). O(V). Precondition: a row that is not refused, with its largest logit.
    template <simd::logit_type T>
    ConventionalRow(std::span<const T> row, double largest) : max{static_cast<Real>(largest)} {
        double sum = 0; // to the last bit, since a float's last bit is at stake
        for (const T x : row) { sum += static_cast<double>(std::exp(static_cast<Real>(simd::widen(x)) - max)); }
        log_sum = static_cast<Real>(std::log(sum));
    }
    /// -ln p, nats.
    template <simd::logit_type T> Real nll(T logit) const {
        return max + log_sum - static_cast<Real>(simd::widen(logit));
    }

    /// sum p ln(p / q) over the tokens with ln p above `skip_below`, each term in Real, added in double. This row's
    /// probabilities need not add up to 1, so it may be below zero. A p > 0 whose q is 0 gives +infinity. O(V).
    /// Preconditions: equal lengths, neither row refused.
    template <simd::logit_type P, simd::logit_type Q>
    double kl(std::span<const P> reference, std::span<const Q> candidate, const ConventionalRow& q,
              std::optional<double> skip_below) const {
        const Real log_q_sum = q.max + q.log_sum;
        double sum = 0;
        for (std::size_t i = 0; i < reference.size(); ++i) {
            if (!simd::is_finite(simd::widen(reference[i]))) { continue; } // p = 0
            const Real log_p = -nll(reference[i]);
            if (skip_below && log_p <= static_cast<Real>(*skip_below)) { continue; }
            const Real probability = std::exp(log_p);
            if (probability == 0) { continue; }
            const auto y = simd::widen(candidate[i]);
            if (!simd::is_finite(y)) { return std::numeric_limits<double>::infinity(); }
            sum += static_cast<double>(probability * (log_p - static_cast<Real>(y) + log_q_sum));
        }
        return sum;
    }
};

} // namespace logitstat

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/quantile.hpp"
#include "logitstat/stats/rank.hpp"
#include "logitstat/trace/trace.hpp"

/// How far the change moved the logit of the reference's own choice, where the candidate still lists that token.
namespace logitstat {

/// Summary of the logit deltas of a pair, in logits. Figures other than the count exist only when count > 0.
struct LogitDelta {
    std::int64_t count = 0;            ///< positions whose reference token the candidate lists
    std::optional<double> p50,         ///< median of |candidate - reference|
        p90,                           ///< 90 % quantile of that
        p99,                           ///< 99 % quantile
        max;                           ///< largest
    std::optional<double> mean_signed; ///< of candidate - reference: above 0, the candidate is higher
};

/// candidate's logit minus reference's logit of the reference's best token, for each position where the candidate
/// lists it, in trace order. At most n values. O(n k) at worst, O(n) where the arms agree. Throws std::invalid_argument
/// when the shapes do not fit.
template <trace_like R, trace_like C> std::vector<double> logit_deltas(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto ref = reference.view();
    const auto cand = candidate.view();
    std::vector<double> deltas;
    deltas.reserve(ref.size());
    for (std::size_t i = 0; i < ref.size(); ++i) {
        if (const auto rank = rank_of(candidate, i, ref.ids(0)[i])) {
            deltas.push_back(static_cast<double>(cand.logits(*rank - 1)[i]) - static_cast<double>(ref.logits(0)[i]));
        }
    }
    return deltas;
}

/// Quantiles, maximum and signed mean of logit deltas. O(n). Throws std::invalid_argument when one is not finite.
inline LogitDelta logit_delta(std::vector<double> deltas, quantile_rule rule = quantile_rule::floor_index) {
    LogitDelta summary;
    summary.count = static_cast<std::int64_t>(deltas.size());
    if (deltas.empty()) { return summary; }
    summary.mean_signed = moments_of(std::span<const double>(deltas)).mean;
    for (double& delta : deltas) { delta = std::abs(delta); }
    static constexpr std::array<double, 4> probabilities{0.5, 0.9, 0.99, 1.0};
    const std::vector<double> at = quantiles(std::move(deltas), probabilities, rule);
    summary.p50 = at[0];
    summary.p90 = at[1];
    summary.p99 = at[2];
    summary.max = at[3];
    return summary;
}

/// The same of two traces. Throws also when the shapes do not fit.
template <trace_like R, trace_like C>
LogitDelta logit_delta(const R& reference, const C& candidate, quantile_rule rule = quantile_rule::floor_index) {
    return logit_delta(logit_deltas(reference, candidate), rule);
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/capture/logits_row.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/simd/summarize_row.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// What a trace keeps of one position.
struct RowScore {
    double nll = 0;                  ///< nats, -log softmax(logits)[target]
    std::vector<token_id> ids = {};  ///< [k] tokens with the largest logits, best first, equal logits by ascending id
    std::vector<double> logits = {}; ///< [k] their logits, exact
};

namespace detail {

/// Scores a row into `score`, or says why a trace cannot hold it (and leaves `score` as it was). Preconditions: target
/// in [0, V), 1 <= k <= V <= 2^31 - 1.
template <class Arch, simd::logit_type T>
std::string try_score_row(std::span<const T> row, std::size_t target, std::size_t k, RowScore& score) {
    const auto [sum, best] = simd::summarize_row<Arch>(row, k);
    if (sum.refused < row.size()) {
        const bool infinite = simd::is_infinite(simd::widen(row[sum.refused]));
        return "the logit of token " + std::to_string(sum.refused) + " is " + (infinite ? "+infinity" : "NaN");
    }
    const auto at_target = simd::widen(row[target]);
    if (!simd::is_finite(at_target)) {
        return "the logit of the target, token " + std::to_string(target) + ", is -infinity (probability 0)";
    }
    for (std::size_t j = 0; j < k; ++j) {
        if (!simd::is_finite(best[j].logit)) {
            return "only " + std::to_string(j) + " logits are finite, the best " + std::to_string(k) + " are asked for";
        }
    }
    score.nll = sum.nll(static_cast<double>(at_target));
    score.ids.resize(k);
    score.logits.resize(k);
    for (std::size_t j = 0; j < k; ++j) {
        score.ids[j] = best[j].id;
        score.logits[j] = best[j].logit;
    }
    return "";
}

inline void check_row_arguments(std::int64_t target, std::size_t k, std::size_t vocabulary) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<token_id>::max());
    if (vocabulary > most) { throw std::invalid_argument(std::to_string(vocabulary) + " logits: more than token ids"); }
    if (k < 1 || k > vocabulary) {
        throw std::invalid_argument("the best " + std::to_string(k) + " of " + std::to_string(vocabulary) + " logits");
    }
    if (target < 0 || static_cast<std::size_t>(target) >= vocabulary) {
        throw std::invalid_argument("target " + std::to_string(target) + " is no token of a vocabulary of " +
                                    std::to_string(vocabulary));
    }
}

} // namespace detail

/// NLL of `target` and the k best tokens of one row of V logits (logits[i] belongs to token i), in one streaming pass.
/// O(V + k log k log(V / k)) for logits in no particular order.
///
/// The NLL is within 2e-6 of the exact value for float and narrower types up to V = 262,144 (typically 1e-7), 1e-12 for
/// double (or half an ulp, for NLLs in the thousands); +infinity where it is beyond double. -infinity is probability 0.
/// Throws std::invalid_argument when target is not in [0, V), k not in [1, V], a logit is NaN or +infinity, or the
/// target or one of the k best is -infinity.
template <class Arch = xsimd::default_arch, logits_row L>
RowScore score_row(const L& logits, std::int64_t target, std::size_t k) {
    RowScore score;
    detail::with_span(logits, [&](auto row) {
        detail::check_row_arguments(target, k, row.size());
        const std::string defect = detail::try_score_row<Arch>(row, static_cast<std::size_t>(target), k, score);
        if (!defect.empty()) { throw std::invalid_argument(defect); }
    });
    return score;
}

} // namespace logitstat

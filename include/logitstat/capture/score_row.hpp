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

/// Why a trace cannot hold a row whose summary this is, or an empty string: the logit of its first NaN or +infinity, a
/// target (a negative one is none) of probability 0, fewer than k finite logits. O(k).
template <simd::logit_type T>
std::string row_defect(std::span<const T> row, const simd::RowSummary& summary, std::int64_t target, std::size_t k) {
    if (const std::size_t at = summary.sum.refused; at < row.size()) {
        const bool infinite = simd::is_infinite(simd::widen(row[at]));
        return "the logit of token " + std::to_string(at) + " is " + (infinite ? "+infinity" : "NaN");
    }
    if (target >= 0 && !simd::is_finite(simd::widen(row[static_cast<std::size_t>(target)]))) {
        return "the logit of the target, token " + std::to_string(target) + ", is -infinity (probability 0)";
    }
    for (std::size_t j = 0; j < k; ++j) {
        if (!simd::is_finite(summary.best[j].logit)) {
            return "only " + std::to_string(j) + (j == 1 ? " logit is" : " logits are") + " finite, the best " +
                   std::to_string(k) + " are asked for";
        }
    }
    return "";
}

/// Scores a row into `score`, or says why a trace cannot hold it (and leaves `score` as it was). Preconditions: target
/// in [0, V), 1 <= k <= V <= 2^31 - 1.
template <class Arch, simd::logit_type T>
std::string try_score_row(std::span<const T> row, std::size_t target, std::size_t k, RowScore& score) {
    const simd::RowSummary summary = simd::summarize_row<Arch>(row, k);
    std::string defect = row_defect(row, summary, static_cast<std::int64_t>(target), k);
    if (!defect.empty()) { return defect; }
    score.nll = summary.sum.nll(static_cast<double>(simd::widen(row[target])));
    score.ids.resize(k);
    score.logits.resize(k);
    for (std::size_t j = 0; j < k; ++j) {
        score.ids[j] = summary.best[j].id;
        score.logits[j] = summary.best[j].logit;
    }
    return "";
}

inline void check_row_arguments(std::int64_t target, std::size_t k, std::size_t vocabulary) {
    constexpr auto most = static_cast<std::size_t>((std::numeric_limits<token_id>::max)());
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
template <class Arch = simd::preferred_arch, logits_row L>
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

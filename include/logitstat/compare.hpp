#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/stats/accuracy.hpp"
#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/gap.hpp"
#include "logitstat/stats/logit_delta.hpp"
#include "logitstat/stats/nll_difference.hpp"
#include "logitstat/stats/perplexity.hpp"
#include "logitstat/stats/rank.hpp"
#include "logitstat/stats/step_curve.hpp"
#include "logitstat/stats/sweep.hpp"
#include "logitstat/stats/verdict.hpp"
#include "logitstat/stats/worst_disagreements.hpp"
#include "logitstat/trace/comparability.hpp"
#include "logitstat/trace/finite.hpp"
#include "logitstat/trace/trace.hpp"

/// All statistics of one pair of traces.
namespace logitstat {

/// What to do with positions that hold an infinite or NaN value in either arm.
enum class non_finite_policy {
    error, ///< refuse the comparison, naming the first
    skip   ///< leave them out of every statistic, and count them
};

struct CompareOptions {
    double decided_gap = 2.0;                         ///< logits: the threshold that the verdict looks at
    std::vector<double> thresholds = {0.5, 1.0, 2.0}; ///< logits: the sweep
    std::size_t worst = 0;                            ///< how many of the worst disagreements to list
    quantile_rule quantiles = quantile_rule::floor_index;
    non_finite_policy non_finite = non_finite_policy::error;
    bool step_curve = false; ///< also compute the sweep at every gap that occurs
    bool strict = false;     ///< a warning becomes a not_comparable
};

/// The result of `compare`; every figure is defined in the header of its statistic. A figure that does not exist (a
/// rate of nothing, an error of one value) is an empty optional, never a NaN.
struct Comparison {
    std::int64_t positions = 0; ///< compared
    std::int64_t skipped_non_finite = 0;
    std::size_t chunks = 0;
    std::size_t reference_k = 0, candidate_k = 0;
    std::int64_t disagreements = 0; ///< positions whose top-1 tokens differ
    DecidedCount decided;           ///< at CompareOptions::decided_gap
    std::vector<DecidedCount> sweep;
    std::optional<Disagreement> largest_gap; ///< the disagreement with the largest reference gap
    std::vector<Disagreement> worst;
    std::vector<RankCount> ranks;    ///< over the disagreements
    std::int64_t hard_ties = 0;      ///< positions where the reference's two best logits are equal
    std::int64_t candidate_ties = 0; ///< disagreements where the candidate's logits of both tokens are equal
    LogitDelta logit_delta;
    Perplexity reference_perplexity, candidate_perplexity;
    NllDifference nll_difference;
    Accuracy reference_accuracy, candidate_accuracy;
    std::optional<StepCurve> curve;
    Verdict verdict = Verdict::inconclusive;
    bool identical_data = false; ///< every value of every column is equal, not only the top-1 tokens
    std::vector<std::string> warnings;
    TraceSource reference, candidate;

    double disagreement_rate() const { return static_cast<double>(disagreements) / static_cast<double>(positions); }
};

namespace detail {

template <trace_like R, trace_like C> bool same_data(const R& reference, const C& candidate) {
    const auto a = reference.view();
    const auto b = candidate.view();
    return a.k == b.k && std::ranges::equal(a.nll, b.nll) && std::ranges::equal(a.top_ids, b.top_ids) &&
           std::ranges::equal(a.top_logits, b.top_logits);
}

/// Chunks are runs of equal chunk numbers, as the trace orders them.
inline std::size_t count_chunks(std::span<const std::int32_t> chunk) {
    std::size_t chunks = chunk.empty() ? 0 : 1;
    for (std::size_t i = 1; i < chunk.size(); ++i) { chunks += chunk[i] != chunk[i - 1] ? 1 : 0; }
    return chunks;
}

/// The statistics, on input that is known to be comparable and finite.
template <trace_like R, trace_like C>
void compute(Comparison& result, const R& reference, const C& candidate, const CompareOptions& options) {
    const auto ref = reference.view();
    result.positions = static_cast<std::int64_t>(ref.size());
    if (result.positions == 0) { throw std::invalid_argument("there are no positions to compare"); }
    result.chunks = count_chunks(ref.chunk);
    result.reference_k = ref.k;
    result.candidate_k = candidate.view().k;

    std::vector<double> thresholds = options.thresholds;
    thresholds.push_back(options.decided_gap); // one pass serves the sweep and the verdict
    result.sweep = threshold_sweep(reference, candidate, thresholds);
    result.decided = result.sweep.back();
    result.sweep.pop_back();

    const std::vector<std::size_t> differ = disagreement_positions(reference, candidate);
    result.disagreements = static_cast<std::int64_t>(differ.size());
    result.worst = worst_disagreements(reference, candidate, differ, std::max<std::size_t>(options.worst, 1));
    if (!result.worst.empty()) { result.largest_gap = result.worst.front(); }
    result.worst.resize(std::min(options.worst, result.worst.size()));
    result.ranks = rank_distribution(reference, candidate, differ);
    result.hard_ties = count_hard_ties(reference);
    result.candidate_ties = count_candidate_ties(reference, candidate, differ);
    result.logit_delta = logit_delta(reference, candidate, options.quantiles);
    result.reference_perplexity = perplexity(reference).value();
    result.candidate_perplexity = perplexity(candidate).value();
    result.nll_difference = nll_difference(reference, candidate);
    result.reference_accuracy = accuracy(reference);
    result.candidate_accuracy = accuracy(candidate);
    if (options.step_curve) { result.curve = step_curve(reference, candidate); }
    result.verdict = verdict_of(result.disagreements, result.decided);
    result.identical_data = same_data(reference, candidate);
}

} // namespace detail

/// Compares two traces that score the same tokens. O(n k) time, O(n) extra memory. Traces may be of different real
/// types and of different k. Metadata and warnings are carried over from traces that have a `source`; views have none.
/// Throws std::invalid_argument (a bad option, columns that do not fit, no position, a non-finite value under
/// non_finite_policy::error, or a reference whose logits do not descend) and not_comparable (other tokens; with
/// `strict`, any warning: all of them are in the message, one a line).
template <trace_like R, trace_like C>
Comparison compare(const R& reference, const C& candidate, const CompareOptions& options = {}) {
    check_shape(reference, "reference");
    check_shape(candidate, "candidate");
    require_comparable(reference, candidate);
    Comparison result;
    if constexpr (requires { reference.source; }) { result.reference = reference.source; }
    if constexpr (requires { candidate.source; }) { result.candidate = candidate.source; }
    for (const TraceSource* source : {&result.reference, &result.candidate}) {
        for (const std::string& warning : source->warnings) { result.warnings.push_back(warning); }
    }
    for (auto& difference : like_for_like_differences(result.reference.metadata, result.candidate.metadata)) {
        result.warnings.push_back(std::move(difference));
    }
    if (options.strict && !result.warnings.empty()) {
        std::string all;
        for (const std::string& warning : result.warnings) { all += (all.empty() ? "" : "\n") + warning; }
        throw not_comparable(all);
    }
    if (options.non_finite == non_finite_policy::skip) {
        const std::vector<std::size_t> kept = finite_positions(reference, candidate);
        if (kept.size() < reference.view().size()) {
            result.skipped_non_finite = static_cast<std::int64_t>(reference.view().size() - kept.size());
            detail::compute(result, subset(reference, kept), subset(candidate, kept), options);
            return result;
        }
    } else {
        require_finite(reference, "reference");
        require_finite(candidate, "candidate");
    }
    detail::compute(result, reference, candidate, options);
    return result;
}

} // namespace logitstat

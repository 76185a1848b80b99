#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/stats/accuracy.hpp"
#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/bootstrap.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/gap.hpp"
#include "logitstat/stats/korn_graubard.hpp"
#include "logitstat/stats/limit.hpp"
#include "logitstat/stats/logit_delta.hpp"
#include "logitstat/stats/mcnemar.hpp"
#include "logitstat/stats/nll_difference.hpp"
#include "logitstat/stats/perplexity.hpp"
#include "logitstat/stats/perplexity_difference.hpp"
#include "logitstat/stats/proportion.hpp"
#include "logitstat/stats/rank.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "logitstat/stats/step_curve.hpp"
#include "logitstat/stats/sweep.hpp"
#include "logitstat/stats/ulp.hpp"
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

/// What `compare` computes, by which rules it judges, and what it refuses.
struct CompareOptions {
    double decided_gap = 2.0;                         ///< logits: the threshold that the verdict looks at
    std::vector<double> thresholds = {0.5, 1.0, 2.0}; ///< logits: the sweep
    std::vector<double> ulps = {1, 2, 4};             ///< steps of the storage type: the second sweep
    std::optional<storage_type> storage = {};         ///< of the reference's logits; nothing: inferred from them
    VerdictRules rules = {};                          ///< what a pass asks for
    confidence_level confidence{0.95};                ///< of every interval and bound
    std::size_t worst = 0;                            ///< how many of the worst disagreements to list
    /// Of the logit deltas, and of the distributions of full logits; nothing: floor_index for traces, as published
    /// tables have it, linear for full logits.
    std::optional<quantile_rule> quantiles = {};
    HacOptions hac = {};                                     ///< of the autocorrelation-consistent standard errors
    BootstrapOptions bootstrap = {};                         ///< 0 replicates: none
    non_finite_policy non_finite = non_finite_policy::error; ///< for positions with an infinity or NaN
    bool step_curve = false;                                 ///< also compute the sweep at every gap that occurs
    bool strict = false;                                     ///< a warning becomes a not_comparable
};

/// A headline figure beside what a second run of the reference makes of it; see noise_floor.hpp.
struct NoiseFigure {
    std::string name;                ///< what the figure is, in words
    std::optional<double> candidate, ///< of the candidate against the reference; nothing where it does not exist
        floor;                       ///< of the rerun against the reference, likewise
    bool beyond = false;             ///< the candidate's figure is larger in size than the rerun's
};

/// The result of `compare`; every figure is defined in the header of its statistic. A figure that does not exist (a
/// rate of nothing, an error of one value) is an empty optional, never a NaN.
struct Comparison {
    std::int64_t positions = 0;            ///< compared
    std::int64_t skipped_non_finite = 0;   ///< left out, because the value of either arm is infinite or NaN
    std::int64_t reference_non_finite = 0, ///< of those, where the reference has such a value
        candidate_non_finite = 0;          ///< of those, where the candidate has one
    std::size_t chunks = 0;                ///< among the positions compared
    std::size_t reference_k = 0,           ///< the reference's candidates a position
        candidate_k = 0;                   ///< the candidate's
    std::size_t vocabulary = 0;            ///< 0 for traces, which do not say it
    /// False for full logits of unknown targets: what is taken from NLLs and targets has then no meaning.
    bool has_targets = true;
    confidence_level confidence{0.95}; ///< of every interval and bound below
    VerdictRules rules;                ///< that the verdict was given by

    std::int64_t disagreements = 0;               ///< positions whose top-1 tokens differ
    ClusteredProportion disagreements_clustered;  ///< their rate, with the chunks as clusters
    DecidedCount decided;                         ///< at CompareOptions::decided_gap
    ClusteredProportion decided_clustered;        ///< the mismatch rate there, with the chunks as clusters
    std::optional<Interval> decided_bootstrap;    ///< the same by drawing chunks
    std::vector<DecidedCount> sweep;              ///< at CompareOptions::thresholds, in their order
    storage_type storage = storage_type::float32; ///< of the reference's logits
    bool storage_inferred = true;                 ///< from the logits, since CompareOptions::storage was empty
    std::vector<DecidedCount> ulp_sweep;          ///< thresholds in steps of `storage`
    std::optional<Disagreement> largest_gap;      ///< the disagreement with the largest reference gap
    std::vector<Disagreement> worst; ///< by reference gap, the largest first; at most CompareOptions::worst
    std::vector<RankCount> ranks;    ///< over the disagreements
    std::int64_t hard_ties = 0;      ///< positions where the reference's two best logits are equal
    std::int64_t candidate_ties = 0; ///< disagreements where the candidate's logits of both tokens are equal
    LogitDelta logit_delta;          ///< of the reference's best token, where the candidate lists it
    Perplexity reference_perplexity, ///< of the reference, on the corpus tokens
        candidate_perplexity;        ///< of the candidate
    NllDifference nll_difference;    ///< paired, candidate - reference
    std::optional<PerplexityDifference> perplexity_difference; ///< nothing when a perplexity is infinite
    std::optional<Interval> ratio_bootstrap;                   ///< perplexity ratio, by drawing chunks
    Accuracy reference_accuracy,                               ///< top-1, of the reference on the corpus tokens
        candidate_accuracy;                                    ///< of the candidate
    McNemar mcnemar;                                           ///< the 2 x 2 table of the two accuracies
    std::optional<StepCurve> curve;                ///< nothing unless CompareOptions::step_curve asks for it
    Verdict token_verdict = Verdict::inconclusive; ///< by `rules`, on `decided`
    std::vector<Limit> limits;                     ///< that `rules` ask for, and how they came out
    Verdict verdict = Verdict::inconclusive;       ///< of tokens and limits together
    bool identical_data = false;                   ///< every value of every column is equal, not only the top-1 tokens
    std::vector<NoiseFigure> noise;                ///< empty unless a rerun of the reference was compared too
    /// Sentences: what readers noticed, where the arms are not like for like, non-finite values of the candidate alone.
    std::vector<std::string> warnings;
    TraceSource reference, ///< where the reference came from; empty for a view
        candidate;         ///< where the candidate came from

    /// disagreements / positions. Precondition: positions > 0, as `compare` leaves it.
    double disagreement_rate() const { return static_cast<double>(disagreements) / static_cast<double>(positions); }
    /// A count of the sweeps as a rate with interval and bound at the comparison's confidence.
    Proportion rate(const DecidedCount& count) const {
        return proportion(count.mismatches, count.positions, confidence);
    }
};

/// Above this number of chunks no bootstrap is drawn.
inline constexpr std::size_t most_drawn_chunks = 20'000;

namespace detail {

template <trace_like R, trace_like C> bool same_data(const R& reference, const C& candidate) {
    const auto a = reference.view();
    const auto b = candidate.view();
    return a.k == b.k && std::ranges::equal(a.nll, b.nll) && std::ranges::equal(a.top_ids, b.top_ids) &&
           std::ranges::equal(a.top_logits, b.top_logits);
}

/// Sums of a per-position quantity over each chunk.
template <class Sum, class Value>
std::vector<Sum> sum_by_chunk(std::span<const std::size_t> boundaries, const Value& value) {
    std::vector<Sum> sums(boundaries.size() - 1);
    for (std::size_t c = 0; c < sums.size(); ++c) {
        for (std::size_t i = boundaries[c]; i < boundaries[c + 1]; ++i) { sums[c] += static_cast<Sum>(value(i)); }
    }
    return sums;
}

/// What the chunks as clusters say of the rates and of the perplexity ratio. `differs` is the mask of disagreements.
template <trace_like R, trace_like C>
void compute_by_chunk(Comparison& result, const R& reference, const C& candidate, std::span<const std::uint8_t> differs,
                      const CompareOptions& options) {
    const auto ref = reference.view();
    const std::vector<std::size_t> chunks = cluster_boundaries(ref.chunk);
    const std::vector<double> gap = gaps(reference), d = nll_differences(reference, candidate);
    const auto decided = [&](std::size_t i) { return gap[i] >= options.decided_gap; };
    const auto size = sum_by_chunk<std::int64_t>(chunks, [](std::size_t) { return 1; });
    const auto disagree = sum_by_chunk<std::int64_t>(chunks, [&](std::size_t i) { return differs[i]; });
    const auto wrong = sum_by_chunk<std::int64_t>(chunks, [&](std::size_t i) { return decided(i) ? differs[i] : 0; });
    const auto judged = sum_by_chunk<std::int64_t>(chunks, decided);
    const auto shift = sum_by_chunk<double>(chunks, [&](std::size_t i) { return d[i]; });
    result.chunks = chunks.size() - 1;
    result.disagreements_clustered = korn_graubard(disagree, size, options.confidence);
    result.decided_clustered = korn_graubard(wrong, judged, options.confidence);
    const auto drawn = [&](const auto& a, const auto& b) {
        return bootstrap_ratio(std::vector<double>(a.begin(), a.end()), std::vector<double>(b.begin(), b.end()),
                               options.confidence, options.bootstrap);
    };
    // Drawing from a handful of chunks only looks like an interval; with very many it only repeats normal theory,
    // slowly.
    if (result.chunks < many_clusters || result.chunks > most_drawn_chunks || options.bootstrap.replicates == 0) {
        return;
    }
    // With no mismatch, or nothing else, every draw is the same and shows no doubt.
    const bool all_alike = result.decided.mismatches == 0 || result.decided.mismatches == result.decided.positions;
    if (!all_alike) { result.decided_bootstrap = drawn(wrong, judged); }
    if (const auto mean = drawn(shift, size)) {
        result.ratio_bootstrap = Interval{std::exp(mean->lo), std::exp(mean->hi)};
    }
}

/// Gaps in steps of the storage type: the second sweep, and for each listed disagreement.
template <trace_like R>
void compute_ulps(Comparison& result, const R& reference, std::span<const std::uint8_t> differs,
                  const CompareOptions& options) {
    const auto ref = reference.view();
    const auto top_two = ref.top_logits.first(2 * ref.size());
    result.storage_inferred = !options.storage.has_value();
    result.storage = options.storage ? *options.storage : infer_storage(top_two).value();
    result.ulp_sweep = margin_sweep(gaps_in_ulps(reference, result.storage), differs, options.ulps);
    const auto add_ulps = [&](Disagreement& at) {
        at.ulps = gap_in_ulps(result.storage, static_cast<double>(ref.logits(0)[at.index]),
                              static_cast<double>(ref.logits(1)[at.index]));
    };
    if (result.largest_gap) { add_ulps(*result.largest_gap); }
    for (Disagreement& at : result.worst) { add_ulps(at); }
}

/// The verdict, from the figures and `rules`.
inline void judge(Comparison& result) {
    if (result.skipped_non_finite > result.reference_non_finite) { // what the candidate alone has may be infinitely bad
        for (Limit& limit : result.limits) {
            doubt(limit, Verdict::pass, "positions where only the candidate is not finite are left out");
        }
    }
    if (result.identical_data) { // nothing has risen, also where too few positions give no interval
        for (Limit& limit : result.limits) { limit.verdict = Verdict::pass, limit.caveat.clear(); }
    }
    result.token_verdict =
        verdict_of(result.disagreements, result.decided, result.identical_data, result.rules, result.confidence);
    result.verdict = with_limits(result.token_verdict, result.limits, result.identical_data);
}

/// The limit of the perplexity's increase, which has the interval of the paired differences.
inline Limit perplexity_limit(const NllDifference& d, double most) {
    std::optional<Interval> interval;
    if (d.interval) { interval = Interval{std::expm1(d.interval->lo), std::expm1(d.interval->hi)}; }
    return limit_of("perplexity increase", most, std::expm1(d.mean), interval, true);
}

/// The statistics, on input that is known to be comparable and finite.
template <trace_like R, trace_like C>
void compute(Comparison& result, const R& reference, const C& candidate, const CompareOptions& options) {
    const auto ref = reference.view();
    result.positions = static_cast<std::int64_t>(ref.size());
    if (result.positions == 0) { throw std::invalid_argument("there are no positions to compare"); }
    if (options.rules.max_kl) { throw std::invalid_argument("max_kl: traces have no KL divergence, full logits have"); }
    result.reference_k = ref.k;
    result.candidate_k = candidate.view().k;
    result.confidence = options.confidence;
    result.rules = options.rules;

    std::vector<double> thresholds = options.thresholds;
    thresholds.push_back(options.decided_gap); // one pass serves the sweep and the verdict
    result.sweep = threshold_sweep(reference, candidate, thresholds);
    result.decided = result.sweep.back();
    result.sweep.pop_back();

    const std::vector<std::size_t> differ = disagreement_positions(reference, candidate);
    result.disagreements = static_cast<std::int64_t>(differ.size());
    result.worst = worst_disagreements(reference, candidate, differ, std::max<std::size_t>(options.worst, 1));
    if (!result.worst.empty()) { result.largest_gap = result.worst.front(); }
    result.worst.resize((std::min)(options.worst, result.worst.size()));
    result.ranks = rank_distribution(reference, candidate, differ);
    result.hard_ties = count_hard_ties(reference);
    result.candidate_ties = count_candidate_ties(reference, candidate, differ);
    const std::vector<std::uint8_t> differs = disagreements(reference, candidate);
    compute_ulps(result, reference, differs, options);
    compute_by_chunk(result, reference, candidate, differs, options);
    result.logit_delta = logit_delta(reference, candidate, options.quantiles.value_or(quantile_rule::floor_index));
    result.reference_perplexity = perplexity(reference, options.confidence, options.hac).value();
    result.candidate_perplexity = perplexity(candidate, options.confidence, options.hac).value();
    result.nll_difference = nll_difference(reference, candidate, options.confidence, options.hac).value();
    result.perplexity_difference = perplexity_difference(reference, candidate, options.hac);
    result.reference_accuracy = accuracy(reference);
    result.candidate_accuracy = accuracy(candidate);
    result.mcnemar = mcnemar(reference, candidate);
    if (options.step_curve) { result.curve = step_curve(reference, candidate); }
    if (const auto most = options.rules.max_perplexity_increase) {
        result.limits.push_back(perplexity_limit(result.nll_difference, *most));
    }
    result.identical_data = result.skipped_non_finite == 0 && detail::same_data(reference, candidate);
    judge(result);
}

/// Counts what non_finite_policy::skip leaves out: positions of the reference, of the candidate, of either.
inline void note_skipped(Comparison& result, std::int64_t reference, std::int64_t candidate, std::int64_t either) {
    result.skipped_non_finite = either;
    result.reference_non_finite = reference;
    result.candidate_non_finite = candidate;
    if (const auto alone = either - reference; alone > 0) {
        result.warnings.push_back("the candidate has non-finite values at " + std::to_string(alone) +
                                  (alone == 1 ? " position" : " positions") + " where the reference has none");
    }
}

/// What `strict` makes of warnings: all of them, one a line.
inline void refuse_warnings(const Comparison& result) {
    std::string all;
    for (const std::string& warning : result.warnings) { all += (all.empty() ? "" : "\n") + warning; }
    if (!all.empty()) { throw not_comparable(all); }
}

/// Indices into the positions that were kept become indices into the trace.
inline void restore_indices(Comparison& result, std::span<const std::size_t> kept) {
    if (result.largest_gap) { result.largest_gap->index = kept[result.largest_gap->index]; }
    for (Disagreement& at : result.worst) { at.index = kept[at.index]; }
    result.nll_difference.largest_index = kept[result.nll_difference.largest_index];
}

} // namespace detail

/// Compares two traces that score the same tokens. O(n (k + lag)) time, plus O(replicates x chunks) for a bootstrap and
/// O(n log n) for a step curve; O(n) extra memory, O(n k) where positions are skipped. Traces may be of different real
/// types and of different k. Metadata and warnings are carried over from traces that have a `source`; views have none.
/// Throws std::invalid_argument (a bad option, columns that do not fit, no position, a non-finite value under
/// non_finite_policy::error, or a reference whose logits do not descend) and not_comparable (other tokens; with
/// `strict`, any warning: all of them are in the message, one a line); io_error when a trace that is viewed in a file
/// was cut meanwhile.
template <trace_like R, trace_like C>
Comparison compare(const R& reference, const C& candidate, const CompareOptions& options = {}) {
    check_shape(reference, "reference");
    check_shape(candidate, "candidate");
    Comparison result;
    if constexpr (requires { reference.source; }) { result.reference = reference.source; }
    if constexpr (requires { candidate.source; }) { result.candidate = candidate.source; }
    try {
        require_comparable(reference, candidate);
    } catch (const not_comparable& difference) {
        if (result.reference.path.empty() && result.candidate.path.empty()) { throw; }
        const auto name = [](const TraceSource& source, const char* arm) { // a trace made in memory has no path
            return source.path.empty() ? "the " + std::string(arm) : source.path;
        };
        throw not_comparable(name(result.reference, "reference") + " and " + name(result.candidate, "candidate") +
                             " are " + difference.what());
    }
    for (const TraceSource* source : {&result.reference, &result.candidate}) {
        for (const std::string& warning : source->warnings) { result.warnings.push_back(warning); }
    }
    for (auto& difference : like_for_like_differences(result.reference.metadata, result.candidate.metadata)) {
        result.warnings.push_back(std::move(difference));
    }
    std::vector<std::size_t> kept;
    if (options.non_finite == non_finite_policy::skip) {
        kept = finite_positions(reference, candidate);
        const auto others = [&](std::size_t finite) {
            return static_cast<std::int64_t>(reference.view().size()) - static_cast<std::int64_t>(finite);
        };
        if (const std::int64_t skipped = others(kept.size()); skipped > 0) { // else there is nothing to tell of an arm
            detail::note_skipped(result, others(finite_positions(reference, reference).size()),
                                 others(finite_positions(candidate, candidate).size()), skipped);
        }
    }
    if (options.strict) { detail::refuse_warnings(result); }
    if (options.non_finite == non_finite_policy::skip && kept.empty()) {
        throw std::invalid_argument("no position is finite in both arms");
    }
    if (result.skipped_non_finite > 0) {
        detail::compute(result, subset(reference, kept), subset(candidate, kept), options);
        detail::restore_indices(result, kept);
    } else {
        if (options.non_finite == non_finite_policy::error) {
            require_finite(reference, "reference");
            require_finite(candidate, "candidate");
        }
        detail::compute(result, reference, candidate, options);
    }
    detail::require_whole(reference);
    detail::require_whole(candidate);
    return result;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/capture/pair_columns.hpp"
#include "logitstat/capture/score_pairs.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/logits/any_rows.hpp"
#include "logitstat/logits/kl_conventions.hpp"
#include "logitstat/logits/positions.hpp"
#include "logitstat/stats/distribution.hpp"
#include "logitstat/stats/root_mean_square.hpp"

/// All statistics of one pair of full-vocabulary logits.
namespace logitstat {

/// What `compare_logits` computes, and how it walks over the rows.
struct CompareLogitsOptions {
    /// Of everything that a pair of traces has, too; its quantile rule and errors serve the divergences as well.
    CompareOptions compare = {};
    std::size_t vocabulary = 0; ///< compare only the first so many tokens, of rows that are padded; 0: all
    std::size_t top_k = 8;      ///< of the top-k overlap, and logits that must be finite in each row; at most V
    std::size_t threads = 0;    ///< 0: as many as there are, of oneTBB; without it one
    KlConventions kl = {};      ///< departures from the definition of KL, see there; default: none
    std::function<void(std::size_t done, std::size_t total)> progress = {}; ///< rows; called from time to time
};

/// The result of `compare_logits`: a Comparison whose ranks are among all V tokens and whose logit deltas are of all
/// positions, and the divergences. P is the reference's distribution, Q the candidate's; KL and its kin in nats. A
/// divergence is nothing where no position has a finite value, `delta_p` also where the targets are not known.
struct LogitsComparison : Comparison {
    KlConventions kl_conventions;              ///< by which `kl` was taken
    std::optional<Distribution> kl,            ///< KL(P || Q), nats
        reverse_kl,                            ///< KL(Q || P), nats
        jensen_shannon,                        ///< nats, at most ln 2
        total_variation,                       ///< at most 1
        logit_rms,                             ///< logits: root mean square difference of a row without its mean shift
        delta_p;                               ///< probability of the target, candidate - reference
    std::optional<RootMeanSquare> delta_p_rms; ///< of `delta_p`; nothing where the targets are not known
    std::optional<Distribution> topk_overlap;  ///< share of the reference's top k that the candidate has there, too
    double logit_max = 0;                      ///< largest |candidate - reference| of any logit
    /// Positions whose target's probability is only known to be at most what a file of log-probabilities says.
    std::int64_t censored_targets = 0;
    /// All the figures without those positions; nullptr when there is none, or nothing else. Neither is right: what is
    /// censored makes NLLs too small, leaving it out leaves out the hardest tokens.
    std::shared_ptr<const LogitsComparison> without_censored;
};

namespace detail {

/// Figures over the top k become figures over the vocabulary. Columns and `result` are of the same positions.
inline void use_full_ranks(Comparison& result, const PairColumns& columns, quantile_rule rule) {
    const std::vector<std::size_t> differ = disagreement_positions(columns.reference, columns.candidate);
    result.ranks = rank_distribution(columns.rank, differ);
    result.candidate_ties = std::ranges::count_if(differ, [&](auto i) { return columns.landed_gap[i] == 0; });
    std::vector<double> deltas = columns.landed_delta;
    std::erase_if(deltas, [](double x) { return !simd::is_finite(x); }); // a choice that the candidate rules out
    result.logit_delta = logit_delta(std::move(deltas), rule);
}

/// Indices into the positions that were kept become indices into all.
inline void restore_distribution_indices(LogitsComparison& result, std::span<const std::size_t> kept) {
    for (auto* figure : {&result.kl, &result.reverse_kl, &result.jensen_shannon, &result.total_variation,
                         &result.logit_rms, &result.delta_p, &result.topk_overlap}) {
        if (*figure) {
            (*figure)->min_index = kept[(*figure)->min_index];
            (*figure)->max_index = kept[(*figure)->max_index];
        }
    }
}

inline std::vector<std::size_t> sound_positions(const PairColumns& columns) {
    std::vector<std::size_t> sound;
    auto defect = columns.defects.begin();
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (defect != columns.defects.end() && defect->position == i) {
            ++defect;
        } else {
            sound.push_back(i);
        }
    }
    return sound;
}

[[noreturn]] inline void throw_defect(const PairColumns& columns, const PairDefect& defect) {
    const bool in_reference = !defect.reference.empty();
    const TraceSource& source = in_reference ? columns.reference.source : columns.candidate.source;
    throw std::invalid_argument(
        (in_reference ? "reference" : "candidate") + (source.path.empty() ? "" : " " + source.path) + ": row " +
        std::to_string(defect.position) + " (chunk " + std::to_string(columns.reference.chunk[defect.position]) +
        ", pos " + std::to_string(columns.reference.pos[defect.position]) +
        "): " + (in_reference ? defect.reference : defect.candidate));
}

/// What figures say that no verdict looks at.
inline void warn_of_figures(LogitsComparison& result) {
    if (const std::int64_t infinite = result.kl ? result.kl->infinite : result.positions; infinite > 0) {
        result.warnings.push_back("KL is infinite at " + std::to_string(infinite) +
                                  (infinite == 1 ? " position" : " positions") +
                                  ": the candidate rules out a token that the reference allows");
    }
    if (result.has_targets && result.reference_perplexity.value > static_cast<double>(result.vocabulary)) {
        result.warnings.push_back(
            "the reference's perplexity is above the size of the vocabulary, worse than guessing: "
            "are these the targets of these logits?");
    }
}

/// The limit of the mean KL divergence, which is infinite when that of one position is.
inline Limit kl_limit(const std::optional<Distribution>& kl, double most) {
    if (!kl || kl->infinite > 0) {
        return limit_of("mean KL(P || Q)", most, std::numeric_limits<double>::infinity(), std::nullopt);
    }
    return limit_of("mean KL(P || Q)", most, kl->mean, kl->interval);
}

/// A censored NLL is at least what is stored: of the candidate it makes the perplexity's increase look too small, of
/// the reference too large.
inline void doubt_censored(std::vector<Limit>& limits, std::span<const std::uint8_t> censored,
                           std::span<const std::size_t> kept) {
    const auto any = [&](std::uint8_t arm) {
        return std::ranges::any_of(kept, [&](std::size_t i) { return (censored[i] & arm) != 0; });
    };
    for (Limit& limit : limits) {
        if (!limit.fraction) { continue; } // KL has no target
        if (any(censored_in_candidate)) { doubt(limit, Verdict::pass, "the candidate's censored NLLs may be larger"); }
        if (any(censored_in_reference)) { doubt(limit, Verdict::fail, "the reference's censored NLLs may be larger"); }
    }
}

/// The statistics at positions none of which is a defect. The verdict is left to `judge`: it also rests on what was
/// left out, and on what is censored.
inline LogitsComparison summarize_sound(const PairColumns& columns, const CompareOptions& options) {
    LogitsComparison result;
    CompareOptions sound = options; // what cannot be compared has been left out: of the divergences, too
    sound.non_finite = non_finite_policy::error;
    sound.rules.max_kl.reset(); // nothing that columns of traces could answer
    if (options.rules.max_perplexity_increase && !columns.has_targets()) {
        throw std::invalid_argument("max_perplexity_increase: there is no perplexity without targets");
    }
    static_cast<Comparison&>(result) = compare(columns.reference, columns.candidate, sound);
    const quantile_rule rule = options.quantiles.value_or(quantile_rule::linear);
    use_full_ranks(result, columns, rule);
    const auto full_rank = [&](Disagreement& at) { at.rank = static_cast<std::size_t>(columns.rank[at.index]); };
    if (result.largest_gap) { full_rank(*result.largest_gap); }
    std::ranges::for_each(result.worst, full_rank);
    result.has_targets = columns.has_targets();
    result.identical_data = result.identical_data && columns.equal_logits;
    const std::vector<std::size_t> chunks = cluster_boundaries(columns.reference.chunk);
    const auto spread = [&](const std::vector<double>& column) {
        return distribution(column, chunks, rule, options.confidence, options.hac);
    };
    result.kl = spread(columns.kl);
    result.reverse_kl = spread(columns.reverse_kl);
    result.jensen_shannon = spread(columns.jensen_shannon);
    result.total_variation = spread(columns.total_variation);
    result.logit_rms = spread(columns.logit_rms);
    result.logit_max = *std::ranges::max_element(columns.logit_max);
    result.topk_overlap = spread(columns.top_shared);
    if (columns.has_targets()) {
        result.delta_p = spread(columns.delta_p);
        result.delta_p_rms = root_mean_square(columns.delta_p, chunks, options.hac);
    }
    result.rules = options.rules;
    if (options.rules.max_kl) { result.limits.push_back(kl_limit(result.kl, *options.rules.max_kl)); }
    return result;
}

} // namespace detail

/// The statistics of rows that `score_pairs` has read; `censored` is [n] or empty, see LogitsPositions. O(n (k + lag)).
/// Throws as `compare`, and std::invalid_argument naming row, arm and reason of the first defect unless
/// options.compare.non_finite says to skip such positions (and then for columns that are not complete), or when
/// `censored` has another length.
inline LogitsComparison summarize(const PairColumns& columns, std::span<const std::uint8_t> censored,
                                  const CompareLogitsOptions& options = {}) {
    if (!censored.empty() && censored.size() != columns.size()) {
        throw std::invalid_argument(std::to_string(censored.size()) + " marks of censored targets for " +
                                    std::to_string(columns.size()) + " positions");
    }
    if (!columns.complete && (columns.defects.empty() || options.compare.non_finite == non_finite_policy::skip)) {
        throw std::invalid_argument("score_pairs stopped at a defect: not all rows were read");
    }
    LogitsComparison result;
    const std::vector<std::size_t> kept = detail::sound_positions(columns);
    if (columns.defects.empty()) {
        result = detail::summarize_sound(columns, options.compare);
    } else {
        if (options.compare.non_finite == non_finite_policy::error) {
            detail::throw_defect(columns, columns.defects.front());
        }
        if (kept.empty()) { throw std::invalid_argument("no position is finite in both arms"); }
        result = detail::summarize_sound(subset(columns, kept), options.compare);
        detail::restore_indices(result, kept);
        detail::restore_distribution_indices(result, kept);
        const auto count = [&](std::string PairDefect::*arm) {
            return std::ranges::count_if(columns.defects, [&](const PairDefect& d) { return !(d.*arm).empty(); });
        };
        detail::note_skipped(result, count(&PairDefect::reference), count(&PairDefect::candidate),
                             std::ssize(columns.defects));
    }
    if (!censored.empty()) { detail::doubt_censored(result.limits, censored, kept); }
    detail::judge(result);
    result.vocabulary = columns.vocabulary;
    detail::warn_of_figures(result);
    if (options.compare.strict) { detail::refuse_warnings(result); }
    result.kl_conventions = options.kl;
    if (!censored.empty()) {
        std::vector<std::size_t> known;
        std::ranges::copy_if(kept, std::back_inserter(known), [&](std::size_t i) { return censored[i] == 0; });
        result.censored_targets = static_cast<std::int64_t>(kept.size() - known.size());
        if (result.censored_targets > 0 && !known.empty()) {
            CompareLogitsOptions inner = options;
            inner.compare.worst = 0;
            if (inner.compare.hac.lag) { inner.compare.hac.lag = (std::min)(*inner.compare.hac.lag, known.size() - 1); }
            auto without = std::make_shared<LogitsComparison>(summarize(subset(columns, known), {}, inner));
            detail::restore_indices(*without, known);
            detail::restore_distribution_indices(*without, known);
            result.without_censored = std::move(without);
        }
    }
    return result;
}

/// Compares the full logits of two arms that scored the same tokens. Rows of any type of `logits_rows` (LogitsView,
/// ShardedLogits, DecodedKld), of the two arms maybe unlike. Positions without targets give everything that needs none.
/// O(n V), one walk over the rows in order. Throws as `score_pairs` and `summarize`.
template <class Execution = preferred_execution, class Arch = simd::preferred_arch>
LogitsComparison compare_logits(const AnyRows& reference, const AnyRows& candidate,
                                const LogitsPositions& positions = {}, const CompareLogitsOptions& options = {}) {
    if (const std::size_t tokens = options.vocabulary; tokens > 0) {
        CompareLogitsOptions of_all = options;
        of_all.vocabulary = 0;
        return compare_logits<Execution, Arch>(reference.first_tokens(tokens), candidate.first_tokens(tokens),
                                               positions, of_all);
    }
    ScorePairsOptions reading{.top_k = options.top_k, .threads = options.threads, .kl = options.kl};
    reading.stop_at_defect = options.compare.non_finite == non_finite_policy::error;
    if (options.progress) {
        reading.on_rows = [&](std::size_t done) { options.progress(done, reference.size()); };
    }
    const PairColumns columns = score_pairs<Execution, Arch>(reference, candidate, positions, reading);
    return summarize(columns, positions.censored, options);
}

} // namespace logitstat

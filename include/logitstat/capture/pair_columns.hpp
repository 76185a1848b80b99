#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "logitstat/trace/finite.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// Why a position has no figures, and in which arms.
struct PairDefect {
    std::size_t position = 0;   ///< index into the columns
    std::string reference = {}, ///< what is wrong with its row; empty: nothing
        candidate = {};         ///< the same of the candidate's row
};

/// What the full rows of two arms say at each of n positions, as columns: a trace of each arm, and how far apart the
/// two distributions are. Statistics of one's own read these as those of the library do.
struct PairColumns {
    Trace<double> reference, ///< the best k tokens; NLLs are 0 and targets -1 where the targets are not known
        candidate;           ///< the same of the candidate
    std::vector<double> kl,  ///< [n] KL(reference || candidate), nats; see simd::RowDivergence for these figures
        reverse_kl,          ///< [n] KL(candidate || reference), nats
        jensen_shannon,      ///< [n] nats, at most ln 2
        total_variation;     ///< [n] at most 1
    std::vector<double> logit_shift, ///< [n] logits, mean of candidate - reference
        logit_rms,                   ///< [n] logits, root mean square of the difference without that mean
        logit_max;                   ///< [n] logits, largest |candidate - reference|
    std::vector<double> delta_p;     ///< [n] probability of the target, candidate - reference; empty without targets
    std::vector<std::int64_t> rank;  ///< [n] 1-based, of the reference's best token among all V of the candidate
    /// [n] candidate - reference of that token's logit, or of its log-probability where one arm holds these.
    std::vector<double> landed_delta;
    std::vector<double> landed_gap; ///< [n] how far that token's logit is below the candidate's best, >= 0
    std::vector<double> top_shared; ///< [n] share of the reference's top k that are among the candidate's, in [0, 1]
    /// By position. Figures of such a position are NaN (rank, landed_delta and landed_gap have no meaning), so are the
    /// NLL and the logits of the arm that is to blame.
    std::vector<PairDefect> defects;
    bool complete = true;       ///< false when reading stopped at a defect: rows that were not read are 0
    std::size_t vocabulary = 0; ///< V
    bool equal_logits = false;  ///< every logit of the two arms is the same, bit by bit

    std::size_t size() const noexcept { return kl.size(); }        ///< positions
    bool has_targets() const noexcept { return !delta_p.empty(); } ///< the targets are known (or n is 0: false)

    /// Columns of n positions with k candidates an arm, all zero, to be filled by the caller. `delta_p` stays empty
    /// without targets.
    static PairColumns with_shape(std::size_t n, std::size_t k, bool has_targets) {
        PairColumns columns;
        columns.reference = columns.candidate = Trace<double>::with_shape(n, k);
        for (auto* column : {&columns.kl, &columns.reverse_kl, &columns.jensen_shannon, &columns.total_variation,
                             &columns.logit_shift, &columns.logit_rms, &columns.logit_max, &columns.landed_delta,
                             &columns.landed_gap, &columns.top_shared}) {
            column->resize(n);
        }
        if (has_targets) { columns.delta_p.resize(n); }
        columns.rank.resize(n);
        return columns;
    }
};

/// The columns at the given positions, in the given order, without defects. O(size k). Throws std::invalid_argument for
/// a position beyond them.
inline PairColumns subset(const PairColumns& columns, std::span<const std::size_t> positions) {
    PairColumns chosen;
    chosen.reference = subset(columns.reference, positions);
    chosen.candidate = subset(columns.candidate, positions);
    const auto gather = [&](const auto& from, auto& to) {
        for (const std::size_t i : positions) { to.push_back(from[i]); }
    };
    for (auto column :
         {&PairColumns::kl, &PairColumns::reverse_kl, &PairColumns::jensen_shannon, &PairColumns::total_variation,
          &PairColumns::logit_shift, &PairColumns::logit_rms, &PairColumns::logit_max, &PairColumns::landed_delta,
          &PairColumns::landed_gap, &PairColumns::top_shared}) {
        gather(columns.*column, chosen.*column);
    }
    if (columns.has_targets()) { gather(columns.delta_p, chosen.delta_p); }
    gather(columns.rank, chosen.rank);
    chosen.complete = columns.complete;
    chosen.vocabulary = columns.vocabulary;
    chosen.equal_logits = columns.equal_logits;
    return chosen;
}

} // namespace logitstat

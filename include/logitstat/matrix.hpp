#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "logitstat/compare.hpp"
#include "logitstat/io/manifest.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/stats/holm.hpp"

/// Many pairs: models, widths, variants; pooled figures and one verdict over all.
namespace logitstat {

/// One row of the matrix: a comparison, or the reason why there is none.
struct MatrixPair {
    PairSpec spec;                        ///< which traces, and what the pair is called
    std::optional<Comparison> comparison; ///< nothing when the pair could not be read or compared
    std::string error;                    ///< empty when there is a comparison
    std::optional<double> holm_p;         ///< the paired NLL test's p, adjusted over all pairs that have one
};

/// The conclusion over all pairs, the worst first.
enum class MatrixVerdict {
    fail,         ///< a pair fails
    error,        ///< a pair could not be read or compared, or there is no pair
    inconclusive, ///< a pair is inconclusive
    pass,         ///< each pair passes or is identical
    identical     ///< each pair is identical
};

/// The enumerator's name.
constexpr std::string_view to_string(MatrixVerdict verdict) {
    switch (verdict) {
    case MatrixVerdict::fail: return "fail";
    case MatrixVerdict::error: return "error";
    case MatrixVerdict::inconclusive: return "inconclusive";
    case MatrixVerdict::pass: return "pass";
    case MatrixVerdict::identical: return "identical";
    }
    return "unknown";
}

/// 1 when any pair fails, else 2 when any could not be compared, else 3 when any is inconclusive, else 0.
constexpr int exit_code(MatrixVerdict verdict) {
    switch (verdict) {
    case MatrixVerdict::fail: return 1;
    case MatrixVerdict::error: return 2;
    case MatrixVerdict::inconclusive: return 3;
    case MatrixVerdict::pass:
    case MatrixVerdict::identical: return 0;
    }
    return 2;
}

/// Sums over the pairs that could be compared. The pooled rates take positions as independent, within and across pairs.
struct MatrixTotals {
    std::int64_t pairs = 0,                   ///< all, those with an error too
        errors = 0;                           ///< pairs without a comparison
    std::map<Verdict, std::int64_t> verdicts; ///< pairs by verdict
    std::int64_t positions = 0,               ///< compared
        skipped_non_finite = 0,               ///< left out for an infinite or NaN value
        disagreements = 0;                    ///< positions whose top-1 tokens differ
    DecidedCount decided;                     ///< at CompareOptions::decided_gap
    std::vector<DecidedCount> sweep;          ///< at CompareOptions::thresholds
    std::vector<RankCount> ranks;             ///< ascending, beyond top-k last
    std::int64_t hard_ties = 0,               ///< positions where the reference's two best logits are equal
        candidate_ties = 0;                   ///< disagreements where the candidate's logits of both tokens are equal
    std::optional<std::size_t> largest_gap_pair; ///< index of the pair that holds the largest gap at a disagreement
};

/// Many pairs and what they say together.
struct Matrix {
    std::vector<MatrixPair> pairs;                ///< in the order given
    MatrixTotals totals;                          ///< over the pairs that could be compared
    MatrixVerdict verdict = MatrixVerdict::error; ///< the worst of the pairs; error without a pair
    confidence_level confidence{0.95};            ///< of the pooled intervals and bounds in reports
};

namespace detail {

inline void add(DecidedCount& total, const DecidedCount& count) {
    total.threshold = count.threshold;
    total.positions += count.positions;
    total.mismatches += count.mismatches;
}

inline void add(MatrixTotals& totals, const Comparison& c) {
    ++totals.verdicts[c.verdict];
    totals.positions += c.positions;
    totals.skipped_non_finite += c.skipped_non_finite;
    totals.disagreements += c.disagreements;
    totals.hard_ties += c.hard_ties;
    totals.candidate_ties += c.candidate_ties;
    add(totals.decided, c.decided);
    totals.sweep.resize(c.sweep.size());
    for (std::size_t j = 0; j < c.sweep.size(); ++j) { add(totals.sweep[j], c.sweep[j]); }
    for (const RankCount& rank : c.ranks) {
        const auto same = std::ranges::find(totals.ranks, rank.rank, &RankCount::rank);
        if (same == totals.ranks.end()) {
            totals.ranks.push_back(rank);
        } else {
            same->count += rank.count;
        }
    }
    std::ranges::sort(totals.ranks, {}, [](const RankCount& r) { return r.rank.value_or(SIZE_MAX); });
}

inline MatrixVerdict overall(const MatrixTotals& totals) {
    const auto any = [&](Verdict verdict) { return totals.verdicts.contains(verdict); };
    if (any(Verdict::fail)) { return MatrixVerdict::fail; }
    if (totals.errors > 0 || totals.pairs == 0) { return MatrixVerdict::error; }
    if (any(Verdict::inconclusive)) { return MatrixVerdict::inconclusive; }
    return any(Verdict::pass) ? MatrixVerdict::pass : MatrixVerdict::identical;
}

} // namespace detail

/// Pools finished pairs: totals, Holm-adjusted p-values of the paired NLL tests, overall verdict. All comparisons must
/// have been made with the same options. O(pairs log pairs). No pair at all is an error, not a pass.
inline Matrix make_matrix(std::vector<MatrixPair> pairs, confidence_level confidence = confidence_level(0.95)) {
    Matrix matrix;
    matrix.confidence = confidence;
    matrix.pairs = std::move(pairs);
    MatrixTotals& totals = matrix.totals;
    std::vector<double> p;
    for (std::size_t i = 0; i < matrix.pairs.size(); ++i) {
        const auto& comparison = matrix.pairs[i].comparison;
        ++totals.pairs;
        totals.errors += comparison ? 0 : 1;
        if (!comparison) { continue; }
        detail::add(totals, *comparison);
        if (comparison->nll_difference.p) { p.push_back(*comparison->nll_difference.p); }
        const auto gap_of = [&](std::size_t pair) { return matrix.pairs[pair].comparison->largest_gap->gap; };
        if (comparison->largest_gap && (!totals.largest_gap_pair || gap_of(i) > gap_of(*totals.largest_gap_pair))) {
            totals.largest_gap_pair = i;
        }
    }
    const std::vector<double> adjusted = holm_adjusted(p);
    auto next = adjusted.begin();
    for (MatrixPair& pair : matrix.pairs) {
        if (pair.comparison && pair.comparison->nll_difference.p) { pair.holm_p = *next++; }
    }
    matrix.verdict = detail::overall(totals);
    return matrix;
}

/// Reads and compares all pairs on up to `threads` threads (0: as many as the machine has) and pools them. A pair that
/// cannot be read or compared is kept with its error and does not stop the rest. The result does not depend on the
/// number of threads: pairs are independent and pooled in the order given. `progress(done, total)` is called after each
/// pair, never by two threads at once; it must not throw. Memory: the traces of `threads` pairs.
inline Matrix compare_pairs(const std::vector<PairSpec>& specs, const CompareOptions& options = {},
                            std::size_t threads = 0,
                            const std::function<void(std::size_t, std::size_t)>& progress = {}) {
    const ReadOptions read{.keep_non_finite = options.non_finite == non_finite_policy::skip};
    std::vector<MatrixPair> pairs(specs.size());
    std::atomic<std::size_t> next = 0;
    std::mutex reporting;
    std::size_t done = 0;
    const auto work = [&] {
        for (std::size_t i; (i = next.fetch_add(1)) < specs.size();) {
            pairs[i].spec = specs[i];
            try {
                const auto reference = read_trace(specs[i].reference, read);
                pairs[i].comparison = compare(reference, read_trace(specs[i].candidate, read), options);
            } catch (const std::exception& error) { pairs[i].error = error.what(); }
            const std::lock_guard lock(reporting);
            ++done;
            if (progress) { progress(done, specs.size()); }
        }
    };
    if (threads == 0) { threads = (std::max)(1u, std::thread::hardware_concurrency()); }
    {
        std::vector<std::jthread> workers;
        try {
            for (std::size_t t = 1; t < (std::min)(threads, specs.size()); ++t) { workers.emplace_back(work); }
        } catch (const std::system_error&) {} // the system gives no more threads: those that started do the work
        work();
    }
    return make_matrix(std::move(pairs), options.confidence);
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "logitstat/stats/agreement.hpp"
#include "logitstat/trace/trace.hpp"

/// Where the reference's choice landed in the candidate: picking the reference's runner-up and picking its eighth
/// choice are different failures, and only one of them is rounding.
namespace logitstat {

/// 1-based rank of `token` among the candidates that the trace lists at a position; nothing when it is beyond them.
/// O(k). Precondition: position < n.
template <trace_like T> std::optional<std::size_t> rank_of(const T& trace, std::size_t position, token_id token) {
    const auto view = trace.view();
    for (std::size_t j = 0; j < view.k; ++j) {
        if (view.ids(j)[position] == token) { return j + 1; }
    }
    return std::nullopt;
}

/// How often each rank occurs.
struct RankCount {
    std::optional<std::size_t> rank; ///< 1-based; nothing means beyond the candidate's top-k
    std::int64_t count = 0;          ///< positions
    /// Same rank, same count.
    friend bool operator==(const RankCount&, const RankCount&) = default;
};

namespace detail {
/// Counts by rank, 0 standing for beyond top-k, as a distribution.
inline std::vector<RankCount> rank_counts(const std::map<std::size_t, std::int64_t>& counts) {
    std::vector<RankCount> distribution;
    for (const auto& [rank, count] : counts) {
        if (rank != 0) { distribution.push_back({rank, count}); }
    }
    if (const auto beyond = counts.find(0); beyond != counts.end()) {
        distribution.push_back({std::nullopt, beyond->second});
    }
    return distribution;
}
} // namespace detail

/// The candidate's rank of the reference's best token, counted over the given positions (usually
/// `disagreement_positions`): ascending by rank, beyond top-k last, ranks that do not occur left out. O(positions k).
/// Throws std::invalid_argument when the shapes do not fit or a position is beyond the traces.
template <trace_like R, trace_like C>
std::vector<RankCount> rank_distribution(const R& reference, const C& candidate,
                                         std::span<const std::size_t> positions) {
    detail::check_pair(reference, candidate);
    check_positions(reference, positions);
    std::map<std::size_t, std::int64_t> counts;
    for (const std::size_t i : positions) { ++counts[rank_of(candidate, i, reference.view().ids(0)[i]).value_or(0)]; }
    return detail::rank_counts(counts);
}

/// The same of ranks that are known whatever they are, since full rows were ranked: `rank` is [n], 1-based. O(positions
/// log V). Precondition: positions below n.
inline std::vector<RankCount> rank_distribution(std::span<const std::int64_t> rank,
                                                std::span<const std::size_t> positions) {
    std::map<std::size_t, std::int64_t> counts;
    for (const std::size_t i : positions) { ++counts[static_cast<std::size_t>(rank[i])]; }
    return detail::rank_counts(counts);
}

/// Candidate ties among the given disagreements: the candidate gives the reference's token the very logit of its own
/// best, so that only the order of equal logits differs. O(positions k). Throws as `rank_distribution`.
template <trace_like R, trace_like C>
std::int64_t count_candidate_ties(const R& reference, const C& candidate, std::span<const std::size_t> positions) {
    detail::check_pair(reference, candidate);
    check_positions(reference, positions);
    const auto cand = candidate.view();
    std::int64_t ties = 0;
    for (const std::size_t i : positions) {
        const auto rank = rank_of(candidate, i, reference.view().ids(0)[i]);
        ties += rank && cand.logits(*rank - 1)[i] == cand.logits(0)[i] ? 1 : 0;
    }
    return ties;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/capture/pair_columns.hpp"
#include "logitstat/capture/pair_scorer.hpp"
#include "logitstat/error.hpp"
#include "logitstat/logits/any_rows.hpp"
#include "logitstat/logits/kl_conventions.hpp"
#include "logitstat/logits/positions.hpp"
#include "logitstat/parallel.hpp"
#include "logitstat/simd/dispatch.hpp"

namespace logitstat {

/// What `score_pairs` keeps of the rows, and how it walks over them.
struct ScorePairsOptions {
    std::size_t top_k = 8;        ///< candidates of the traces, and of the top-k overlap; at most V are kept
    std::size_t threads = 0;      ///< 0: as many as there are; one where the program was built without oneTBB
    KlConventions kl = {};        ///< by which `PairColumns::kl`, NLLs and probabilities are taken; default: none
    std::size_t rows_at_once = 0; ///< read before `on_rows` is called; 0: of a few tens of megabytes
    /// Called from the calling thread each time that rows before `done` have been read for the last time.
    std::function<void(std::size_t done)> on_rows = {};
    bool stop_at_defect = true; ///< after the rows that are in work when one turns up; the columns beyond stay zero
};

namespace detail {

/// Throws not_comparable for arms of other sizes, std::invalid_argument for positions that do not fit them.
inline void check_arms(const AnyRows& reference, const AnyRows& candidate, const LogitsPositions& positions) {
    const auto both = [](std::size_t a, std::size_t b) {
        return "the reference has " + std::to_string(a) + ", the candidate " + std::to_string(b);
    };
    if (reference.vocabulary() != candidate.vocabulary()) {
        throw not_comparable("not comparable: vocabularies of different sizes: " +
                             both(reference.vocabulary(), candidate.vocabulary()) + " tokens");
    }
    if (reference.size() != candidate.size()) {
        throw not_comparable("not comparable: different numbers of rows: " + both(reference.size(), candidate.size()));
    }
    const auto fits = [&](std::size_t size, const char* what) {
        if (size != 0 && size != reference.size()) {
            throw std::invalid_argument(std::to_string(size) + " " + what + " for " + std::to_string(reference.size()) +
                                        " rows of logits");
        }
    };
    fits(positions.target.size(), "targets");
    fits(positions.chunk.size(), "chunk numbers");
    fits(positions.pos.size(), "positions in chunks");
    fits(positions.censored.size(), "marks of censored targets");
    if (positions.chunk.size() != positions.pos.size()) {
        throw std::invalid_argument("chunk numbers without positions, or the reverse");
    }
    for (std::size_t i = 0; i < positions.target.size(); ++i) {
        if (positions.target[i] < 0 || std::cmp_greater_equal(positions.target[i], reference.vocabulary())) {
            throw std::invalid_argument("target " + std::to_string(positions.target[i]) + " at position " +
                                        std::to_string(i) + " is no token of a vocabulary of " +
                                        std::to_string(reference.vocabulary()));
        }
    }
}

} // namespace detail

/// Reads the full rows of two arms once, side by side, and keeps of each pair what statistics need. Rows are read in
/// order, a few tens of megabytes at a time, so that files larger than memory can be given back behind the walk
/// (`on_rows`). O(n V), at the speed of `simd::compare_rows`; about 100 + 24 k bytes a position are kept. The result
/// does not depend on the number of threads.
///
/// A row with a NaN or +infinity, with a target of probability 0, or with fewer than k finite logits is a defect of its
/// position. Throws not_comparable when the arms differ in rows or vocabulary; std::invalid_argument for top_k < 2, a
/// vocabulary below 2, no row, or positions that do not fit; and what reading a row throws, for the first that does.
template <class Execution = preferred_execution, class Arch = simd::preferred_arch>
PairColumns score_pairs(const AnyRows& reference, const AnyRows& candidate, LogitsPositions positions,
                        const ScorePairsOptions& options = {}) {
    detail::check_arms(reference, candidate, positions);
    const std::size_t n = reference.size(), vocabulary = reference.vocabulary();
    if (n == 0) { throw std::invalid_argument("there are no rows to compare"); }
    if (options.top_k < 2 || vocabulary < 2) {
        throw std::invalid_argument("the best " + std::to_string(options.top_k) + " of a vocabulary of " +
                                    std::to_string(vocabulary) + ": at least 2 are needed");
    }
    const std::size_t top_k = (std::min)(options.top_k, vocabulary);
    if (positions.chunk.empty()) { set_chunks(positions, n, n); } // refuses what is too many to be numbered
    PairColumns columns = PairColumns::with_shape(n, top_k, !positions.target.empty());
    columns.vocabulary = vocabulary;
    for (const auto& [trace, rows] : {std::pair(&columns.reference, &reference), {&columns.candidate, &candidate}}) {
        trace->chunk = positions.chunk;
        trace->pos = positions.pos;
        trace->source.path = rows->name();
    }

    using Scorer = detail::PairScorer<Arch>;
    Scorer scorer(positions, top_k, options.kl, columns);
    typename Execution::template Workers<typename Scorer::State> workers(options.threads,
                                                                         {reference, candidate, {}, {}});
    std::mutex mutex;
    std::pair<std::size_t, std::exception_ptr> failed{n, nullptr}; // the first row that could not be read
    const std::size_t stretch = options.rows_at_once > 0
                                    ? options.rows_at_once
                                    : std::max<std::size_t>(64, (std::size_t{1} << 23) / vocabulary);
    for (std::size_t first = 0; first < n; first += stretch) {
        const std::size_t end = first + (std::min)(stretch, n - first);
        workers.for_each(first, end, [&](typename Scorer::State& state, std::size_t i) {
            try {
                scorer.score(state, i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (i < failed.first) { failed = {i, std::current_exception()}; }
            }
        });
        if (failed.second) { std::rethrow_exception(failed.second); }
        if (options.on_rows) { options.on_rows(end); }
        if (options.stop_at_defect && scorer.has_defects()) {
            columns.complete = end == n;
            break;
        }
    }
    columns.equal_logits = !scorer.found_difference();
    columns.defects = scorer.take_defects();
    return columns;
}

} // namespace logitstat

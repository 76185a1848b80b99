#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/trace/column.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

// Marks of a censored target, by the arm of which only a bound is known.
inline constexpr std::uint8_t censored_in_reference = 1; ///< mark of a target that is censored in the reference
inline constexpr std::uint8_t censored_in_candidate = 2; ///< mark of a target that is censored in the candidate
inline constexpr std::uint8_t censored_somewhere =
    3; ///< mark of a target that is censored in both, or nobody knows where

/// What the rows of full logits do not say themselves: where in the text each one stands and which token it predicts.
/// Columns are [n] or empty.
struct LogitsPositions {
    Column<token_id> target;    ///< empty: not known; there is then no NLL, no perplexity and no accuracy
    Column<std::int32_t> chunk, ///< index of the chunk; empty, as `pos` is then: one chunk, positions from 0
        pos;                    ///< position in the chunk
    /// Not 0 but one of the marks above where an arm's file says of the target's probability only that it is at most
    /// what is stored; empty: nowhere.
    std::vector<std::uint8_t> censored;

    /// Positions with a censored target. O(n).
    std::size_t censored_count() const {
        return censored.size() - static_cast<std::size_t>(std::ranges::count(censored, 0));
    }
};

/// Sets chunk and pos of n rows that come in chunks of `rows_per_chunk`, the last one maybe shorter. Throws
/// std::invalid_argument for 0 rows a chunk, or more rows than chunk and pos can number.
inline void set_chunks(LogitsPositions& positions, std::size_t n, std::size_t rows_per_chunk) {
    if (rows_per_chunk == 0) { throw std::invalid_argument("a chunk of 0 rows"); }
    if (n > static_cast<std::size_t>((std::numeric_limits<std::int32_t>::max)())) {
        throw std::invalid_argument(std::to_string(n) + " rows are more than positions can be numbered");
    }
    positions.chunk.resize(n);
    positions.pos.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        positions.chunk[i] = static_cast<std::int32_t>(i / rows_per_chunk);
        positions.pos[i] = static_cast<std::int32_t>(i % rows_per_chunk);
    }
}

/// The positions of these targets, of chunks of `rows_per_chunk` rows, the last one maybe shorter. O(n). Throws as
/// `set_chunks`.
inline LogitsPositions positions_of(std::span<const token_id> targets, std::size_t rows_per_chunk) {
    LogitsPositions positions;
    positions.target.assign(targets.begin(), targets.end());
    set_chunks(positions, targets.size(), rows_per_chunk);
    return positions;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "logitstat/trace/column.hpp"
#include "logitstat/trace/metadata.hpp"

namespace logitstat {

/// Token ids, chunk numbers and positions in a chunk, as traces store them.
using token_id = std::int32_t;

/// A trace seen through its columns: n positions, k candidates each. Non-owning and cheap to copy; the memory may be a
/// Trace, a mapped file or a harness's own buffers.
///
/// Every column is n long. `top_ids` and `top_logits` are k planes of n, plane after plane: plane j holds every
/// position's rank-(j+1) candidate, best first, so that a statistic reads only the planes it needs, contiguously.
/// Building a view checks nothing; `check_shape` does.
template <std::floating_point Real> struct TraceView {
    using real_type = Real; ///< of NLLs and logits

    std::span<const std::int32_t> chunk; ///< [n] chunk index
    std::span<const std::int32_t> pos;   ///< [n] position in the chunk
    std::span<const token_id> target;    ///< [n] the corpus token that the position predicts
    std::span<const Real> nll;           ///< [n] nats, -log softmax(logits)[target]
    std::span<const token_id> top_ids;   ///< [k][n]
    std::span<const Real> top_logits;    ///< [k][n], descending along k
    std::size_t k = 0;                   ///< candidates a position

    std::size_t size() const noexcept { return nll.size(); } ///< n, positions
    /// [n] the tokens of rank plane + 1. Precondition: plane < k.
    std::span<const token_id> ids(std::size_t plane) const { return top_ids.subspan(plane * size(), size()); }
    /// [n] the logits of rank plane + 1. Precondition: plane < k.
    std::span<const Real> logits(std::size_t plane) const { return top_logits.subspan(plane * size(), size()); }
    const TraceView& view() const noexcept { return *this; } ///< itself, as `trace_like` asks
};

/// Where a trace came from, for the report and for the like-for-like check.
struct TraceSource {
    std::string path = {};    ///< empty for a trace made in memory
    std::string skipped = {}; ///< lines ahead of the data that were neither metadata nor data, each with \n
    std::vector<std::string> warnings = {}; ///< what the reader noticed and could not decide
    Metadata metadata = {};                 ///< what the trace says of itself

    /// Lines in `skipped`.
    std::size_t skipped_lines() const {
        return static_cast<std::size_t>(std::count(skipped.begin(), skipped.end(), '\n'));
    }
};

/// A trace that owns its columns (layout as TraceView) and knows its source.
template <std::floating_point Real> struct Trace {
    using real_type = Real; ///< of NLLs and logits

    Column<std::int32_t> chunk, ///< [n] chunk index
        pos;                    ///< [n] position in the chunk
    Column<token_id> target;    ///< [n] the corpus token that the position predicts
    Column<Real> nll;           ///< [n] nats, -log softmax(logits)[target]
    Column<token_id> top_ids;   ///< [k][n]
    Column<Real> top_logits;    ///< [k][n], descending along k
    std::size_t k = 0;          ///< candidates a position
    TraceSource source;         ///< where it came from

    /// A trace of n positions and k candidates whose columns are all zero, to be filled by the caller.
    static Trace with_shape(std::size_t n, std::size_t k) {
        Trace trace;
        trace.chunk.resize(n);
        trace.pos.resize(n);
        trace.target.resize(n);
        trace.nll.resize(n);
        trace.top_ids.resize(n * k);
        trace.top_logits.resize(n * k);
        trace.k = k;
        return trace;
    }

    std::size_t size() const noexcept { return nll.size(); } ///< n, positions
    /// The columns, until one of them changes its length.
    TraceView<Real> view() const noexcept { return {chunk, pos, target, nll, top_ids, top_logits, k}; }
};

/// Trace, TraceView, or a type of the user's that has `real_type` and `view()`: what every statistic takes.
template <class T>
concept trace_like = requires(const T& trace) {
    typename T::real_type;
    { trace.view() } -> std::convertible_to<TraceView<typename T::real_type>>;
};

namespace detail {

/// For the end of a use: a trace that is viewed in a file throws io_error when that was cut meanwhile, since what was
/// read may then be zeros that it never held. Nothing for traces in memory.
template <trace_like T> void require_whole(const T& trace) {
    if constexpr (requires { trace.require_whole(); }) { trace.require_whole(); }
}

} // namespace detail

/// Throws std::invalid_argument, naming the column, unless all columns have the length that n and k ask for and k >= 2
/// (a gap needs two candidates). O(1).
template <trace_like T> void check_shape(const T& trace, const std::string& arm = "trace") {
    const auto view = trace.view();
    const auto expect = [&](std::size_t actual, std::size_t wanted, const char* column) {
        if (actual != wanted) {
            throw std::invalid_argument(arm + ": column " + column + " has " + std::to_string(actual) +
                                        " values, expected " + std::to_string(wanted));
        }
    };
    const std::size_t n = view.size();
    if (view.k < 2) {
        throw std::invalid_argument(arm + ": k is " + std::to_string(view.k) + ", at least 2 candidates are needed");
    }
    expect(view.chunk.size(), n, "chunk");
    expect(view.pos.size(), n, "pos");
    expect(view.target.size(), n, "target");
    if (n > static_cast<std::size_t>(-1) / view.k) { throw std::invalid_argument(arm + ": n times k overflows"); }
    expect(view.top_ids.size(), n * view.k, "top_ids");
    expect(view.top_logits.size(), n * view.k, "top_logits");
}

namespace detail {
/// Everything that walks a pair begins with this: same length, both with at least two candidates.
template <trace_like R, trace_like C> void check_pair(const R& reference, const C& candidate) {
    check_shape(reference, "reference");
    check_shape(candidate, "candidate");
    if (reference.view().size() != candidate.view().size()) {
        throw std::invalid_argument("reference and candidate have different numbers of positions");
    }
}
} // namespace detail

/// Throws std::invalid_argument unless every position is below n. O(positions).
template <trace_like T> void check_positions(const T& trace, std::span<const std::size_t> positions) {
    for (const std::size_t position : positions) {
        if (position >= trace.view().size()) {
            throw std::invalid_argument("position " + std::to_string(position) + " of a trace of " +
                                        std::to_string(trace.view().size()));
        }
    }
}

} // namespace logitstat

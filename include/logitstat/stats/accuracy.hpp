#pragma once

#include <cstdint>
#include <optional>

#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// How often an arm's best token is the corpus token.
struct Accuracy {
    std::int64_t correct = 0;   ///< positions whose best token is the target
    std::int64_t positions = 0; ///< all

    /// correct / positions; nothing when there are none.
    std::optional<double> rate() const {
        if (positions == 0) { return std::nullopt; }
        return static_cast<double>(correct) / static_cast<double>(positions);
    }
};

/// Top-1 accuracy of one arm against the corpus tokens; 0 of 0 for an empty trace. O(n), one pass over two id columns.
/// Throws as `check_shape`.
template <trace_like T> Accuracy accuracy(const T& trace) {
    check_shape(trace);
    const auto view = trace.view();
    const auto n = static_cast<std::int64_t>(view.size());
    return {n - simd::count_different(view.ids(0), view.target), n};
}

} // namespace logitstat

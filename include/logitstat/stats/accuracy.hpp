#pragma once

#include <cstdint>
#include <optional>

#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// How often an arm's best token is the corpus token.
struct Accuracy {
    std::int64_t correct = 0;
    std::int64_t positions = 0;

    /// correct / positions; nothing when there are none.
    std::optional<double> rate() const {
        if (positions == 0) { return std::nullopt; }
        return static_cast<double>(correct) / static_cast<double>(positions);
    }
};

/// Top-1 accuracy of one arm against the corpus tokens. O(n), one pass over two id columns.
template <trace_like T> Accuracy accuracy(const T& trace) {
    check_shape(trace);
    const auto view = trace.view();
    const auto n = static_cast<std::int64_t>(view.size());
    return {n - simd::count_different(view.ids(0), view.target), n};
}

} // namespace logitstat

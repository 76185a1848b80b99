#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace logitstat {

/// Chunks as clusters: the boundaries of the runs of equal chunk numbers, in trace order. Cluster c is the positions
/// [result[c], result[c + 1]); the last entry is n. {0} for no positions. O(n).
inline std::vector<std::size_t> cluster_boundaries(std::span<const std::int32_t> chunk) {
    std::vector<std::size_t> boundaries{0};
    for (std::size_t i = 1; i < chunk.size(); ++i) {
        if (chunk[i] != chunk[i - 1]) { boundaries.push_back(i); }
    }
    if (!chunk.empty()) { boundaries.push_back(chunk.size()); }
    return boundaries;
}

/// Throws std::invalid_argument unless the boundaries begin with 0, never decrease, and end with n.
inline void check_boundaries(std::span<const std::size_t> boundaries, std::size_t n) {
    if (boundaries.empty() || boundaries.front() != 0 || boundaries.back() != n ||
        !std::is_sorted(boundaries.begin(), boundaries.end())) {
        throw std::invalid_argument("the clusters do not cover the values in order");
    }
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "logitstat/compare_logits.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/logits_positions.hpp"

namespace logitstat {

/// The rows of a file, of its own type, with its name. The file must outlive them and stay in its place.
inline AnyRows rows_of(const LogitsFile& file) {
    return file.visit([&](auto rows) { return AnyRows(std::move(rows), file.name()); });
}

/// Compares two files of full logits, each memory-mapped and of any format: one walk over both, behind which pages are
/// given back, so that files larger than memory can be compared. `positions` as `joint_positions` makes them. Throws as
/// the comparison of rows, and io_error when a file became shorter meanwhile.
template <class Execution = preferred_execution, class Arch = simd::preferred_arch>
LogitsComparison compare_logits(LogitsFile& reference, LogitsFile& candidate, const LogitsPositions& positions,
                                CompareLogitsOptions options = {}) {
    options.progress = [&, shown = std::move(options.progress)](std::size_t done, std::size_t total) {
        reference.release_before(done);
        candidate.release_before(done);
        if (shown) { shown(done, total); }
    };
    auto result = compare_logits<Execution, Arch>(rows_of(reference), rows_of(candidate), positions, options);
    reference.require_whole();
    candidate.require_whole();
    return result;
}

/// The same with what the files themselves say of their positions; where neither holds targets, without them. Throws
/// also as `joint_positions`.
template <class Execution = preferred_execution, class Arch = simd::preferred_arch>
LogitsComparison compare_logits(LogitsFile& reference, LogitsFile& candidate, CompareLogitsOptions options = {}) {
    const LogitsFile* const files[] = {&reference, &candidate};
    return compare_logits<Execution, Arch>(reference, candidate, joint_positions({}, files), std::move(options));
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/targets.hpp"
#include "logitstat/logits/positions.hpp"

namespace logitstat {

/// Targets and positions from a file of their own, with the name that errors give it.
struct NamedPositions {
    LogitsPositions positions; ///< columns that the file does not have are empty
    std::string name;          ///< as errors give it: a path
};

/// What a file of logits itself says of its positions; columns that it does not know are empty. O(rows).
inline LogitsPositions positions_of(const LogitsFile& file) {
    if (file.kld() != nullptr) { return positions_of(*file.kld()); }
    LogitsPositions positions;
    positions.target.assign(file.targets().begin(), file.targets().end());
    if (const auto rows = file.rows_per_chunk()) { set_chunks(positions, file.size(), *rows); }
    return positions;
}

/// What is known of the positions of files that are to be compared: each column from the first source that has it, of
/// `given` (a targets file; its targets are checked against the logits) and then the files in their order. A position
/// is censored when it is in any file, and of two files the first is the reference. With `rows_per_chunk` the chunks
/// are of so many rows, whatever the sources say. O(rows). Precondition: a file.
///
/// Throws parse_error for given targets that do not fit the logits; not_comparable, naming both sources and the first
/// row, when two sources disagree.
inline LogitsPositions joint_positions(const std::optional<NamedPositions>& given,
                                       std::span<const LogitsFile* const> files,
                                       std::optional<std::size_t> rows_per_chunk = {}) {
    std::vector<NamedPositions> sources;
    if (given) {
        for (const LogitsFile* file : files) {
            check_targets(given->positions.target, file->size(), file->vocabulary(), given->name);
        }
        sources.push_back(*given);
    }
    for (const LogitsFile* file : files) { sources.push_back({positions_of(*file), file->name()}); }
    LogitsPositions joint;
    const auto join = [&](auto column, const char* what) {
        const NamedPositions* first = nullptr;
        for (const NamedPositions& source : sources) {
            const auto& values = source.positions.*column;
            if (values.empty()) { continue; }
            if (first == nullptr) {
                first = &source;
                joint.*column = values;
                continue;
            }
            const auto& others = joint.*column;
            const auto at = std::ranges::mismatch(others, values).in1 - others.begin();
            const auto end =
                (std::min)(std::ssize(others), std::ssize(values)); // sizes are for the comparison to check
            if (at < end) {
                const auto row = static_cast<std::size_t>(at);
                throw not_comparable("not comparable: at row " + std::to_string(at) + " " + what + " is " +
                                     std::to_string(others[row]) + " in " + first->name + ", " +
                                     std::to_string(values[row]) + " in " + source.name);
            }
        }
    };
    join(&LogitsPositions::target, "the target");
    if (rows_per_chunk) {
        set_chunks(joint, files.front()->size(), *rows_per_chunk);
    } else {
        join(&LogitsPositions::chunk, "the chunk");
        join(&LogitsPositions::pos, "the position in the chunk");
    }
    for (std::size_t s = 0; s < sources.size(); ++s) {
        const auto& marks = sources[s].positions.censored;
        const std::size_t arm = s - (given ? 1 : 0);
        const std::uint8_t mark = (given && s == 0) || files.size() != 2 ? censored_somewhere
                                  : arm == 0                             ? censored_in_reference
                                                                         : censored_in_candidate;
        joint.censored.resize((std::max)(joint.censored.size(), marks.size()));
        for (std::size_t i = 0; i < marks.size(); ++i) {
            if (marks[i] != 0) { joint.censored[i] |= mark; }
        }
    }
    return joint;
}

} // namespace logitstat

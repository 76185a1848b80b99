#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logitstat/simd/column_checks.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

/// What a reader of traces refuses, and what it warns of: the rules that all formats share.
namespace logitstat {

/// What is wrong with a trace, and where first.
struct Defect {
    std::string_view column;  ///< as in TraceView
    std::size_t position = 0; ///< from 0; the first that breaks the rule
    std::string reason;       ///< in words, without column and position
};

/// The first rule that a trace breaks, column by column, or nothing: chunk, pos, target and token ids are not negative,
/// (chunk, pos) strictly increases, the ids of a position are distinct, its logits descend, every NLL and logit is
/// finite (unless `keep_non_finite`; a NaN then breaks no order). Precondition: `check_shape` passes. O(n k^2) for k up
/// to 64, else O(n k log k), in streaming passes.
template <trace_like T> std::optional<Defect> first_defect(const T& trace, bool keep_non_finite = false) {
    const auto view = trace.view();
    const std::size_t n = view.size();
    std::optional<Defect> found;
    const auto check = [&](std::size_t at, std::size_t end, std::string_view column, const char* reason,
                           bool in_plane) {
        if (!found && at < end) {
            found = {column, at % n, in_plane ? reason + (" (rank " + std::to_string(at / n + 1) + ")") : reason};
        }
        return !found;
    };
    check(simd::first_negative(view.chunk), n, "chunk", "negative chunk", false) &&
        check(simd::first_negative(view.pos), n, "pos", "negative pos", false) &&
        check(simd::first_not_increasing(view.chunk, view.pos), n, "pos", "chunk and pos do not increase", false) &&
        check(simd::first_negative(view.target), n, "target", "negative target", false) &&
        check(keep_non_finite ? n : simd::first_non_finite(view.nll), n, "nll", "not finite", false) &&
        check(simd::first_negative(view.top_ids), n * view.k, "top_ids", "negative token id", true) &&
        check(simd::first_repeat(view.top_ids, n, view.k), n, "top_ids", "token id repeats", false) &&
        check(keep_non_finite ? n * view.k : simd::first_non_finite(view.top_logits), n * view.k, "top_logits",
              "not finite", true);
    for (std::size_t j = 1; !found && j < view.k; ++j) {
        check(simd::first_greater(view.logits(j), view.logits(j - 1)), n, "top_logits", "logits are not descending",
              false);
    }
    return found;
}

/// What is readable but looks wrong to a careful eye, as sentences that begin with `name`: an NLL below zero, a
/// `columns` line that names other columns, fewer positions than the metadata announces. O(n).
template <trace_like T>
std::vector<std::string> content_warnings(const T& trace, const Metadata& metadata, const std::string& name) {
    using Real = typename T::real_type;
    const auto view = trace.view();
    std::vector<std::string> warnings;
    const auto impossible =
        std::ranges::find_if(view.nll, [](Real nll) { return simd::is_finite(nll) && nll < Real(-1e-3); });
    if (impossible != view.nll.end()) {
        warnings.push_back(name + ": an NLL below zero (a probability above 1) at position " +
                           std::to_string(impossible - view.nll.begin()));
    }
    static const Metadata::Line columns{"columns", "chunk", "pos", "target", "nll", "top_ids", "top_logits"};
    for (const Metadata::Line& line : metadata.lines()) {
        if (line.front() == "columns" && line != columns) {
            warnings.push_back(name + ": its 'columns' line names other columns than chunk, pos, target, nll, top_ids, "
                                      "top_logits, which is how it was read");
            break;
        }
    }
    const auto announced = [&](std::string_view key) {
        std::size_t value = 0;
        const std::string_view text = metadata.find(key).value_or("");
        std::from_chars(text.data(), text.data() + text.size(), value);
        return std::min<std::size_t>(value, 0xffff'ffffu);
    };
    const std::size_t positions = announced("chunks") * announced("chunk_tokens");
    if (view.size() < positions) {
        warnings.push_back(name + ": holds " + std::to_string(view.size()) + " positions, its metadata announces " +
                           std::to_string(positions) + " (chunks times chunk_tokens): a run that stopped early?");
    }
    return warnings;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include "logitstat/trace/comparability.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"

namespace logitstat {

/// One trace of several, in the given order: what threads recorded apart, each its own chunks. `parts` is a vector (or
/// another contiguous range) of Trace, LoadedTrace, MappedTrace or TraceView. Metadata are the first part's, warnings
/// those of all, but what is said of the contents is said of the whole. O(n k).
///
/// Throws std::invalid_argument for no parts, parts that differ in k, and parts whose (chunk, pos) do not lie above
/// those of the part before; not_comparable when metadata differ in a setting that changes the computation, in model or
/// in device. Precondition: within each part (chunk, pos) increases, as it does in every trace that was read or
/// recorded.
template <std::ranges::contiguous_range R>
requires trace_like<std::ranges::range_value_t<R>>
auto concatenate(const R& parts) {
    using Part = std::ranges::range_value_t<R>;
    using Real = typename Part::real_type;
    constexpr bool has_source = requires(const Part& part) { part.source; };
    const std::size_t count = std::ranges::size(parts);
    const Part* const part = std::ranges::data(parts);
    if (count == 0) { throw std::invalid_argument("no traces to concatenate"); }
    std::size_t n = 0;
    std::pair<std::int32_t, std::int32_t> last{-1, -1};
    for (std::size_t p = 0; p < count; ++p) {
        const std::string name = "part " + std::to_string(p);
        check_shape(part[p], name);
        const auto view = part[p].view();
        if (view.k != part[0].view().k) {
            throw std::invalid_argument(name + " has k = " + std::to_string(view.k) + ", part 0 has " +
                                        std::to_string(part[0].view().k));
        }
        if constexpr (has_source) {
            const Metadata& first = part[0].source.metadata;
            const Metadata& own = part[p].source.metadata;
            auto differences = like_for_like_differences(first, own);
            for (const char* key : {"model", "device"}) {
                if (first.find(key) != own.find(key)) { differences.push_back(std::string("another ") + key); }
            }
            if (!differences.empty()) {
                throw not_comparable("part 0 and " + name + " are not of one run: " + differences.front());
            }
        }
        if (view.size() == 0) { continue; }
        const auto place = [](const auto& at) {
            return "chunk " + std::to_string(at.first) + ", pos " + std::to_string(at.second);
        };
        if (const std::pair begin(view.chunk[0], view.pos[0]); begin <= last) {
            throw std::invalid_argument(name + " begins at " + place(begin) + ", the part before ends at " +
                                        place(last));
        }
        last = {view.chunk.back(), view.pos.back()};
        n += view.size();
    }
    const std::size_t k = part[0].view().k;
    auto whole = Trace<Real>::with_shape(n, k);
    std::size_t at = 0;
    for (std::size_t p = 0; p < count; ++p) {
        const auto view = part[p].view();
        const auto put = [&](auto from, auto& to, std::size_t plane) {
            std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(plane * n + at));
        };
        put(view.chunk, whole.chunk, 0);
        put(view.pos, whole.pos, 0);
        put(view.target, whole.target, 0);
        put(view.nll, whole.nll, 0);
        for (std::size_t j = 0; j < k; ++j) {
            put(view.ids(j), whole.top_ids, j);
            put(view.logits(j), whole.top_logits, j);
        }
        at += view.size();
        if constexpr (has_source) {
            const TraceSource& source = part[p].source;
            if (p == 0) { whole.source.metadata = source.metadata; }
            const auto of_part = content_warnings(part[p], source.metadata, source.path);
            std::ranges::copy_if(
                source.warnings, std::back_inserter(whole.source.warnings),
                [&](const std::string& warning) { return std::ranges::find(of_part, warning) == of_part.end(); });
        }
    }
    if constexpr (has_source) {
        std::ranges::move(content_warnings(whole, whole.source.metadata, "the joined trace"),
                          std::back_inserter(whole.source.warnings));
    }
    return whole;
}

} // namespace logitstat

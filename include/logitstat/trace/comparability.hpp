#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"

/// May two traces be compared at all, and does the comparison then measure the change and nothing else?
namespace logitstat {

/// Throws not_comparable, naming the first difference, unless both traces hold the same number of positions with the
/// same (chunk, pos) sequence and the same target at each. Values, k and metadata may differ. O(n).
/// Throws std::invalid_argument for columns that do not fit each other.
template <trace_like R, trace_like C> void require_comparable(const R& reference, const C& candidate) {
    check_shape(reference, "reference");
    check_shape(candidate, "candidate");
    const auto ref = reference.view();
    const auto cand = candidate.view();
    const std::size_t common = (std::min)(ref.size(), cand.size());
    const auto differs_at = [&](auto a, auto b) { return simd::first_difference(a.first(common), b.first(common)); };
    const std::size_t at = (std::min)(
        {differs_at(ref.chunk, cand.chunk), differs_at(ref.pos, cand.pos), differs_at(ref.target, cand.target)});
    const auto describe = [&](const auto& view) {
        return "chunk " + std::to_string(view.chunk[at]) + " pos " + std::to_string(view.pos[at]) + " target " +
               std::to_string(view.target[at]);
    };
    if (at < common) {
        throw not_comparable("not comparable: first difference at position " + std::to_string(at) +
                             ": the reference has " + describe(ref) + ", the candidate " + describe(cand));
    }
    if (ref.size() != cand.size()) {
        const bool longer = ref.size() > cand.size();
        throw not_comparable("not comparable: the reference has " + std::to_string(ref.size()) +
                             " positions, the candidate " + std::to_string(cand.size()) + "; the first that the " +
                             (longer ? "candidate" : "reference") + " lacks is " +
                             (longer ? describe(ref) : describe(cand)));
    }
}

/// What makes two comparable traces unlike: one sentence for each setting that changes the computation (tokens of the
/// corpus, chunk_tokens, prefill, start_token, contiguous) or what the logits are (`logits`: log_probabilities) and
/// differs, or that only one side states. Model path,
/// device and k may differ: they are what users compare. Empty when the traces are like for like.
inline std::vector<std::string> like_for_like_differences(const Metadata& reference, const Metadata& candidate) {
    static constexpr std::array<std::string_view, 6> settings{"tokens",      "chunk_tokens", "prefill",
                                                              "start_token", "logits",       "contiguous"};
    const auto shown = [](const auto& value) { return value ? detail::excerpt(*value) : std::string("not stated"); };
    std::vector<std::string> differences;
    for (const std::string_view setting : settings) {
        const auto a = reference.find(setting);
        const auto b = candidate.find(setting);
        if (a != b) {
            differences.push_back("not like for like: " + std::string(setting) + " is " + shown(a) +
                                  " in the reference, " + shown(b) + " in the candidate");
        }
    }
    return differences;
}

} // namespace logitstat

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/trace/metadata.hpp"

namespace logitstat {

/// What a harness knows of its run. What is left empty is not written. The report shows model and device; two traces
/// are like for like when corpus_tokens, chunk_tokens, prefill, start_token and contiguous agree.
struct RunMetadata {
    std::string model = {};                         ///< path or name of the checkpoint
    std::string device = {};                        ///< what computed it, e.g. "GPU (ROCm)"
    std::string corpus = {};                        ///< path or name of the text
    std::optional<std::int64_t> corpus_tokens = {}; ///< tokens in it
    std::optional<std::int64_t> chunks = {};        ///< chunks that are to be scored
    std::optional<std::int64_t> chunk_tokens = {};  ///< scored positions in each
    std::optional<std::int64_t> prefill = {};       ///< tokens of context ahead of each chunk, not scored
    std::optional<std::int64_t> start_token = {};   ///< where in the corpus the first scored position lies
    std::optional<bool> contiguous = {};            ///< does each chunk begin where the one before ended?
    std::vector<Metadata::Line> extra = {};         ///< further lines, each `key value [key value ...]`

    /// The lines in the order that traces have: model, device, corpus, chunks with topk, columns, start_token,
    /// contiguous, extra.
    Metadata metadata(std::size_t top_k) const {
        const auto text = [](const std::optional<std::int64_t>& x) { return x ? std::to_string(*x) : std::string(); };
        Metadata lines;
        using Pairs = std::vector<std::pair<std::string, std::string>>;
        const auto add = [&](const Pairs& pairs) {
            Metadata::Line line;
            for (const auto& [key, value] : pairs) {
                if (!value.empty()) { line.insert(line.end(), {key, value}); }
            }
            lines.add(std::move(line));
        };
        add({{"model", model}});
        add({{"device", device}});
        add({{"corpus", corpus}, {"tokens", text(corpus_tokens)}});
        add({{"chunks", text(chunks)},
             {"chunk_tokens", text(chunk_tokens)},
             {"topk", std::to_string(top_k)},
             {"prefill", text(prefill)}});
        lines.add({"columns", "chunk", "pos", "target", "nll", "top_ids", "top_logits"});
        add({{"start_token", text(start_token)}});
        if (contiguous) { lines.add({"contiguous", *contiguous ? "true" : "false"}); }
        for (const Metadata::Line& line : extra) { lines.add(line); }
        return lines;
    }
};

} // namespace logitstat

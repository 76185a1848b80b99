#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/compare.hpp"

namespace logitstat {

/// The noise floor: what a second run of the reference itself moves. `rerun` is `compare(reference, reference_rerun)`
/// with the options of `comparison`; for each headline figure the result says whether the candidate lies beyond the
/// rerun's, in size. A figure that the rerun does not have (no disagreement at all) is a floor of nothing: whatever the
/// candidate shows there is beyond it. One rerun is one sample of the noise: a candidate just beyond it may still be
/// noise.
inline std::vector<NoiseFigure> noise_floor(const Comparison& comparison, const Comparison& rerun) {
    using Figure = std::optional<double> (*)(const Comparison&);
    static constexpr std::pair<const char*, Figure> figures[] = {
        {"top-1 disagreement rate", [](const Comparison& c) { return std::optional(c.disagreement_rate()); }},
        {"decided mismatch rate", [](const Comparison& c) { return c.decided.rate(); }},
        {"largest gap at a disagreement",
         [](const Comparison& c) { return c.largest_gap ? std::optional(c.largest_gap->gap) : std::nullopt; }},
        {"logit delta p50", [](const Comparison& c) { return c.logit_delta.p50; }},
        {"logit delta p99", [](const Comparison& c) { return c.logit_delta.p99; }},
        {"logit delta max", [](const Comparison& c) { return c.logit_delta.max; }},
        {"mean NLL difference", [](const Comparison& c) { return std::optional(c.nll_difference.mean); }},
        {"largest NLL difference", [](const Comparison& c) { return std::optional(c.nll_difference.largest); }},
        {"perplexity change in percent",
         [](const Comparison& c) { return std::optional(c.nll_difference.perplexity_percent); }},
    };
    std::vector<NoiseFigure> floor;
    for (const auto& [name, figure] : figures) {
        const std::optional<double> shown = figure(comparison), noise = figure(rerun);
        const bool beyond = shown && std::abs(*shown) > (noise ? std::abs(*noise) : -1.0);
        floor.push_back({name, shown, noise, beyond});
    }
    return floor;
}

} // namespace logitstat

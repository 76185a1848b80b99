#pragma once

#include <array>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "logitstat/compare_logits.hpp"
#include "logitstat/report/json.hpp"
#include "logitstat/report/logits_rows.hpp"

namespace logitstat {

namespace report {

inline json to_json(const std::optional<Distribution>& d) {
    if (!d) { return nullptr; }
    static constexpr std::array<const char*, Distribution::probabilities.size()> names{
        "p001", "p01", "p05", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p999"};
    json object = {{"mean", number(d->mean)},
                   {"se", to_json(d->se)},
                   {"interval", to_json(d->interval)},
                   {"infinite", d->infinite},
                   {"min", number(d->min)}};
    for (std::size_t i = 0; i < names.size(); ++i) { object[names[i]] = number(d->quantiles[i]); }
    object["max"] = number(d->max);
    object["min_index"] = d->min_index;
    object["max_index"] = d->max_index;
    return object;
}

} // namespace report

/// The comparison of full logits as an object: that of a comparison of traces, and what full rows add. Distributions
/// hold quantiles as p001 (0.1 %), p01 ... p99, p999 (99.9 %) and leave out infinite values, which they count.
inline nlohmann::ordered_json to_json(const LogitsComparison& c) {
    using report::json;
    json out = to_json(static_cast<const Comparison&>(c));
    out["vocabulary"] = c.vocabulary;
    for (const auto& [key, name, figure] : report::divergences(c)) { out[key] = report::to_json(*figure); }
    out["delta_p"] = report::to_json(c.delta_p);
    out["delta_p_rms"] = nullptr;
    if (c.delta_p_rms) {
        out["delta_p_rms"] = {{"value", report::number(c.delta_p_rms->value)},
                              {"se", report::to_json(c.delta_p_rms->se)}};
    }
    out["topk_overlap"] = report::to_json(c.topk_overlap);
    out["topk_overlap"]["k"] = c.reference_k;
    out["logit_max"] = report::number(c.logit_max);
    const KlConventions& kl = c.kl_conventions;
    out["conventions"] = {{"kl_skip_below", report::number(kl.skip_below)},
                          {"as_stored", kl.as_stored},
                          {"single_precision", kl.single_precision}};
    out["censored_targets"] = c.censored_targets;
    out["without_censored"] = c.without_censored ? to_json(*c.without_censored) : json(nullptr);
    return out;
}

/// The object as text, as for traces.
inline std::string json_report(const LogitsComparison& comparison) { return report::dump(to_json(comparison)); }

} // namespace logitstat

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "logitstat/compare.hpp"
#include "logitstat/simd/columns.hpp"

/// A comparison as JSON, for programs. Key order is fixed, numbers are unrounded, and a figure that does not exist or
/// is not finite is null. Needs nlohmann-json.
namespace logitstat {

namespace report {

using json = nlohmann::ordered_json;

inline json number(std::optional<double> x) { return x && simd::is_finite(*x) ? json(*x) : json(nullptr); }
inline json rank_json(std::optional<std::size_t> rank) { return rank ? json(*rank) : json(nullptr); }

inline json to_json(const DecidedCount& d) {
    return {{"threshold", d.threshold},
            {"positions", d.positions},
            {"mismatches", d.mismatches},
            {"rate", number(d.rate())}};
}

inline json to_json(const std::vector<DecidedCount>& counts) {
    json list = json::array();
    for (const DecidedCount& count : counts) { list.push_back(to_json(count)); }
    return list;
}

inline json to_json(const Disagreement& d) {
    return {{"index", d.index},
            {"chunk", d.chunk},
            {"pos", d.pos},
            {"target", d.target},
            {"reference_token", d.reference_token},
            {"candidate_token", d.candidate_token},
            {"gap", number(d.gap)},
            {"rank", rank_json(d.rank)}};
}

/// Metadata as an object, key to value, in the trace's order: a list for `columns`, null for a key without a value, a
/// list of all values for a key that comes more than once.
inline json to_json(const Metadata& metadata) {
    json object = json::object();
    const auto add = [&](const std::string& key, json value) {
        if (!object.contains(key)) {
            object[key] = std::move(value);
        } else if (object[key].is_array()) {
            object[key].push_back(std::move(value));
        } else {
            object[key] = json::array({object[key], std::move(value)});
        }
    };
    for (const Metadata::Line& line : metadata.lines()) {
        if (line.front() == "columns") {
            add(line.front(), std::vector<std::string>(line.begin() + 1, line.end()));
            continue;
        }
        for (std::size_t i = 0; i < line.size(); i += 2) {
            add(line[i], i + 1 < line.size() ? json(line[i + 1]) : json(nullptr));
        }
    }
    return object;
}

inline json to_json(const TraceSource& source) {
    return {{"path", source.path}, {"skipped_lines", source.skipped_lines}, {"metadata", to_json(source.metadata)}};
}

} // namespace report

/// The comparison as an object.
inline nlohmann::ordered_json to_json(const Comparison& c) {
    using report::json;
    using report::number;
    json out;
    out["positions"] = c.positions;
    out["skipped_non_finite"] = c.skipped_non_finite;
    out["chunks"] = c.chunks;
    out["top_k"] = {{"reference", c.reference_k}, {"candidate", c.candidate_k}};
    out["top1"] = {{"disagreements", c.disagreements}, {"rate", number(c.disagreement_rate())}};
    out["decided"] = report::to_json(c.decided);
    out["sweep"] = report::to_json(c.sweep);
    json& largest = out["largest_gap_at_disagreement"];
    largest = {{"gap", nullptr}, {"rank", nullptr}, {"index", nullptr}, {"chunk", nullptr}, {"pos", nullptr}};
    if (c.largest_gap) {
        const json all = report::to_json(*c.largest_gap);
        for (auto& [key, value] : largest.items()) { value = all[key]; }
    }
    out["ranks"] = json::array();
    for (const RankCount& r : c.ranks) {
        out["ranks"].push_back({{"rank", report::rank_json(r.rank)}, {"count", r.count}});
    }
    out["ties"] = {{"hard", c.hard_ties}, {"candidate", c.candidate_ties}};
    const LogitDelta& delta = c.logit_delta;
    out["logit_delta"] = {{"count", delta.count},     {"p50", number(delta.p50)},
                          {"p90", number(delta.p90)}, {"p99", number(delta.p99)},
                          {"max", number(delta.max)}, {"mean_signed", number(delta.mean_signed)}};
    const NllDifference& d = c.nll_difference;
    out["perplexity"] = {{"reference", number(c.reference_perplexity.value)},
                         {"candidate", number(c.candidate_perplexity.value)},
                         {"ratio", number(d.perplexity_ratio)},
                         {"percent", number(d.perplexity_percent)},
                         {"reference_se", number(c.reference_perplexity.se)},
                         {"candidate_se", number(c.candidate_perplexity.se)}};
    out["nll_difference"] = {{"mean", number(d.mean)},
                             {"se", number(d.se)},
                             {"t", number(d.t)},
                             {"higher", d.higher},
                             {"lower", d.lower},
                             {"equal", d.equal},
                             {"max_abs", number(d.max_abs)},
                             {"max_abs_index", report::rank_json(d.max_abs_index)}};
    out["accuracy"] = {{"reference", number(c.reference_accuracy.rate())},
                       {"candidate", number(c.candidate_accuracy.rate())}};
    out["worst"] = json::array();
    for (const Disagreement& at : c.worst) { out["worst"].push_back(report::to_json(at)); }
    if (c.curve) { out["step_curve"] = report::to_json(c.curve->steps); }
    out["verdict"] = to_string(c.verdict);
    out["identical_data"] = c.identical_data;
    out["warnings"] = c.warnings;
    out["reference"] = report::to_json(c.reference);
    out["candidate"] = report::to_json(c.candidate);
    return out;
}

/// The object as text, indented by two, ending in a newline. Bytes of a path or of metadata that are not UTF-8 become
/// U+FFFD, so that the output is always valid JSON.
inline std::string json_report(const Comparison& comparison) {
    return to_json(comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace logitstat

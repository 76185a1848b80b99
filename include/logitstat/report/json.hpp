#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "logitstat/compare.hpp"
#include "logitstat/report/figures.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/version.hpp"

/// A comparison as JSON, for programs. Key order is fixed, numbers are unrounded, and a figure that does not exist or
/// is not finite is null. Needs nlohmann-json.
namespace logitstat {

namespace report {

using json = nlohmann::ordered_json;

inline std::string dump(const json& object) {
    return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

inline json number(std::optional<double> x) { return x && simd::is_finite(*x) ? json(*x) : json(nullptr); }
inline json rank_json(std::optional<std::size_t> rank) { return rank ? json(*rank) : json(nullptr); }

inline json to_json(const std::optional<Interval>& interval) {
    return interval ? json::array({number(interval->lo), number(interval->hi)}) : json(nullptr);
}

inline json to_json(const DecidedCount& d, confidence_level level) {
    const Proportion rate = proportion(d.mismatches, d.positions, level);
    return {{"threshold", d.threshold},
            {"positions", d.positions},
            {"mismatches", d.mismatches},
            {"rate", number(rate.rate)},
            {"interval", to_json(std::optional(rate.interval))},
            {"upper_bound", rate.upper_bound}};
}

inline json to_json(const std::vector<DecidedCount>& counts, confidence_level level) {
    json list = json::array();
    for (const DecidedCount& count : counts) { list.push_back(to_json(count, level)); }
    return list;
}

inline json to_json(const ClusteredProportion& p) {
    return {{"design_effect", number(p.design_effect)},
            {"effective_size", number(p.effective_size)},
            {"interval", to_json(std::optional(p.interval))},
            {"upper_bound", number(p.upper_bound)}};
}

inline json to_json(const StandardErrors& se) {
    return {{"iid", number(se.iid)}, {"clustered", number(se.clustered)}, {"hac", number(se.hac)}};
}

inline json to_json(const Disagreement& d) {
    return {{"index", d.index},
            {"chunk", d.chunk},
            {"pos", d.pos},
            {"target", d.target < 0 ? json(nullptr) : json(d.target)},
            {"reference_token", d.reference_token},
            {"candidate_token", d.candidate_token},
            {"gap", number(d.gap)},
            {"ulps", number(d.ulps)},
            {"rank", rank_json(d.rank)}};
}

/// Metadata as an object, key to value, in the trace's order: a list for `columns`, null for a key without a value, a
/// list of all values for a key that comes more than once. O(words log words).
inline json to_json(const Metadata& metadata) {
    std::vector<std::pair<std::string, std::vector<json>>> members;
    std::map<std::string, std::size_t> index; // an ordered_json looks keys up one by one
    const auto add = [&](const std::string& key, json value) {
        const auto [at, is_new] = index.try_emplace(key, members.size());
        if (is_new) { members.push_back({key, {}}); }
        members[at->second].second.push_back(std::move(value));
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
    json::object_t object;
    for (auto& [key, values] : members) {
        object.push_back({key, values.size() == 1 ? std::move(values.front()) : json(std::move(values))});
    }
    return object;
}

inline json to_json(const TraceSource& source) {
    return {{"path", source.path}, {"skipped_lines", source.skipped_lines()}, {"metadata", to_json(source.metadata)}};
}

/// What is taken from NLLs and targets.
inline void add_targets(json& out, const Comparison& c) {
    const NllDifference& d = c.nll_difference;
    const auto& difference = c.perplexity_difference;
    const Perplexity &ref = c.reference_perplexity, &cand = c.candidate_perplexity;
    out["perplexity"] = {{"reference", number(ref.value)},
                         {"candidate", number(cand.value)},
                         {"ratio", number(d.perplexity_ratio)},
                         {"percent", number(d.perplexity_percent)},
                         {"reference_se", number(ref.se)},
                         {"candidate_se", number(cand.se)},
                         {"reference_interval", to_json(ref.interval)},
                         {"candidate_interval", to_json(cand.interval)},
                         {"ratio_interval", to_json(d.ratio_interval)},
                         {"ratio_se", d.se.iid ? number(d.perplexity_ratio * *d.se.iid) : json(nullptr)},
                         {"difference", number(difference ? std::optional(difference->value) : std::nullopt)},
                         {"difference_se", number(difference ? difference->se.iid : std::nullopt)},
                         {"ratio_bootstrap_interval", to_json(c.ratio_bootstrap)},
                         {"reference_nll_se", to_json(ref.nll_se)},
                         {"candidate_nll_se", to_json(cand.nll_se)}};
    out["nll_difference"] = {{"mean", number(d.mean)},
                             {"se", to_json(d.se)},
                             {"t", number(d.t_iid())},
                             {"believed",
                              {{"se", to_string(d.se.preferred())},
                               {"t", number(d.t)},
                               {"df", number(d.se.df())},
                               {"lag", d.se.lag},
                               {"why", which_error(d.se)}}},
                             {"p", number(d.p)},
                             {"interval", to_json(d.interval)},
                             {"higher", d.higher},
                             {"lower", d.lower},
                             {"equal", d.equal},
                             {"sign_test_p", number(d.sign_test_p)},
                             {"max_abs", number(std::abs(d.largest))},
                             {"max_abs_index", d.largest_index},
                             {"correlation", number(d.correlation)}};
    out["accuracy"] = {{"reference_correct", c.reference_accuracy.correct},
                       {"candidate_correct", c.candidate_accuracy.correct},
                       {"reference", number(c.reference_accuracy.rate())},
                       {"candidate", number(c.candidate_accuracy.rate())}};
    out["mcnemar"] = {{"both", c.mcnemar.both},
                      {"only_reference", c.mcnemar.only_reference},
                      {"only_candidate", c.mcnemar.only_candidate},
                      {"neither", c.mcnemar.neither},
                      {"p", number(c.mcnemar.p)}};
}

} // namespace report

/// The comparison as an object.
inline nlohmann::ordered_json to_json(const Comparison& c) {
    using report::json;
    using report::number;
    json out;
    out["logitstat_version"] = LOGITSTAT_VERSION_STRING;
    out["positions"] = c.positions;
    out["skipped_non_finite"] = c.skipped_non_finite;
    out["non_finite"] = {{"reference", c.reference_non_finite}, {"candidate", c.candidate_non_finite}};
    out["chunks"] = c.chunks;
    out["top_k"] = {{"reference", c.reference_k}, {"candidate", c.candidate_k}};
    const Proportion top1 = proportion(c.disagreements, c.positions, c.confidence);
    out["confidence"] = c.confidence.value();
    out["top1"] = {{"disagreements", c.disagreements},
                   {"rate", number(c.disagreement_rate())},
                   {"interval", report::to_json(std::optional(top1.interval))},
                   {"upper_bound", top1.upper_bound},
                   {"clustered", report::to_json(c.disagreements_clustered)}};
    out["decided"] = report::to_json(c.decided, c.confidence);
    out["decided"]["clustered"] = report::to_json(c.decided_clustered);
    out["decided"]["bootstrap_interval"] = report::to_json(c.decided_bootstrap);
    out["sweep"] = report::to_json(c.sweep, c.confidence);
    out["storage"] = {{"type", to_string(c.storage)}, {"inferred", c.storage_inferred}};
    out["ulp_sweep"] = report::to_json(c.ulp_sweep, c.confidence);
    json& largest = out["largest_gap_at_disagreement"];
    largest = {{"gap", nullptr},   {"rank", nullptr}, {"index", nullptr},
               {"chunk", nullptr}, {"pos", nullptr},  {"ulps", nullptr}};
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
    if (c.has_targets) {
        report::add_targets(out, c);
    } else {
        for (const char* key : {"perplexity", "nll_difference", "accuracy", "mcnemar"}) { out[key] = nullptr; }
    }
    out["worst"] = json::array();
    for (const Disagreement& at : c.worst) { out["worst"].push_back(report::to_json(at)); }
    if (c.curve) { out["step_curve"] = report::to_json(c.curve->steps, c.confidence); }
    if (!c.noise.empty()) {
        out["noise_floor"] = json::array();
        for (const NoiseFigure& f : c.noise) {
            out["noise_floor"].push_back({{"figure", f.name},
                                          {"candidate", number(f.candidate)},
                                          {"rerun", number(f.floor)},
                                          {"beyond", f.beyond}});
        }
    }
    out["verdict"] = to_string(c.verdict);
    out["verdict_reason"] = report::verdict_reason(c);
    out["exit_status"] = exit_code(c.verdict);
    out["rules"] = {{"max_mismatches", c.rules.max_mismatches},
                    {"min_decided", c.rules.min_decided},
                    {"max_rate", number(c.rules.max_rate)},
                    {"max_perplexity_increase", number(c.rules.max_perplexity_increase)},
                    {"max_kl", number(c.rules.max_kl)}};
    out["token_verdict"] = to_string(c.token_verdict);
    out["limits"] = json::array();
    for (const Limit& limit : c.limits) {
        out["limits"].push_back({{"figure", limit.figure},
                                 {"limit", limit.most},
                                 {"estimate", number(limit.estimate)},
                                 {"interval", report::to_json(limit.interval)},
                                 {"verdict", to_string(limit.verdict)},
                                 {"caveat", limit.caveat}});
    }
    out["identical_data"] = c.identical_data;
    out["warnings"] = c.warnings;
    out["reference"] = report::to_json(c.reference);
    out["candidate"] = report::to_json(c.candidate);
    return out;
}

/// The object as text, indented by two, ending in a newline. Bytes of a path or of metadata that are not UTF-8 become
/// U+FFFD, so that the output is always valid JSON.
inline std::string json_report(const Comparison& comparison) { return report::dump(to_json(comparison)); }

} // namespace logitstat

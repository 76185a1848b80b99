#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "logitstat/compare.hpp"
#include "logitstat/report/figures.hpp"

namespace logitstat {

namespace report {

/// Text inside a Markdown table cell: printable, and with the characters that would end the cell or start markup
/// escaped.
inline std::string cell(std::string_view text) {
    std::string escaped;
    for (const char c : printable(text)) {
        if (std::string_view("\\`*_|<>[]&~$").find(c) != std::string_view::npos) { escaped += '\\'; }
        escaped += c;
    }
    return escaped;
}

/// Text at the beginning of a list's item: as a cell, and so that it begins no heading, list or block of code there.
inline std::string item(std::string_view text) {
    text.remove_prefix((std::min)(text.find_first_not_of(' '), text.size()));
    std::string escaped = cell(text);
    const std::size_t at = (std::min)(escaped.find_first_not_of("0123456789"), escaped.size()); // "1." numbers items
    if (std::string_view(escaped).substr(at).find_first_of(at == 0 ? "#-+=" : ".)") == 0) { escaped.insert(at, "\\"); }
    return escaped;
}

/// A table in the dialect that the usual forges share: header, rule, rows; the first column left, the rest right.
inline std::string table(const std::vector<std::vector<std::string>>& rows) {
    const auto row = [](const std::vector<std::string>& cells) {
        std::string text = "|";
        for (const std::string& c : cells) { text += " " + c + " |"; }
        return text + "\n";
    };
    std::string out = row(rows.front()) + "|---|";
    for (std::size_t i = 1; i < rows.front().size(); ++i) { out += "---:|"; }
    out += "\n";
    for (std::size_t i = 1; i < rows.size(); ++i) { out += row(rows[i]); }
    return out;
}

} // namespace report

/// A comparison as Markdown, to paste into a pull request or a correctness document.
inline std::string markdown_report(const Comparison& c) {
    using namespace report;
    std::vector<std::vector<std::string>> rows;
    std::string out = "**" + std::string(to_string(c.verdict)) + "**: " + cell(verdict_reason(c)) + "\n\n";
    for (const std::string& warning : c.warnings) { out += "- warning: " + cell(warning) + "\n"; }
    if (!c.warnings.empty()) { out += "\n"; }
    const auto arm = [](const TraceSource& source) {
        const std::string name = cell(arm_name(source));
        return name.empty() ? std::string("-") : name;
    };
    const auto perplexity = [](const Perplexity& p) {
        return fixed(p.value, 4) + (p.se ? " ± " + figure(*p.se, 4) : "") +
               (p.interval ? " (" + range(*p.interval, 4) + ")" : "");
    };
    rows = {{"", "reference", "candidate"},
            {c.vocabulary > 0 ? "logits" : "trace", cell(c.reference.path), cell(c.candidate.path)}};
    if (!arm_name(c.reference).empty() || !arm_name(c.candidate).empty()) {
        rows.push_back({"model", arm(c.reference), arm(c.candidate)});
    }
    if (c.has_targets) {
        rows.push_back({"perplexity (± iid SE; " + level(c.confidence) + " interval by the SE used)",
                        perplexity(c.reference_perplexity), perplexity(c.candidate_perplexity)});
        rows.push_back({"accuracy", percent(c.reference_accuracy.rate()), percent(c.candidate_accuracy.rate())});
    }
    out += table(rows);
    const NllDifference& d = c.nll_difference;
    const LogitDelta& delta = c.logit_delta;
    rows = {{"figure", "value"},
            {"positions", std::to_string(c.positions)},
            {"top-1 disagreements", std::to_string(c.disagreements) + " (" + percent(c.disagreement_rate()) + "; " +
                                        percent_range(proportion(c.disagreements, c.positions, c.confidence).interval) +
                                        " at " + level(c.confidence) + ")"},
            {"largest gap at a disagreement", c.largest_gap ? figure(c.largest_gap->gap, 6) + ", " +
                                                                  rank_name(c.largest_gap->rank, c.candidate_k) + ", " +
                                                                  place(*c.largest_gap)
                                                            : "none, every position agrees"},
            {"hard ties / candidate ties", std::to_string(c.hard_ties) + " / " + std::to_string(c.candidate_ties)},
            {"logit delta p50 / p90 / p99 / max", figure(delta.p50, 4) + " / " + figure(delta.p90, 4) + " / " +
                                                      figure(delta.p99, 4) + " / " + figure(delta.max, 4)}};
    if (c.has_targets) {
        const std::vector<std::vector<std::string>> on_targets = {
            {"perplexity change", with_sign(d.perplexity_percent, 3) + " %"},
            {"perplexity ratio",
             fixed(d.perplexity_ratio, 6) + (d.ratio_interval ? " (" + range(*d.ratio_interval, 6) + ")" : "")},
            {"NLL difference (nats)",
             with_sign(d.mean, 6) + (d.interval ? " (" + signed_range(*d.interval, 6) + ")" : "")},
            {"its SE: iid / clustered / HAC",
             figure(d.se.iid, 6) + " / " + figure(d.se.clustered, 6) + " / " + figure(d.se.hac, 6)},
            {"SE used", which_error(d.se)},
            {"p: t-test / sign test / McNemar",
             p_value(d.p) + " / " + p_value(d.sign_test_p) + " / " + p_value(c.mcnemar.p)},
            {"higher / lower / equal",
             std::to_string(d.higher) + " / " + std::to_string(d.lower) + " / " + std::to_string(d.equal)}};
        rows.insert(rows.end(), on_targets.begin(), on_targets.end());
    }
    if (c.skipped_non_finite > 0) { rows.push_back({"non-finite, left out", std::to_string(c.skipped_non_finite)}); }
    out += "\n" + table(rows);
    const auto sweep = [&](const std::string& heading, const std::vector<DecidedCount>& counts) {
        if (counts.empty()) { return; }
        rows = {{heading, "decided", "mismatches", "rate", "at " + level(c.confidence)}};
        for (const DecidedCount& at : counts) {
            rows.push_back({shortest(at.threshold), std::to_string(at.positions), std::to_string(at.mismatches),
                            percent(at.rate(), 3), bounds(c.rate(at))});
        }
        out += "\n" + table(rows);
    };
    sweep("gap >=", c.sweep);
    if (!(c.storage == storage_type::float32 && c.storage_inferred)) {
        sweep(std::string(to_string(c.storage)) + " ulps >=", c.ulp_sweep);
    }
    if (!c.ranks.empty()) {
        rows = {{"reference's token in the candidate", "disagreements"}};
        for (const auto& [name, count] : rank_rows(c)) { rows.push_back({name, std::to_string(count)}); }
        out += "\n" + table(rows);
    }
    if (!c.worst.empty()) {
        rows = {{"position", "chunk", "pos", "target", "reference", "candidate", "gap", "ulps", "rank"}};
        for (const Disagreement& w : c.worst) {
            rows.push_back({std::to_string(w.index), std::to_string(w.chunk), std::to_string(w.pos),
                            std::to_string(w.target), std::to_string(w.reference_token),
                            std::to_string(w.candidate_token), figure(w.gap, 6), fixed(w.ulps, 1),
                            w.rank ? std::to_string(*w.rank) : rank_name(w.rank, c.candidate_k)});
        }
        out += "\n" + table(rows);
    }
    if (!c.noise.empty()) {
        rows = {{"figure", "candidate", "reference rerun", "beyond the noise floor"}};
        for (const NoiseFigure& f : c.noise) {
            rows.push_back({f.name, figure(f.candidate, 6), figure(f.floor, 6), f.beyond ? "yes" : "no"});
        }
        out += "\n" + table(rows);
    }
    return out;
}

} // namespace logitstat

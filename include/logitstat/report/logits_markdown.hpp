#pragma once

#include <string>
#include <vector>

#include "logitstat/compare_logits.hpp"
#include "logitstat/report/figures.hpp"
#include "logitstat/report/logits_rows.hpp"
#include "logitstat/report/markdown.hpp"

namespace logitstat {

/// A comparison of full logits as Markdown: what traces give, then tables of the divergences, of the target's
/// probability and of the censored targets.
inline std::string markdown_report(const LogitsComparison& c) {
    using namespace report;
    std::string out = markdown_report(static_cast<const Comparison&>(c));
    std::vector<std::vector<std::string>> rows{
        {"P reference, Q candidate", "mean ± SE", "p50", "p90", "p99", "p99.9", "max", "at position"}};
    const auto add = [&](const std::string& name, const std::optional<Distribution>& d, double unit, int decimals) {
        if (!d) {
            rows.push_back({cell(name), "not finite", "", "", "", "", "", ""});
            return;
        }
        StandardErrors se = unit == 100 ? in_percent(d->se) : d->se;
        rows.push_back({cell(name), mean_text(unit * d->mean, se, decimals, "±")});
        for (const double p : {0.5, 0.9, 0.99, 0.999}) {
            rows.back().push_back(figure(unit * d->quantile(p), decimals));
        }
        rows.back().push_back(figure(unit * d->max, decimals));
        rows.back().push_back(std::to_string(d->max_index));
    };
    for (const auto& [key, name, figure_of] : divergences(c)) { add(name, *figure_of, 1, 6); }
    if (c.has_targets) { add("delta p of the target, points", c.delta_p, 100, 3); }
    if (c.topk_overlap) { add("top-" + std::to_string(c.reference_k) + " overlap, %", c.topk_overlap, 100, 3); }
    out += "\n" + table(rows);
    rows = {{"figure", "value"}, {"vocabulary", std::to_string(c.vocabulary)}};
    if (c.delta_p_rms) {
        rows.push_back(
            {"delta p RMS, points", mean_text(100 * c.delta_p_rms->value, in_percent(c.delta_p_rms->se), 3, "±")});
    }
    rows.push_back({"largest difference of any logit", figure(c.logit_max, 6)});
    if (c.kl) { rows.push_back({"SE used", which_error(c.kl->se)}); }
    if (c.censored_targets > 0) { rows.push_back({"censored targets", std::to_string(c.censored_targets)}); }
    out += "\n" + table(rows);
    for (const std::string& text : infinite_texts(c)) { out += "\n- " + cell(text) + "\n"; }
    if (const std::string text = conventions_text(c); !text.empty()) { out += "\n- " + cell(text) + "\n"; }
    if (c.without_censored) {
        rows = censored_rows(c, "±");
        for (auto& row : rows) { row[0] = cell(row[0]); }
        rows.insert(rows.begin(), {"censored targets", "all positions", "without them"});
        out += "\n" + table(rows);
    }
    return out;
}

} // namespace logitstat

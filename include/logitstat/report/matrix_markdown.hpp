#pragma once

#include <string>
#include <vector>

#include "logitstat/report/markdown.hpp"
#include "logitstat/report/matrix_rows.hpp"

namespace logitstat {

/// A matrix as the tables of a correctness document: results, threshold sweep, where disagreements land, perplexity
/// with standard errors, what is not like for like.
inline std::string markdown_report(const Matrix& matrix) {
    using namespace report;
    const auto escaped_table = [](Rows rows) {
        for (auto& row : rows) {
            for (std::string& text : row) { text = cell(text); }
        }
        return table(rows);
    };
    std::string out = "**" + std::string(to_string(matrix.verdict)) + "** (" + verdict_counts(matrix.totals) + ")\n\n";
    for (const std::string& sentence : totals_sentences(matrix)) { out += "- " + cell(sentence) + "\n"; }
    out += "\n## Results\n\n" + escaped_table(result_rows(matrix));

    Rows sweep{{"pair", "tag"}},
        perplexities{{"pair", "tag", "reference ± iid SE", "candidate ± iid SE", "change", "ratio interval",
                      "NLL difference ± SE used", "SE used", "p", "p (Holm)"}};
    for (const DecidedCount& at : matrix.totals.sweep) { sweep[0].push_back("gap >= " + shortest(at.threshold)); }
    std::string limits, notes;
    for (const MatrixPair& pair : matrix.pairs) {
        if (!pair.comparison) {
            notes += "- " + item(pair.spec.label()) + ": not compared: " + cell(pair.error) + "\n";
            continue;
        }
        const Comparison& c = *pair.comparison;
        sweep.push_back({pair.spec.name, pair.spec.tag});
        for (const DecidedCount& at : c.sweep) { sweep.back().push_back(mismatches(at)); }
        const auto with_error = [](const Perplexity& p) {
            return fixed(p.value, 4) + (p.se ? " ± " + figure(*p.se, 4) : "");
        };
        const NllDifference& d = c.nll_difference;
        perplexities.push_back({pair.spec.name, pair.spec.tag, with_error(c.reference_perplexity),
                                with_error(c.candidate_perplexity), with_sign(d.perplexity_percent, 3) + " %",
                                d.ratio_interval ? range(*d.ratio_interval, 4) : "n/a",
                                with_sign(d.mean, 6) + (d.se.value() ? " ± " + figure(*d.se.value(), 6) : ""),
                                std::string(describe(d.se.preferred())), p_value(d.p), p_value(pair.holm_p)});
        for (const std::string& limit : limits_in_question(c)) {
            limits += "- " + item(pair.spec.label()) + ": " + cell(limit) + "\n";
        }
        for (const std::string& warning : c.warnings) {
            notes += "- " + item(pair.spec.label()) + ": " + cell(warning) + "\n";
        }
    }
    sweep.push_back({"all pairs", ""});
    for (const DecidedCount& at : matrix.totals.sweep) { sweep.back().push_back(mismatches(at)); }
    if (!matrix.totals.sweep.empty()) {
        out += "\n## Mismatches / decided positions, by threshold\n\n" + escaped_table(sweep);
    }
    if (!matrix.totals.ranks.empty()) {
        Rows ranks{{"reference's token in the candidate", "disagreements"}};
        for (const RankCount& r : matrix.totals.ranks) {
            ranks.push_back({r.rank ? "rank " + std::to_string(*r.rank) : "beyond top-k", std::to_string(r.count)});
        }
        out += "\n## Where the disagreements land\n\n" + escaped_table(ranks);
        out += "\nThe candidate gives both tokens the same logit at " + std::to_string(matrix.totals.candidate_ties) +
               " of them.\n";
    }
    if (!limits.empty()) { out += "\n## Limits exceeded or in doubt\n\n" + limits; }
    if (perplexities.size() > 1) { out += "\n## Perplexity\n\n" + escaped_table(perplexities); }
    if (!notes.empty()) { out += "\n## What is not compared, or not like for like\n\n" + notes; }
    return out;
}

} // namespace logitstat

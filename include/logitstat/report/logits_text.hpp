#pragma once

#include <string>
#include <vector>

#include "logitstat/compare_logits.hpp"
#include "logitstat/report/figures.hpp"
#include "logitstat/report/logits_rows.hpp"
#include "logitstat/report/text.hpp"

namespace logitstat {

namespace report {

/// The text report of traces with what only full rows tell.
class LogitsTextReport : public TextReport {
  public:
    LogitsTextReport(const LogitsComparison& comparison, const TextOptions& options)
        : TextReport(comparison, options), full(comparison) {}

    std::string str() {
        header();
        agreement();
        divergence();
        sweep();
        ranks();
        worst();
        logit_delta();
        on_targets();
        if (c.has_targets) { delta_p(); }
        censored();
        warnings();
        return std::move(out);
    }

  private:
    void divergence() {
        heading("Divergence over the whole vocabulary, P the reference and Q the candidate (nats; logits for the RMS, "
                "whose shift is removed)");
        line(pad_right("", 24) + pad_right("mean +- SE", 27) + "     p50       p90       p99     p99.9       max  at");
        for (const auto& [key, name, figure_of] : divergences(full)) {
            if (!*figure_of) {
                line("  " + pad_right(name, 22) + "none: not finite at any position");
                continue;
            }
            const Distribution& d = **figure_of;
            std::string row = "  " + pad_right(name, 22) + cell_right(mean_text(d.mean, d.se, 6, "+-"), 25);
            for (const double p : {0.5, 0.9, 0.99, 0.999}) { row += cell_left(figure(d.quantile(p), 6), 10); }
            line(row + cell_left(figure(d.max, 6), 10) + "  position " + std::to_string(d.max_index));
        }
        for (const std::string& text : infinite_texts(full)) { line("  " + text); }
        if (full.topk_overlap) {
            const Distribution& d = *full.topk_overlap;
            line("  of the reference's best " + std::to_string(c.reference_k) + " tokens the candidate has " +
                 mean_text(100 * d.mean, in_percent(d.se), 3, "+-") + " % among its own");
        }
        line("  largest difference of any logit: " + figure(full.logit_max, 6) + " (shift included)");
        if (full.kl) { line("  errors     " + which_error(full.kl->se)); }
        if (const std::string text = conventions_text(full); !text.empty()) { line("  " + text); }
    }

    void delta_p() {
        if (!full.delta_p || !full.delta_p_rms) { return; }
        const Distribution& d = *full.delta_p;
        heading("Probability of the corpus token, candidate - reference, in percentage points");
        line("  mean       " + mean_text(100 * d.mean, in_percent(d.se), 4, "+-") + ", root mean square " +
             mean_text(100 * full.delta_p_rms->value, in_percent(full.delta_p_rms->se), 4, "+-"));
        const auto row = [&](const char* label, std::initializer_list<double> probabilities) {
            std::string text = "  " + pad_right(label, 11);
            for (const double p : probabilities) {
                text += cell_right("p" + shortest(100 * p) + " " + fixed(100 * d.quantile(p), 3), 18);
            }
            text.erase(text.find_last_not_of(' ') + 1);
            return text;
        };
        line(row("quantiles", {0.001, 0.01, 0.05, 0.1, 0.25}));
        line(row("", {0.5, 0.75, 0.9, 0.95, 0.99, 0.999}));
        line("  extremes   " + fixed(100 * d.min, 3) + " at position " + std::to_string(d.min_index) + ", " +
             fixed(100 * d.max, 3) + " at position " + std::to_string(d.max_index));
    }

    void censored() {
        if (full.censored_targets == 0) { return; }
        heading("Censored targets: a .kld file clamps the lowest log-probabilities, so that of " +
                counted(full.censored_targets, "target") + " the NLL is at least what is stored");
        if (!full.without_censored) {
            line("  and there is no other position");
            return;
        }
        line("  " + pad_right("", 22) + pad_right("all positions", 28) + "without the censored");
        for (const std::vector<std::string>& row : censored_rows(full, "+-")) {
            line("  " + pad_right(row[0], 22) + cell_right(row[1], 28) + row[2]);
        }
        line("  neither is right: clamped NLLs are too small, and without them the hardest tokens are missing");
    }

    const LogitsComparison& full;
};

} // namespace report

/// A comparison of full logits as text for a person. Lines end with '\n'; no trailing blank line.
inline std::string text_report(const LogitsComparison& comparison, const TextOptions& options = {}) {
    return report::LogitsTextReport(comparison, options).str();
}

} // namespace logitstat

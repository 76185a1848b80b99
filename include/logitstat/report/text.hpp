#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logitstat/compare.hpp"
#include "logitstat/report/figures.hpp"

namespace logitstat {

/// How a text report looks.
struct TextOptions {
    bool color = false; ///< ANSI colours for the verdict and the headings
};

namespace report {

/// Builds the text report section by section; each figure says what it is, so that no manual is needed.
class TextReport {
  public:
    TextReport(const Comparison& comparison, const TextOptions& options) : c(comparison), color(options.color) {}

    std::string str() {
        header();
        agreement();
        sweep();
        ranks();
        worst();
        logit_delta();
        on_targets();
        noise();
        warnings();
        return std::move(out);
    }

  protected:
    void on_targets() {
        if (!c.has_targets) {
            line("\nNo targets are known: no perplexity, NLL difference or accuracy");
            return;
        }
        perplexity();
        accuracy();
    }

    void line(const std::string& text) { out += text + "\n"; }
    void heading(const std::string& text) { line("\n" + paint(text, "1")); }
    std::string paint(const std::string& text, const char* code) const {
        return color ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
    }

    void arm(const std::string& label, const TraceSource& source) {
        line(pad_right(label, 11) + (source.path.empty() ? "(in memory)" : printable(source.path)));
        if (const std::string name = arm_name(source); !name.empty()) { line(std::string(11, ' ') + name); }
        if (source.skipped_lines() > 0) {
            line(std::string(11, ' ') + counted(static_cast<std::int64_t>(source.skipped_lines()), "line") +
                 " ahead of the data skipped");
        }
    }

    void header() {
        arm("reference", c.reference);
        arm("candidate", c.candidate);
        line("compared   " + counted(c.positions, "position") + " in " +
             counted(static_cast<std::int64_t>(c.chunks), "chunk") + ", " +
             (c.vocabulary > 0
                  ? "vocabulary of " + counted(static_cast<std::int64_t>(c.vocabulary), "token")
                  : "top-" + std::to_string(c.reference_k) + " against top-" + std::to_string(c.candidate_k)));
        if (c.skipped_non_finite > 0) {
            line("           " + counted(c.skipped_non_finite, "position") +
                 " with non-finite values left out (reference " + std::to_string(c.reference_non_finite) +
                 ", candidate " + std::to_string(c.candidate_non_finite) + ")");
        }
        const char* code = c.verdict == Verdict::fail ? "1;31" : c.verdict == Verdict::inconclusive ? "1;33" : "1;32";
        std::string word(to_string(c.verdict));
        for (char& letter : word) { letter = static_cast<char>(letter - 'a' + 'A'); }
        std::string reason = verdict_reason(c);
        if (reason.size() > 80) { // a line for each fact
            for (std::size_t at = 0; (at = reason.find("; ", at)) != std::string::npos;) {
                reason.replace(at, 2, "\n" + std::string(11, ' '));
            }
        }
        line("\nverdict    " + paint(word, code) + ": " + reason);
        if (!c.warnings.empty()) {
            const auto count = counted(static_cast<std::int64_t>(c.warnings.size()), "warning");
            line(std::string(11, ' ') + paint("with " + count + ", see the end", "33"));
        }
    }

    void agreement() {
        heading("Top-1 agreement");
        const Proportion rate = proportion(c.disagreements, c.positions, c.confidence);
        line("  the best tokens differ at " + std::to_string(c.disagreements) + " of " +
             counted(c.positions, "position") + " (" + percent(c.disagreement_rate()) + "; " +
             percent_range(rate.interval) + " at " + level(c.confidence) + " confidence)");
        if (c.chunks >= many_clusters && c.disagreements_clustered.design_effect > 1.05) {
            line("  they cluster in chunks (design effect " + fixed(c.disagreements_clustered.design_effect, 2) +
                 "), which widens that to " + percent_range(c.disagreements_clustered.interval));
        }
        if (c.largest_gap) {
            line("  largest reference gap at a disagreement: " + figure(c.largest_gap->gap, 6) + ", " +
                 rank_name(c.largest_gap->rank, c.candidate_k) + ", at " + place(*c.largest_gap));
            line("  so at any threshold above it there is no mismatch");
        }
        line("  hard ties: the reference's two best logits are equal at " + counted(c.hard_ties, "position"));
    }

    void sweep() {
        if (!c.sweep.empty()) {
            heading("Mismatches where the reference had decided (its two best logits at least so far apart)");
            std::vector<DecidedCount> counts = c.sweep;
            if (std::ranges::find(counts, c.decided.threshold, &DecidedCount::threshold) == counts.end()) {
                counts.push_back(c.decided);
            }
            sweep_table("      gap >=", counts, true);
            const ClusteredProportion& clustered = c.decided_clustered;
            if (c.chunks >= many_clusters && clustered.design_effect > 1.05) {
                line("  taking positions as independent; with chunks as clusters, at " + shortest(c.decided.threshold) +
                     ": below " + percent_up(clustered.upper_bound) + " (" + percent_range(clustered.interval) + ")");
            }
        }
        // In float32 everything is many ulps apart: worth a table only when asked for.
        if (!c.ulp_sweep.empty() && !(c.storage == storage_type::float32 && c.storage_inferred)) {
            heading("The same with the gap in ulps of " + std::string(to_string(c.storage)) +
                    (c.storage_inferred ? ", as the logits seem to be stored" : "") + " (one is " +
                    figure(spacing(c.storage, 12), 4) + " at 12, " + figure(spacing(c.storage, 40), 4) + " at 40)");
            sweep_table("     ulps >=", c.ulp_sweep, false);
        }
    }

    void sweep_table(const std::string& first_heading, const std::vector<DecidedCount>& counts, bool marks_verdict) {
        line(first_heading + "   decided  mismatches       rate   at " + level(c.confidence) + " confidence");
        for (const DecidedCount& at : counts) {
            const bool marked = marks_verdict && at.threshold == c.decided.threshold;
            line(cell_left(shortest(at.threshold), 12) + cell_left(std::to_string(at.positions), 10) +
                 cell_left(std::to_string(at.mismatches), 12) + cell_left(percent(at.rate()), 11) + "   " +
                 (marked ? pad_right(bounds(c.rate(at)), 34) + "<- verdict" : bounds(c.rate(at))));
        }
    }

    void ranks() {
        if (c.ranks.empty()) { return; }
        heading("Where the reference's token landed in the candidate, at the disagreements");
        for (const auto& [name, count] : rank_rows(c)) {
            line("  " + pad_right(name, c.vocabulary > 0 ? 22 : 14) + cell_left(std::to_string(count), 8) +
                 cell_left(percent(static_cast<double>(count) / static_cast<double>(c.disagreements), 1), 10));
        }
        line("  candidate ties: at " + std::to_string(c.candidate_ties) +
             " of them the candidate gives both tokens the same logit");
    }

    void worst() {
        if (c.worst.empty()) { return; }
        heading("The worst disagreements, by the reference's gap");
        line("    position     chunk       pos    target  reference  candidate         gap        ulps  rank in "
             "candidate");
        for (const Disagreement& d : c.worst) {
            line(cell_left(std::to_string(d.index), 12) + cell_left(std::to_string(d.chunk), 10) +
                 cell_left(std::to_string(d.pos), 10) + cell_left(c.has_targets ? std::to_string(d.target) : "-", 10) +
                 cell_left(std::to_string(d.reference_token), 11) + cell_left(std::to_string(d.candidate_token), 11) +
                 cell_left(figure(d.gap, 6), 12) + cell_left(d.ulps ? fixed(*d.ulps, 1) : "n/a", 12) + "  " +
                 (d.rank ? std::to_string(*d.rank) : rank_name(d.rank, c.candidate_k)));
        }
    }

    void logit_delta() {
        heading("Logit of the reference's own choice, candidate - reference");
        const LogitDelta& d = c.logit_delta;
        line("  listed by the candidate at " + std::to_string(d.count) + " of " + counted(c.positions, "position"));
        if (d.count == 0) { return; }
        line("  size    p50 " + figure(d.p50, 4) + "   p90 " + figure(d.p90, 4) + "   p99 " + figure(d.p99, 4) +
             "   max " + figure(d.max, 4));
        line("  signed  mean " + with_sign(d.mean_signed, 4));
    }

    void perplexity() {
        heading("Perplexity on the corpus tokens (lower is better; +- one iid standard error; " + level(c.confidence) +
                " interval by the error used below)");
        const auto arm_line = [&](const char* label, const Perplexity& p) {
            line("  " + pad_right(label, 11) + fixed(p.value, 4) + (p.se ? " +- " + figure(*p.se, 4) : "") +
                 (p.interval ? "   " + range(*p.interval, 4) : ""));
        };
        arm_line("reference", c.reference_perplexity);
        arm_line("candidate", c.candidate_perplexity);
        const NllDifference& d = c.nll_difference;
        line("  change     " + with_sign(d.perplexity_percent, 3) + " % (ratio " + fixed(d.perplexity_ratio, 6) +
             (d.ratio_interval ? ", " + range(*d.ratio_interval, 6) : "") +
             (c.ratio_bootstrap ? "; by drawing chunks " + range(*c.ratio_bootstrap, 6) : "") + ")");
        heading("NLL difference at each position, candidate - reference, in nats (above 0: the candidate is worse)");
        line("  mean       " + with_sign(d.mean, 6) +
             (d.interval ? ", " + level(c.confidence) + " interval " + signed_range(*d.interval, 6) : ""));
        if (d.se.value()) {
            line("  std error  iid " + figure(d.se.iid, 6) +
                 (d.se.clustered ? ", clustered by chunk " + figure(*d.se.clustered, 6) : "") +
                 ", autocorrelation-consistent " + figure(d.se.hac, 6) + " (lag " + std::to_string(d.se.lag) + ")");
            line("  used       " + which_error(d.se));
            line("  test       " + (d.t ? fixed(std::abs(*d.t), 2) + " standard errors from zero, " : "") +
                 p_equals(d.p) + "; sign test " + p_equals(d.sign_test_p));
        } else {
            line(std::string("  std error  none: ") +
                 (c.positions == 1 ? "one position has no spread" : "beyond the range of double"));
        }
        line("  higher at " + std::to_string(d.higher) + ", lower at " + std::to_string(d.lower) + ", equal at " +
             counted(d.equal, "position") +
             (d.correlation ? "; correlation of the two NLLs " + fixed(*d.correlation, 4) : ""));
        if (d.largest != 0) {
            line("  largest    " + with_sign(d.largest, 6) + " at position " + std::to_string(d.largest_index));
        }
    }

    void accuracy() {
        heading("Accuracy: how often the best token is the corpus token");
        const auto arm_line = [&](const char* label, const Accuracy& a) {
            line("  " + pad_right(label, 11) + percent(a.rate()) + " (" + std::to_string(a.correct) + " of " +
                 std::to_string(a.positions) + ")");
        };
        arm_line("reference", c.reference_accuracy);
        arm_line("candidate", c.candidate_accuracy);
        line("  right in one arm only: reference " + std::to_string(c.mcnemar.only_reference) + ", candidate " +
             std::to_string(c.mcnemar.only_candidate) + " (McNemar's exact test " + p_equals(c.mcnemar.p) + ")");
    }

    void noise() {
        if (c.noise.empty()) { return; }
        heading("Noise floor: what a second run of the reference moves");
        line("  " + pad_right("figure", 32) + pad_left("candidate", 13) + pad_left("rerun", 13));
        for (const NoiseFigure& f : c.noise) {
            line("  " + pad_right(f.name, 32) + cell_left(figure(f.candidate, 6), 13) +
                 cell_left(figure(f.floor, 6), 13) + (f.beyond ? "   beyond the floor" : "   within it"));
        }
    }

    void warnings() {
        if (c.warnings.empty()) { return; }
        heading("Warnings");
        for (const std::string& warning : c.warnings) { line("  " + paint(printable(warning), "33")); }
    }

    const Comparison& c;
    const bool color;
    std::string out;
};

} // namespace report

/// A comparison as text for a person, readable from top to bottom. Lines end with '\n'; no trailing blank line.
inline std::string text_report(const Comparison& comparison, const TextOptions& options = {}) {
    return report::TextReport(comparison, options).str();
}

} // namespace logitstat

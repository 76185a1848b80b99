#pragma once

#include <string>
#include <vector>

#include "logitstat/matrix.hpp"
#include "logitstat/report/figures.hpp"

/// The figures of a matrix as sentences and cells, which its text, Markdown and CSV reports arrange.
namespace logitstat::report {

using Rows = std::vector<std::vector<std::string>>;

inline std::string mismatches(const DecidedCount& count) {
    return std::to_string(count.mismatches) + " / " + std::to_string(count.positions);
}

/// A pooled count as a rate with interval and bound, at the matrix's confidence.
inline Proportion pooled(const Matrix& matrix, const DecidedCount& count) {
    return proportion(count.mismatches, count.positions, matrix.confidence);
}

/// "top-1 disagrees at 155 of 6720 positions, 0 of 2696 decided (gap >= 2); ..."
inline std::vector<std::string> totals_sentences(const Matrix& matrix) {
    const MatrixTotals& t = matrix.totals;
    if (t.pairs == t.errors) { return {"no pair could be compared"}; }
    const Proportion rate = pooled(matrix, t.decided);
    std::vector<std::string> sentences{
        "top-1 disagrees at " + std::to_string(t.disagreements) + " of " + counted(t.positions, "position") + ", " +
            std::to_string(t.decided.mismatches) + " of " + std::to_string(t.decided.positions) +
            " decided (gap >= " + shortest(t.decided.threshold) + ")",
        "pooled rate of decided mismatches: " +
            (rate.n == 0
                 ? std::string("no position was decided, nothing is excluded")
                 : bounds(rate) + " at " + level(matrix.confidence) + " confidence, positions taken as independent")};
    if (t.skipped_non_finite > 0) {
        sentences.push_back(counted(t.skipped_non_finite, "position") + " with non-finite values left out");
    }
    if (t.largest_gap_pair) {
        const MatrixPair& pair = matrix.pairs[*t.largest_gap_pair];
        const Disagreement& worst = *pair.comparison->largest_gap;
        sentences.push_back("largest reference gap at a disagreement: " + figure(worst.gap, 3) + " in " +
                            printable(pair.spec.label()) + ", " + rank_name(worst.rank, pair.comparison->candidate_k));
    } else {
        sentences.push_back("no disagreement in any pair");
    }
    const auto compared =
        std::ranges::find_if(matrix.pairs, [](const MatrixPair& p) { return p.comparison.has_value(); });
    if (compared != matrix.pairs.end()) {
        for (const Limit& limit : compared->comparison->limits) {
            sentences.push_back("limit of the " + limit.figure + ": " + in_unit_of(limit, limit.most) +
                                ", held against the interval of each pair");
        }
    }
    return sentences;
}

/// The limits that a pair exceeds or is not shown to keep, in words: the row of a pair that fails by them tells none.
inline std::vector<std::string> limits_in_question(const Comparison& c) {
    std::vector<std::string> sentences;
    for (const Limit& limit : c.limits) {
        if (limit.verdict != Verdict::pass) { sentences.push_back(limit_text(limit)); }
    }
    return sentences;
}

/// "11 pass, 1 inconclusive, 1 error".
inline std::string verdict_counts(const MatrixTotals& totals) {
    std::string text;
    const auto add = [&](std::int64_t count, std::string_view name) {
        if (count > 0) { text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(name); }
    };
    for (const Verdict verdict : {Verdict::identical, Verdict::pass, Verdict::fail, Verdict::inconclusive}) {
        if (totals.verdicts.contains(verdict)) { add(totals.verdicts.at(verdict), to_string(verdict)); }
    }
    add(totals.errors, totals.errors == 1 ? "error" : "errors");
    return text;
}

/// One row a pair under a row of headings: what was found and how sure it is.
inline Rows result_rows(const Matrix& matrix) {
    Rows rows{{"pair", "tag", "top-1 disagreement", "decided mismatches", "excluded at " + level(matrix.confidence),
               "largest gap", "perplexity change", "p (Holm)", "verdict"}};
    for (const MatrixPair& pair : matrix.pairs) {
        std::vector<std::string> row{printable(pair.spec.name), printable(pair.spec.tag)};
        if (pair.comparison) {
            const Comparison& c = *pair.comparison;
            const Proportion rate = c.rate(c.decided);
            row.insert(row.end(),
                       {std::to_string(c.disagreements) + " / " + std::to_string(c.positions) + " (" +
                            percent(c.disagreement_rate()) + ")",
                        mismatches(c.decided), rate.k == rate.n ? "nothing" : "above " + percent_up(rate.upper_bound),
                        c.largest_gap ? figure(c.largest_gap->gap, 3) : "-",
                        with_sign(c.nll_difference.perplexity_percent, 3) + " %", p_value(pair.holm_p),
                        std::string(to_string(c.verdict))});
        } else {
            row.insert(row.end(), {"-", "-", "-", "-", "-", "-", "error"});
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

} // namespace logitstat::report

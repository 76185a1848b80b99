#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logitstat/report/matrix_rows.hpp"

namespace logitstat {

namespace report {

/// A field as RFC 4180 wants it: quoted where it holds a comma, a quote or a line break, quotes doubled.
inline std::string csv_field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) { return std::string(text); }
    std::string quoted = "\"";
    for (const char c : text) { quoted += c == '"' ? std::string("\"\"") : std::string(1, c); }
    return quoted + "\"";
}

/// Unrounded; empty where the figure does not exist.
inline std::string csv_number(std::optional<double> x) { return x && simd::is_finite(*x) ? shortest(*x) : ""; }

} // namespace report

/// A matrix as CSV (RFC 4180, lines end with LF): one row a pair, unrounded numbers, empty where a figure does not
/// exist or is infinite. Names and paths are written byte for byte, whatever a terminal or a spreadsheet makes of them.
inline std::string csv_report(const Matrix& matrix) {
    using namespace report;
    std::string out =
        "name,tag,reference,candidate,verdict,error,positions,skipped_non_finite,chunks,disagreements,threshold,"
        "decided,mismatches,"
        "mismatch_rate,upper_bound,largest_gap,largest_gap_rank,logit_delta_p50,logit_delta_p99,logit_delta_max,"
        "reference_perplexity,candidate_perplexity,perplexity_percent,nll_difference,se_iid,se_clustered,se_hac,"
        "se_believed,p,p_holm,sign_test_p,mcnemar_p,warnings,verdict_reason\n";
    for (const MatrixPair& pair : matrix.pairs) {
        std::vector<std::string> row{pair.spec.name, pair.spec.tag, pair.spec.reference.string(),
                                     pair.spec.candidate.string()};
        if (pair.comparison) {
            const Comparison& c = *pair.comparison;
            const NllDifference& d = c.nll_difference;
            const Proportion rate = c.rate(c.decided);
            const auto& largest = c.largest_gap;
            row.insert(row.end(), {std::string(to_string(c.verdict)),
                                   "",
                                   std::to_string(c.positions),
                                   std::to_string(c.skipped_non_finite),
                                   std::to_string(c.chunks),
                                   std::to_string(c.disagreements),
                                   csv_number(c.decided.threshold),
                                   std::to_string(c.decided.positions),
                                   std::to_string(c.decided.mismatches),
                                   csv_number(rate.rate),
                                   csv_number(rate.upper_bound),
                                   csv_number(largest ? std::optional(largest->gap) : std::nullopt),
                                   largest && largest->rank ? std::to_string(*largest->rank) : "",
                                   csv_number(c.logit_delta.p50),
                                   csv_number(c.logit_delta.p99),
                                   csv_number(c.logit_delta.max),
                                   csv_number(c.reference_perplexity.value),
                                   csv_number(c.candidate_perplexity.value),
                                   csv_number(d.perplexity_percent),
                                   csv_number(d.mean),
                                   csv_number(d.se.iid),
                                   csv_number(d.se.clustered),
                                   csv_number(d.se.hac),
                                   std::string(to_string(d.se.preferred())),
                                   csv_number(d.p),
                                   csv_number(pair.holm_p),
                                   csv_number(d.sign_test_p),
                                   csv_number(c.mcnemar.p),
                                   std::to_string(c.warnings.size()),
                                   verdict_reason(c)});
        } else {
            row.insert(row.end(), {"error", pair.error});
            row.resize(34);
        }
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i > 0) { out += ','; }
            out += csv_field(row[i]);
        }
        out += "\n";
    }
    return out;
}

} // namespace logitstat

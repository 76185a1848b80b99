#pragma once

#include <string>

#include "logitstat/report/json.hpp"
#include "logitstat/report/matrix_rows.hpp"

namespace logitstat {

/// A matrix as an object: `verdict`, `totals`, and `pairs` whose `comparison` is that of `to_json(Comparison)`, or null
/// beside an `error`. Needs nlohmann-json.
inline nlohmann::ordered_json to_json(const Matrix& matrix) {
    using report::json;
    const MatrixTotals& t = matrix.totals;
    json out;
    out["verdict"] = to_string(matrix.verdict);
    out["confidence"] = matrix.confidence.value();
    json& totals = out["totals"];
    totals["pairs"] = t.pairs;
    totals["errors"] = t.errors;
    totals["verdicts"] = json::object();
    for (const auto& [verdict, count] : t.verdicts) { totals["verdicts"][std::string(to_string(verdict))] = count; }
    totals["positions"] = t.positions;
    totals["skipped_non_finite"] = t.skipped_non_finite;
    totals["disagreements"] = t.disagreements;
    totals["decided"] = report::to_json(t.decided, matrix.confidence);
    totals["sweep"] = report::to_json(t.sweep, matrix.confidence);
    totals["ranks"] = json::array();
    for (const RankCount& r : t.ranks) {
        totals["ranks"].push_back({{"rank", report::rank_json(r.rank)}, {"count", r.count}});
    }
    totals["ties"] = {{"hard", t.hard_ties}, {"candidate", t.candidate_ties}};
    totals["largest_gap_at_disagreement"] = nullptr;
    if (t.largest_gap_pair) {
        const MatrixPair& pair = matrix.pairs[*t.largest_gap_pair];
        totals["largest_gap_at_disagreement"] = report::to_json(*pair.comparison->largest_gap);
        totals["largest_gap_at_disagreement"]["name"] = pair.spec.name;
        totals["largest_gap_at_disagreement"]["tag"] = pair.spec.tag;
    }
    out["pairs"] = json::array();
    for (const MatrixPair& pair : matrix.pairs) {
        out["pairs"].push_back({{"name", pair.spec.name},
                                {"tag", pair.spec.tag},
                                {"reference", pair.spec.reference.string()},
                                {"candidate", pair.spec.candidate.string()},
                                {"error", pair.error.empty() ? json(nullptr) : json(pair.error)},
                                {"p_holm", report::number(pair.holm_p)},
                                {"comparison", pair.comparison ? to_json(*pair.comparison) : json(nullptr)}});
    }
    return out;
}

/// The object as text; as `json_report(Comparison)`.
inline std::string json_report(const Matrix& matrix) { return report::dump(to_json(matrix)); }

} // namespace logitstat

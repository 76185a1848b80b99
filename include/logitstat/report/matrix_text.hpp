#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "logitstat/report/matrix_rows.hpp"
#include "logitstat/report/text.hpp"

namespace logitstat {

/// A matrix as text for a terminal: one line a pair, the totals, the overall verdict; errors, limits in question and
/// warnings below.
inline std::string text_report(const Matrix& matrix, const TextOptions& options = {}) {
    using namespace report;
    const auto paint = [&](const std::string& text, const char* code) {
        return options.color ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
    };
    const Rows rows = result_rows(matrix);
    std::vector<std::size_t> width(rows.front().size());
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) { width[i] = (std::max)(width[i], row[i].size()); }
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool words = i < 2 || i + 1 == row.size();
            line += (i == 0 ? "" : "  ") + (words ? pad_right(row[i], width[i]) : pad_left(row[i], width[i]));
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += (&row == &rows.front() ? paint(line, "1") : line) + "\n";
    }
    out += "\n";
    for (const std::string& sentence : totals_sentences(matrix)) { out += sentence + "\n"; }
    const char* code = exit_code(matrix.verdict) == 0 ? "1;32" : exit_code(matrix.verdict) == 3 ? "1;33" : "1;31";
    out += "verdict: " + paint(std::string(to_string(matrix.verdict)), code) + " (" + verdict_counts(matrix.totals) +
           ")\n";
    for (const MatrixPair& pair : matrix.pairs) {
        const std::string label = printable(pair.spec.label());
        if (!pair.error.empty()) { out += "\n" + label + ": " + paint(printable(pair.error), "31") + "\n"; }
        if (!pair.comparison) { continue; }
        for (const std::string& limit : limits_in_question(*pair.comparison)) {
            out += "\n" + label + ": " + limit + "\n";
        }
        for (const std::string& warning : pair.comparison->warnings) {
            out += "\n" + label + ": " + paint(printable(warning), "33") + "\n";
        }
    }
    return out;
}

} // namespace logitstat

#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

using MarkdownTable = std::vector<std::vector<std::string>>; ///< rows of cells, the rule line left out

/// Splits a table line at its pipes. A pipe or backslash after a backslash is text, as forges read it.
inline std::vector<std::string> markdown_cells(const std::string& line) {
    if (line.size() < 2 || line.front() != '|' || line.back() != '|') {
        throw std::runtime_error("not a table row: " + line);
    }
    std::vector<std::string> cells(1);
    for (std::size_t i = 1; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) {
            cells.back() += line[++i];
        } else if (line[i] == '|') {
            cells.emplace_back();
        } else {
            cells.back() += line[i];
        }
    }
    if (!cells.back().empty()) { throw std::runtime_error("the last pipe of a row is escaped: " + line); }
    cells.pop_back();
    for (std::string& cell : cells) {
        cell.erase(0, cell.find_first_not_of(' '));
        cell.erase(cell.find_last_not_of(' ') + 1);
    }
    return cells;
}

/// The tables of a Markdown text. Throws when one is malformed: no rule under its header, a row with another number of
/// cells than the header, or a text line that runs into a table without a blank line between.
inline std::vector<MarkdownTable> markdown_tables(const std::string& text) {
    std::vector<MarkdownTable> tables;
    std::istringstream lines(text);
    bool inside = false, rule_next = false;
    std::string before;
    for (std::string line; std::getline(lines, line); before = line) {
        const bool is_row = line.starts_with('|');
        if (is_row && !inside) {
            if (!before.empty()) { throw std::runtime_error("no blank line ahead of the table: " + line); }
            tables.push_back({markdown_cells(line)});
            rule_next = true;
        } else if (is_row) {
            const auto cells = markdown_cells(line);
            if (cells.size() != tables.back().front().size()) { throw std::runtime_error("cells missing: " + line); }
            if (!rule_next) { tables.back().push_back(cells); }
            for (const auto& cell : cells) {
                if (rule_next && (cell.size() < 3 || cell.find_first_not_of(":-") != std::string::npos)) {
                    throw std::runtime_error("not a rule: " + line);
                }
            }
            rule_next = false;
        } else if (inside && !line.empty()) {
            throw std::runtime_error("no blank line after the table: " + line);
        }
        inside = is_row;
    }
    if (rule_next) { throw std::runtime_error("a table without a rule"); }
    return tables;
}

/// The row whose first cell is `name`, from whichever table; empty when there is none.
inline std::vector<std::string> markdown_row(const std::vector<MarkdownTable>& tables, const std::string& name) {
    for (const auto& table : tables) {
        for (const auto& row : table) {
            if (row.front() == name) { return row; }
        }
    }
    return {};
}

} // namespace test

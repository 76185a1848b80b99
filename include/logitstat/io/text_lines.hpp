#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/error.hpp"
#include "logitstat/trace/trace.hpp"

/// The lines of a text trace ahead of its data, from and to text: what the reader, the writer and the binary trace
/// share.
namespace logitstat::detail {

inline constexpr std::size_t longest_metadata = std::size_t{1} << 20; ///< bytes of one line
/// Of all lines: a word of no byte takes 2 bytes of a file, but tens in memory.
inline constexpr std::size_t most_metadata_words = std::size_t{1} << 16;

/// Offset of the first byte that no text has among the first 4096, or npos: a model file given by mistake must not be
/// reported as a strange trace.
inline std::size_t find_control_byte(std::string_view bytes) {
    const std::string_view head = bytes.substr(0, 4096);
    const auto control = std::find_if(head.begin(), head.end(), [](char c) {
        constexpr std::string_view of_terminals = "\t\n\v\f\r\b\a\x1b"; // a loader's progress bar is text
        return static_cast<unsigned char>(c) < 0x20 && of_terminals.find(c) == std::string_view::npos;
    });
    return control == head.end() ? std::string_view::npos : static_cast<std::size_t>(control - head.begin());
}

/// Is this line meant as data, whole or damaged? Chatter that only looks a little like it must not be: a row that
/// is taken for chatter would vanish. So: it starts with two integers and tabs, or it has a tab and is made of
/// nothing but numbers, or it has five fields (a row with a tab lost) of which one starts like a number.
inline bool looks_like_data(std::string_view line) {
    const auto starts_with_integer_and_tab = [](std::string_view& text) {
        const std::size_t sign = text.starts_with('-') ? 1 : 0;
        const std::size_t end = text.find_first_not_of("0123456789", sign);
        if (end == sign || end == std::string_view::npos || text[end] != '\t') { return false; }
        text.remove_prefix(end + 1);
        return true;
    };
    std::string_view text = line;
    if (starts_with_integer_and_tab(text) && starts_with_integer_and_tab(text)) { return true; }
    const auto tabs = std::count(line.begin(), line.end(), '\t');
    const bool only_numbers = line.find_first_not_of("0123456789.,-\t") == std::string_view::npos &&
                              line.find_first_of("0123456789") != std::string_view::npos;
    if (tabs > 0 && only_numbers) { return true; }
    if (tabs < 4) { return false; }
    for (std::size_t i = 0; i < line.size(); ++i) {
        const bool field_start = i == 0 || line[i - 1] == '\t';
        if (field_start && (line[i] == '-' || (line[i] >= '0' && line[i] <= '9'))) { return true; }
    }
    return false;
}

/// The words of a metadata line, given without its '#'.
inline Metadata::Line metadata_words(std::string_view text) {
    if (text.starts_with(' ')) { text.remove_prefix(1); }
    Metadata::Line words;
    while (true) {
        const std::size_t end = text.find('\t');
        words.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos) { return words; }
        text.remove_prefix(end + 1);
    }
}

/// Metadata as lines "# word<TAB>word...\n". Throws std::invalid_argument for what would not be read back: a word with
/// a tab, a line break or another control byte, a line longer than the reader takes, more words than it takes.
inline std::string metadata_text(const Metadata& metadata) {
    std::string text;
    std::size_t words = 0;
    for (const Metadata::Line& line : metadata.lines()) {
        const std::size_t start = text.size();
        if ((words += line.size()) > most_metadata_words) {
            throw std::invalid_argument("more than " + std::to_string(most_metadata_words) + " words of metadata");
        }
        std::string_view before = "# ";
        for (const std::string& word : line) {
            const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
            if (std::any_of(word.begin(), word.end(), control)) {
                throw std::invalid_argument("metadata with a tab, a line break or a control byte: " + excerpt(word));
            }
            text.append(before).append(word);
            before = "\t";
        }
        if (text.size() - start - 1 > longest_metadata) {
            throw std::invalid_argument("a metadata line of " + std::to_string(text.size() - start - 1) + " bytes");
        }
        text += '\n';
    }
    return text;
}

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF"; ///< in UTF-8

/// All lines ahead of the data: first the skipped ones, then the metadata. What a reader takes off (a byte order mark
/// at the beginning, a CR at the end of a line) is put before and behind it once more, so that it stays. Throws
/// std::invalid_argument for what a reader would take for something else.
inline std::string preamble_text(const TraceSource& source) {
    std::string text;
    for (std::string_view rest = source.skipped; !rest.empty();) {
        const std::size_t end = rest.find('\n');
        const std::string_view line = rest.substr(0, end);
        if (end == std::string_view::npos) { throw std::invalid_argument("skipped text without a last newline"); }
        if (line.starts_with('#') || looks_like_data(line)) {
            throw std::invalid_argument("a skipped line that reads as metadata or data: " + excerpt(line));
        }
        text.append(line).append(line.ends_with('\r') ? "\r\n" : "\n");
        rest.remove_prefix(end + 1);
    }
    text += metadata_text(source.metadata);
    if (const std::size_t at = find_control_byte(text); at != std::string_view::npos) {
        throw std::invalid_argument("skipped text with a control byte: " + excerpt(std::string_view(text).substr(at)));
    }
    return text.starts_with(byte_order_mark) ? std::string(byte_order_mark) + text : text;
}

} // namespace logitstat::detail

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "logitstat/error.hpp"
#include "logitstat/io/safetensors_header.hpp"
#include "logitstat/io/text_lines.hpp"
#include "logitstat/trace/trace.hpp"

/// How a trace's metadata lie in the `__metadata__` of a safetensors file, which is a map of strings:
///
///     format         "logitstat-trace"
///     version        "1"
///     model, tokens  every key of the metadata with its first value, for whoever looks at the file with other tools
///     header_lines   the `#` lines exactly as a text trace has them, joined by newlines: order, grouping, remarks
///     skipped_lines  the lines that a text trace had ahead of its data and that are neither, each with its newline
///
/// The lines are what counts when they are there; a writer in Python may leave them out and give flat keys alone. JSON
/// is UTF-8 and text traces need not be: lines that are not are stored as `header_lines_latin1`,
/// `skipped_lines_latin1`, each byte as the code point of its value, so that `value.encode("latin-1")` gives the bytes
/// back.
namespace logitstat::detail {

inline constexpr std::string_view trace_format_name = "logitstat-trace", trace_format_version = "1";

/// Does the metadata of a safetensors file say that it is a trace?
inline bool says_trace(const SafetensorsMetadata& metadata) {
    return std::ranges::find(metadata, std::pair<std::string, std::string>("format", trace_format_name)) !=
           metadata.end();
}
inline constexpr std::array<std::string_view, 6> reserved_trace_keys{
    "format", "version", "header_lines", "skipped_lines", "header_lines_latin1", "skipped_lines_latin1"};

inline bool is_utf8(std::string_view text) {
    try {
        nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) { return false; }
    return true;
}

inline std::string from_latin1(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            text += c;
        } else {
            text += {static_cast<char>(0xC0 | (byte >> 6)), static_cast<char>(0x80 | (byte & 0x3F))};
        }
    }
    return text;
}

/// The bytes again, or nothing when the (valid) UTF-8 text holds a code point above 255.
inline std::optional<std::string> to_latin1(std::string_view text) {
    std::string bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if (lead > 0xC3) { return std::nullopt; }
        bytes +=
            lead < 0x80 ? text[i] : static_cast<char>((lead << 6) | (static_cast<unsigned char>(text[++i]) & 0x3F));
    }
    return bytes;
}

/// Every key with its first value, as Metadata::find gives it; O(words log words), where finding each would be
/// O(words^2) and a hostile file takes its time.
inline std::map<std::string_view, std::string_view> first_values(const Metadata& metadata) {
    std::map<std::string_view, std::string_view> values;
    for (const Metadata::Line& line : metadata.lines()) {
        const std::size_t keys = line.front() == "columns" ? 1 : line.size();
        for (std::size_t i = 0; i < keys && i + 1 < line.size(); i += 2) { values.try_emplace(line[i], line[i + 1]); }
    }
    return values;
}

/// Throws std::invalid_argument for metadata that a text trace could not hold either.
inline SafetensorsMetadata to_safetensors_metadata(const TraceSource& source) {
    SafetensorsMetadata out{{"format", std::string(trace_format_name)}, {"version", std::string(trace_format_version)}};
    for (const auto& [key, value] : first_values(source.metadata)) {
        const bool reserved = std::ranges::find(reserved_trace_keys, key) != reserved_trace_keys.end();
        if (reserved || key == "columns" || !is_utf8(key) || !is_utf8(value)) { continue; } // the lines have it
        out.emplace_back(key, value);
    }
    const auto add_lines = [&](const std::string& key, std::string text) {
        if (text.empty()) { return; }
        const bool utf8 = is_utf8(text);
        out.emplace_back(utf8 ? key : key + "_latin1", utf8 ? std::move(text) : from_latin1(text));
    };
    std::string lines = metadata_text(source.metadata);
    if (!lines.empty()) { lines.pop_back(); } // joined by newlines: without the last
    add_lines("header_lines", std::move(lines));
    add_lines("skipped_lines", source.skipped);
    return out;
}

/// Fills metadata, skipped lines and warnings of `source`, whose path stands in errors. Throws parse_error unless
/// format and version are there and known and the lines are well formed.
inline void from_safetensors_metadata(const SafetensorsMetadata& from, TraceSource& source) {
    const auto fail = [&](const std::string& reason) { throw parse_error(source.path, reason); };
    const auto find = [&](std::string_view key) -> std::optional<std::string> {
        const auto at = std::ranges::find(from, key, &std::pair<std::string, std::string>::first);
        return at == from.end() ? std::nullopt : std::optional(at->second);
    };
    if (find("format") != trace_format_name) {
        fail("not a binary trace: the __metadata__ of this safetensors file has no format 'logitstat-trace'");
    }
    if (const auto version = find("version"); version != trace_format_version) {
        fail("version " + (version ? excerpt(*version) : std::string("unknown")) +
             " of the binary trace: this reader knows version " + std::string(trace_format_version));
    }
    const auto lines_of = [&](const std::string& key) {
        auto text = find(key);
        if (const auto encoded = find(key + "_latin1")) {
            if (text) { fail("__metadata__ has both " + key + " and " + key + "_latin1"); }
            text = to_latin1(*encoded);
            if (!text) { fail("__metadata__: " + key + "_latin1 holds a character above U+00FF"); }
        }
        return text;
    };
    source.skipped = lines_of("skipped_lines").value_or("");
    if (!source.skipped.empty() && !source.skipped.ends_with('\n')) { source.skipped += '\n'; }
    auto count = [&, words = std::size_t{0}](std::size_t more) mutable {
        if ((words += more) > most_metadata_words) {
            fail("more than " + std::to_string(most_metadata_words) + " words of metadata");
        }
    };
    if (const auto lines = lines_of("header_lines")) {
        for (std::string_view rest = *lines; !rest.empty();) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            if (!line.starts_with('#')) { fail("__metadata__: a line of header_lines without '#': " + excerpt(line)); }
            auto words = metadata_words(line.substr(1, line.ends_with('\r') ? line.size() - 2 : line.npos));
            count(words.size());
            source.metadata.add(std::move(words));
            rest.remove_prefix((std::min)(rest.size(), line.size() + 1));
        }
    }
    Metadata extended = source.metadata;
    const auto stated = first_values(source.metadata);
    for (const auto& [key, value] : from) {
        if (std::ranges::find(reserved_trace_keys, key) != reserved_trace_keys.end()) { continue; }
        const auto at = stated.find(key);
        if (at == stated.end()) {
            count(2);
            extended.add({key, value});
        } else if (at->second != value) {
            source.warnings.push_back(source.path + ": its __metadata__ says " + excerpt(key) + " is " +
                                      excerpt(value) + ", its header_lines " + excerpt(at->second) +
                                      ", which is taken");
        }
    }
    source.metadata = std::move(extended);
}

} // namespace logitstat::detail

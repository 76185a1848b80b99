#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"

/// Which traces to compare with which: read from a manifest, or found in two folders.
namespace logitstat {

/// One pair of trace files and what it is called: a name (the model) and a tag (the width, the variant).
struct PairSpec {
    std::string name,                ///< of the model
        tag;                         ///< of the variant; may be empty
    std::filesystem::path reference, ///< the trace file of the reference
        candidate;                   ///< of the candidate

    /// "NAME TAG", or the name alone when the tag is empty.
    std::string label() const { return tag.empty() ? name : name + " " + tag; }
    /// Names, tags and paths are equal, as they are written.
    friend bool operator==(const PairSpec&, const PairSpec&) = default;
};

/// Longer manifests are refused: a sparse file given by mistake would take hours to look through.
inline constexpr std::size_t longest_manifest = std::size_t{1} << 26;

/// Reads a manifest: tab-separated, the header line `name<TAB>tag<TAB>reference<TAB>candidate`, then a line a pair.
/// Paths are relative to the manifest's folder. CRLF, a UTF-8 byte order mark, blank lines and lines that begin with #
/// are fine; a tag may be empty. Throws io_error when it cannot be opened; parse_error naming the line for another
/// header, another number of fields, an empty name or path, a NUL byte, a (name, tag) that comes twice, no pair at
/// all, or more than `longest_manifest` bytes.
inline std::vector<PairSpec> read_manifest(const std::filesystem::path& path) {
    const MappedFile file(path);
    if (file.text().size() > longest_manifest) {
        throw parse_error(path.string(), "a manifest of " + std::to_string(file.text().size()) + " bytes");
    }
    std::string_view rest = file.text();
    if (rest.starts_with("\xEF\xBB\xBF")) { rest.remove_prefix(3); }
    std::vector<PairSpec> pairs;
    std::set<std::pair<std::string, std::string>> seen;
    bool header_seen = false;
    for (std::size_t number = 1; !rest.empty(); ++number) {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix((std::min)(rest.size(), line.size() + 1));
        if (line.ends_with('\r')) { line.remove_suffix(1); }
        if (line.empty() || line.starts_with('#')) { continue; }
        const auto fail = [&, whole = line](const std::string& reason) {
            throw parse_error(path.string(), number, 1, reason + ": " + detail::excerpt(whole, 80));
        };
        if (line.find('\0') != std::string_view::npos) { fail("NUL byte"); } // it would silently end a path
        if (!header_seen) {
            if (line != "name\ttag\treference\tcandidate") {
                fail("a manifest begins with the tab-separated line 'name tag reference candidate'");
            }
            header_seen = true;
            continue;
        }
        if (std::count(line.begin(), line.end(), '\t') != 3) { fail("expected 4 tab-separated fields"); }
        std::array<std::string, 4> field;
        for (std::string& text : field) {
            text = line.substr(0, line.find('\t'));
            line.remove_prefix((std::min)(line.size(), text.size() + 1));
        }
        line = field[0];
        if (field[0].empty() || field[2].empty() || field[3].empty()) {
            fail("name, reference and candidate must be given");
        }
        if (!seen.emplace(field[0], field[1]).second) {
            fail("the pair '" + field[0] + "' '" + field[1] + "' comes twice");
        }
        const std::filesystem::path folder = path.parent_path();
        pairs.push_back({field[0], field[1], folder / field[2], folder / field[3]});
    }
    if (pairs.empty()) { throw parse_error(path.string(), "the manifest holds no pair"); }
    file.require_whole();
    return pairs;
}

/// Pairs the files of two folders (not their subfolders, pipes and devices) whose names agree, sorted by name. With a
/// pattern (ECMAScript), only files whose whole name matches take part, and what its groups capture decides: group 1 is
/// the pair's name, the others joined by '-' its tag; without groups, or without a pattern, the file name itself. A
/// file without a partner becomes a pair whose other path does not exist, so that it is reported and not forgotten.
/// Files that do not match are appended to `ignored`, where that is given. Throws io_error when a folder cannot be
/// read, std::invalid_argument for a bad pattern, when two files of a folder get the same name and tag, or when nothing
/// pairs up.
inline std::vector<PairSpec> pair_folders(const std::filesystem::path& references,
                                          const std::filesystem::path& candidates, const std::string& pattern = "",
                                          std::vector<std::filesystem::path>* ignored = nullptr) {
    namespace fs = std::filesystem;
    using Key = std::pair<std::string, std::string>;
    if (pattern.size() > 500) { throw std::invalid_argument("a pattern of more than 500 characters"); } // it recurses
    std::regex expression;
    try {
        expression = std::regex(pattern.empty() ? "[\\s\\S]*" : pattern);
    } catch (const std::regex_error& error) {
        throw std::invalid_argument("bad pattern '" + pattern + "': " + error.what());
    }
    const auto list = [&](const fs::path& folder) {
        std::map<Key, fs::path> files;
        std::error_code error;
        fs::directory_iterator entries(folder, error);
        if (error) { throw io_error(folder.string(), "cannot read the folder: " + error.message()); }
        for (const fs::directory_entry& entry : entries) {
            const std::string name = entry.path().filename().string();
            std::smatch groups;
            if (entry.is_directory(error) || entry.is_other(error)) { continue; } // a pipe would wait for its writer
            if (!std::regex_match(name, groups, expression)) {
                if (ignored != nullptr) { ignored->push_back(entry.path()); }
                continue;
            }
            Key key{groups.size() > 1 ? groups[1].str() : name, ""};
            for (std::size_t g = 2; g < groups.size(); ++g) { key.second += (g > 2 ? "-" : "") + groups[g].str(); }
            const auto [at, is_new] = files.emplace(key, entry.path());
            if (!is_new) {
                throw std::invalid_argument("the pattern gives " + at->second.string() + " and " +
                                            entry.path().string() + " the same name");
            }
        }
        return files;
    };
    const std::map<Key, fs::path> left = list(references), right = list(candidates);
    std::map<Key, PairSpec> pairs;
    for (const auto& [key, file] : left) { pairs[key] = {key.first, key.second, file, candidates / file.filename()}; }
    bool any = false;
    for (const auto& [key, file] : right) {
        any = any || pairs.contains(key);
        pairs.try_emplace(key, PairSpec{key.first, key.second, references / file.filename(), file});
        pairs[key].candidate = file;
    }
    if (!any) {
        throw std::invalid_argument("no file of " + references.string() + " pairs up with one of " +
                                    candidates.string());
    }
    std::vector<PairSpec> list_of_pairs;
    for (auto& [key, pair] : pairs) { list_of_pairs.push_back(std::move(pair)); }
    return list_of_pairs;
}

} // namespace logitstat

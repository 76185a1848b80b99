#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace logitstat {

/// What a trace says of itself: lines of `key value [key value ...]`, order and unknown keys kept.
///
/// The first word of a line is a key; the words after it alternate value, key, value. The exception is `columns`,
/// whose words are one list. A line without a value is a remark and is kept too.
class Metadata {
  public:
    using Line = std::vector<std::string>; ///< its words, at least one

    /// Appends one line of words. An empty line is ignored.
    void add(Line words) {
        if (!words.empty()) { lines_.push_back(std::move(words)); }
    }

    /// The value of the first `key`, wherever in a line it stands; nothing when the key is absent or has no value.
    std::optional<std::string_view> find(std::string_view key) const {
        for (const Line& line : lines_) {
            const std::size_t keys = line.front() == "columns" ? 1 : line.size();
            for (std::size_t i = 0; i < keys && i + 1 < line.size(); i += 2) {
                if (line[i] == key) { return line[i + 1]; }
            }
        }
        return std::nullopt;
    }

    const std::vector<Line>& lines() const noexcept { return lines_; } ///< in their order
    bool empty() const noexcept { return lines_.empty(); }             ///< there is no line
    /// The same words in the same lines in the same order.
    friend bool operator==(const Metadata&, const Metadata&) = default;

  private:
    std::vector<Line> lines_;
};

} // namespace logitstat

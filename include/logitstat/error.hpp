#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// The errors of the library. A mistake of the caller (a negative threshold, planes of unequal length) is a
/// `std::invalid_argument`; everything that the data or the system can do wrong is one of these.
namespace logitstat {

/// A file that cannot be opened, mapped, read or written. `what()` is "PATH: reason".
class io_error : public std::runtime_error {
  public:
    /// `what()` becomes "PATH: reason".
    io_error(const std::string& path, const std::string& reason)
        : std::runtime_error(path + ": " + reason), path_(path) {}
    const std::string& path() const noexcept { return path_; } ///< as the caller gave it

  private:
    std::string path_;
};

/// Bytes that are not what their format says. `what()` is "PATH:LINE:COLUMN: reason", line and column counted from 1
/// in bytes, or "PATH: reason" when the whole file is meant (line 0).
class parse_error : public std::runtime_error {
  public:
    /// `line` and `column` from 1, in bytes.
    parse_error(const std::string& path, std::size_t line, std::size_t column, const std::string& reason)
        : std::runtime_error(path + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + reason),
          path_(path), line_(line), column_(column) {}
    /// Of the whole file: line and column are 0.
    parse_error(const std::string& path, const std::string& reason)
        : std::runtime_error(path + ": " + reason), path_(path) {}

    const std::string& path() const noexcept { return path_; } ///< as the reader was given it
    std::size_t line() const noexcept { return line_; }        ///< from 1; 0 for the whole file
    std::size_t column() const noexcept { return column_; }    ///< from 1, in bytes; 0 for the whole file

  private:
    std::string path_;
    std::size_t line_ = 0;
    std::size_t column_ = 0;
};

/// Two traces that do not score the same tokens at the same places. `what()` names the first difference.
class not_comparable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

namespace detail {

/// The shortest text that reads back as the same double.
inline std::string shortest_text(double x) {
    std::array<char, 32> buffer;
    return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr};
}

/// Untrusted bytes as they may be shown in an error: quoted, cut to `limit` bytes, everything that is not printable
/// ASCII written as \xNN so that a terminal never interprets it.
inline std::string excerpt(std::string_view text, std::size_t limit = 40) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string shown = "'";
    for (const char c : text.substr(0, limit)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            shown += c;
        } else {
            shown += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    shown += text.size() > limit ? "...'" : "'";
    return shown;
}

} // namespace detail
} // namespace logitstat

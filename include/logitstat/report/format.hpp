#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/error.hpp"

/// Numbers and text as all reports print them. std::to_chars throughout: no locale can change a decimal point.
namespace logitstat::report {

/// Tests the bits, so that -ffast-math cannot remove it.
constexpr bool is_nan(double x) noexcept {
    return (std::bit_cast<std::uint64_t>(x) & 0x7fff'ffff'ffff'ffffu) > 0x7ff0'0000'0000'0000u;
}

/// Fixed decimals; magnitudes that would not fit a table fall back to scientific notation. No value is ever printed as
/// NaN (it is "n/a") or as a negative zero. Precondition: decimals <= 40.
inline std::string fixed(double x, int decimals) {
    if (is_nan(x)) { return "n/a"; }
    std::array<char, 64> buffer;
    const bool wide = std::abs(x) >= 1e15;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x,
                                   wide ? std::chars_format::scientific : std::chars_format::fixed, decimals);
    const std::string text(buffer.data(), end.ptr);
    return text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos ? text.substr(1) : text;
}

/// As `fixed`, but what these decimals would show with fewer than two significant digits is written in scientific
/// notation: a difference of 3e-9 is small, not zero, and beside its error it can still be a finding.
inline std::string figure(double x, int decimals) {
    if (x == 0 || !(std::abs(x) < std::pow(10.0, 1 - decimals))) { return fixed(x, decimals); }
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific, 1);
    return {buffer.data(), end.ptr};
}

/// The shortest text that reads back as the same double: for thresholds, which people typed.
inline std::string shortest(double x) { return detail::shortest_text(x); }

/// A difference: `figure` with its sign; zero has none.
inline std::string with_sign(double x, int decimals) { return (x > 0 ? "+" : "") + figure(x, decimals); }

/// Figures that may not exist.
inline std::string fixed(std::optional<double> x, int decimals) { return x ? fixed(*x, decimals) : "n/a"; }
inline std::string figure(std::optional<double> x, int decimals) { return x ? figure(*x, decimals) : "n/a"; }
inline std::string with_sign(std::optional<double> x, int decimals) { return x ? with_sign(*x, decimals) : "n/a"; }

/// A rate in [0, 1] as a percentage. A rate that these decimals would show as zero, and is not, is "<0.01 %".
inline std::string percent(double rate, int decimals = 2) {
    const double least = std::pow(10.0, -decimals);
    if (rate > 0 && 100 * rate < least / 2) { return "<" + fixed(least, decimals) + " %"; }
    return is_nan(rate) ? "n/a" : fixed(100 * rate, decimals) + " %";
}
inline std::string percent(std::optional<double> rate, int decimals = 2) {
    return rate ? percent(*rate, decimals) : "n/a";
}

/// An upper bound as a percentage: rounded up, so that what is said to be excluded is.
inline std::string percent_up(double bound, int decimals = 2) {
    const double unit = std::pow(10.0, decimals);
    return fixed((std::min)(100.0, std::ceil(100 * bound * unit - 1e-9) / unit), decimals) + " %";
}

/// "1 position", "2 positions".
inline std::string counted(std::int64_t n, std::string_view noun) {
    return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

inline std::string pad_left(std::string text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}
inline std::string pad_right(std::string text, std::size_t width) {
    return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}
/// Cells of a table, as above: with a space at least, so that what does not fit its column stands apart from its
/// neighbour. Precondition: width > 0.
inline std::string cell_left(std::string text, std::size_t width) { return " " + pad_left(std::move(text), width - 1); }
inline std::string cell_right(std::string text, std::size_t width) {
    return pad_right(std::move(text), width - 1) + " ";
}

/// Text from a file, safe to print: whatever could drive a terminal, break a line or table row or turn the text around
/// (control characters of ASCII, Latin-1 and Unicode) becomes '?', and so does each byte that is not UTF-8.
inline std::string printable(std::string_view text) {
    std::string safe;
    for (std::size_t i = 0, length = 1; i < text.size(); i += length) {
        const auto lead = static_cast<unsigned char>(text[i]);
        length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        char32_t code = length == 1 ? lead : lead & (0x7fu >> length);
        bool valid = lead < 0x80 || (lead >= 0xc2 && lead < 0xf5 && i + length <= text.size());
        for (std::size_t j = 1; valid && j < length; ++j) {
            const auto next = static_cast<unsigned char>(text[i + j]);
            valid = (next & 0xc0) == 0x80;
            code = code << 6 | (next & 0x3fu);
        }
        // Overlong forms, surrogates and numbers beyond Unicode.
        valid = valid && !(length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) &&
                !(length == 4 && (code < 0x10000 || code > 0x10ffff));
        const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
                             (code >= 0x2066 && code <= 0x2069);
        if (!valid) { length = 1; }
        safe += valid && !control ? text.substr(i, length) : std::string_view("?");
    }
    return safe;
}

} // namespace logitstat::report

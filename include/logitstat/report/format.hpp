#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "logitstat/compare.hpp"

/// Numbers and names as all reports print them. std::to_chars throughout: no locale can change a decimal point.
namespace logitstat::report {

/// Fixed decimals; magnitudes that would not fit a table fall back to scientific notation.
inline std::string fixed(double x, int decimals) {
    std::array<char, 64> buffer;
    const bool wide = std::abs(x) >= 1e15;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x,
                                   wide ? std::chars_format::scientific : std::chars_format::fixed, decimals);
    return {buffer.data(), end.ptr};
}

/// The shortest text that reads back as the same double: for thresholds, which people typed.
inline std::string shortest(double x) {
    std::array<char, 64> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x);
    return {buffer.data(), end.ptr};
}

inline std::string with_sign(double x, int decimals) { return (x < 0 ? "" : "+") + fixed(x, decimals); }

/// A figure that may not exist.
inline std::string fixed(std::optional<double> x, int decimals) { return x ? fixed(*x, decimals) : "n/a"; }

/// A rate in [0, 1] as a percentage.
inline std::string percent(double rate, int decimals = 2) { return fixed(100 * rate, decimals) + " %"; }
inline std::string percent(std::optional<double> rate, int decimals = 2) {
    return rate ? percent(*rate, decimals) : "n/a";
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

/// Text from a file, safe to print: control bytes, which could drive a terminal or break a table row, become '?'.
inline std::string printable(std::string_view text) {
    std::string safe(text);
    for (char& c : safe) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) { c = '?'; }
    }
    return safe;
}

/// "rank 2", or "beyond top-8".
inline std::string rank_name(std::optional<std::size_t> rank, std::size_t k) {
    return rank ? "rank " + std::to_string(*rank) : "beyond top-" + std::to_string(k);
}

/// "position 17 (chunk 17, pos 0)".
inline std::string place(const Disagreement& at) {
    return "position " + std::to_string(at.index) + " (chunk " + std::to_string(at.chunk) + ", pos " +
           std::to_string(at.pos) + ")";
}

/// The model and device that a trace says it came from, or an empty string.
inline std::string arm_name(const TraceSource& source) {
    const auto model = source.metadata.find("model");
    const auto device = source.metadata.find("device");
    if (!model && !device) { return {}; }
    return printable(model.value_or("unnamed model")) + (device ? " on " + printable(*device) : "");
}

/// What the verdict rests on, in one sentence.
inline std::string verdict_reason(const Comparison& c) {
    const std::string gap = "(gap >= " + shortest(c.decided.threshold) + ")";
    switch (c.verdict) {
    case Verdict::identical:
        return "every top-1 token agrees; " +
               std::string(c.identical_data ? "all data are equal" : "the numbers differ");
    case Verdict::pass:
        return "no mismatch at the " + counted(c.decided.positions, "position") + " that the reference had decided " +
               gap;
    case Verdict::fail:
        return std::to_string(c.decided.mismatches) + (c.decided.mismatches == 1 ? " mismatch" : " mismatches") +
               " at the " + counted(c.decided.positions, "position") + " that the reference had decided " + gap;
    case Verdict::inconclusive:
        return "the reference had decided no position " + gap + ": there is nothing to judge by";
    }
    return {};
}

} // namespace logitstat::report

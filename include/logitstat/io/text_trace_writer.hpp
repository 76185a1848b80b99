#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/io/output_file.hpp"
#include "logitstat/io/text_lines.hpp"
#include "logitstat/io/writable.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

namespace detail {

template <std::integral Integer> void append_number(std::string& out, Integer value) {
    std::array<char, 24> buffer;
    out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

/// Six decimals, as the format's writers print them; -0.0 keeps its sign.
inline void append_number(std::string& out, double value) {
    std::array<char, 512> buffer; // the largest double has 309 digits ahead of its point
    out.append(buffer.data(),
               std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 6).ptr);
}

} // namespace detail

/// Writes a text trace: the skipped lines of the source, its metadata as `#` lines, then one line a position, floats
/// with six decimals (a trace that was read from such a file is written back byte for byte). Throws
/// std::invalid_argument before the first byte when a reader would refuse the result or take a line for something else.
/// Whether `out` took the bytes is for the caller to check. O(n k).
template <trace_like T>
void write_text_trace(std::ostream& out, const T& trace, const TraceSource& source, WriteOptions options = {}) {
    detail::require_writable(trace, options);
    const auto view = trace.view();
    std::string text = detail::preamble_text(source);
    for (std::size_t i = 0; i < view.size(); ++i) {
        for (const auto column : {view.chunk, view.pos, view.target}) {
            detail::append_number(text, column[i]);
            text += '\t';
        }
        detail::append_number(text, static_cast<double>(view.nll[i]));
        for (std::size_t j = 0; j < view.k; ++j) {
            text += j == 0 ? '\t' : ',';
            detail::append_number(text, view.ids(j)[i]);
        }
        for (std::size_t j = 0; j < view.k; ++j) {
            text += j == 0 ? '\t' : ',';
            detail::append_number(text, static_cast<double>(view.logits(j)[i]));
        }
        text += '\n';
        if (text.size() > (std::size_t{1} << 16)) {
            out.write(text.data(), static_cast<std::streamsize>(text.size()));
            text.clear();
        }
    }
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

/// The same with metadata alone.
template <trace_like T> void write_text_trace(std::ostream& out, const T& trace, const Metadata& metadata) {
    write_text_trace(out, trace, TraceSource{.metadata = metadata});
}

/// Writes a text trace file of a trace that has a source. It appears under its name only when it is complete. Throws as
/// above, and io_error when it cannot be written.
template <trace_like T>
requires requires(const T& trace) { trace.source; }
void write_text_trace(const std::filesystem::path& path, const T& trace, WriteOptions options = {}) {
    OutputFile file(path);
    write_text_trace(file.stream(), trace, trace.source, options);
    detail::require_whole(trace);
    file.commit();
}

} // namespace logitstat

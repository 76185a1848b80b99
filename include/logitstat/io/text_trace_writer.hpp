#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <filesystem>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/io/output_file.hpp"
#include "logitstat/trace/finite.hpp"
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

/// Throws std::invalid_argument, naming the position, unless a reader would accept what is about to be written.
template <trace_like T> void require_writable(const T& trace) {
    check_shape(trace);
    require_finite(trace);
    const auto view = trace.view();
    if (view.size() == 0) { throw std::invalid_argument("a trace without positions cannot be written"); }
    for (std::size_t i = 0; i < view.size(); ++i) {
        const auto fail = [&](const char* reason) {
            throw std::invalid_argument("position " + std::to_string(i) + ": " + reason);
        };
        if (view.chunk[i] < 0 || view.pos[i] < 0 || view.target[i] < 0) { fail("negative chunk, pos or target"); }
        if (i > 0 && std::pair(view.chunk[i], view.pos[i]) <= std::pair(view.chunk[i - 1], view.pos[i - 1])) {
            fail("chunk and pos do not increase");
        }
        std::set<token_id> ids;
        for (std::size_t j = 0; j < view.k; ++j) {
            if (view.ids(j)[i] < 0) { fail("negative token id"); }
            if (!ids.insert(view.ids(j)[i]).second) { fail("token id repeats"); }
            if (j > 0 && view.logits(j)[i] > view.logits(j - 1)[i]) { fail("logits are not descending"); }
        }
    }
}

} // namespace detail

/// Writes a text trace: the metadata as `#` lines, then one line a position, floats with six decimals (a trace that was
/// read from such a file is written back byte for byte). Throws std::invalid_argument before the first byte when a
/// reader would refuse the result, or when a word of the metadata holds a tab, a line break or another control byte.
/// Whether `out` took the bytes is for the caller to check.
template <trace_like T> void write_text_trace(std::ostream& out, const T& trace, const Metadata& metadata) {
    detail::require_writable(trace);
    const auto view = trace.view();
    std::string text;
    for (const Metadata::Line& line : metadata.lines()) {
        std::string_view before = "# ";
        for (const std::string& word : line) {
            const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
            if (std::any_of(word.begin(), word.end(), control)) {
                throw std::invalid_argument("metadata with a tab, a line break or a control byte: " +
                                            detail::excerpt(word));
            }
            text.append(before).append(word);
            before = "\t";
        }
        text += '\n';
    }
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

/// Writes a text trace file with the trace's own metadata. It appears under its name only when it is complete. Throws
/// as above, and io_error when it cannot be written.
template <std::floating_point Real> void write_text_trace(const std::filesystem::path& path, const Trace<Real>& trace) {
    OutputFile file(path);
    write_text_trace(file.stream(), trace, trace.source.metadata);
    file.commit();
}

} // namespace logitstat

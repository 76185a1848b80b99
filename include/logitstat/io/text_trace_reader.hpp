#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/read_options.hpp"
#include "logitstat/io/text_lines.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"

/// The text trace (TSV), as harnesses write it:
///
///     # key<TAB>value[<TAB>key<TAB>value ...]                      any number of lines
///     chunk<TAB>pos<TAB>target<TAB>nll<TAB>id,id,...<TAB>logit,logit,...     one a position
///
/// Lines ahead of the first data line that are neither are a loader's chatter: skipped and kept aside. After it every
/// line must be a data line, because anything else may be a torn row.
namespace logitstat {

namespace detail {

/// One pass over the bytes of a text trace. Fields are parsed where they lie; nothing is copied but the numbers.
template <std::floating_point Real> class TextTraceParser {
  public:
    TextTraceParser(std::string_view bytes, std::string name, ReadOptions options)
        : name_(std::move(name)), options_(options), rest_(bytes) {}

    Trace<Real> parse() {
        if (rest_.starts_with(byte_order_mark)) { rest_.remove_prefix(byte_order_mark.size()); }
        check_is_text();
        if (options_.recover) { drop_unfinished_line(); }
        read_preamble();
        allocate();
        for (row_ = 0; row_ < trace_.size(); ++row_) {
            next_line();
            read_row();
        }
        if (unterminated_) { check_last_row(); }
        for (std::string& warning : content_warnings(trace_, trace_.source.metadata, name_)) {
            trace_.source.warnings.push_back(std::move(warning));
        }
        trace_.source.path = std::move(name_);
        return std::move(trace_);
    }

  private:
    // ---- errors ----------------------------------------------------------------------------------------------------

    [[noreturn]] void fail(const char* at, const std::string& reason, std::string_view shown) const {
        const auto column = static_cast<std::size_t>(at - line_.data()) + 1;
        const bool cut = unterminated_ && rest_.empty();
        throw parse_error(name_, line_number_, column,
                          reason + ": " + excerpt(shown) + (cut ? " (the file ends inside this line)" : ""));
    }
    [[noreturn]] void fail_whole(const std::string& reason) const { throw parse_error(name_, reason); }

    /// The text from `at` to the next comma, tab or end of line: what an error about a value shows.
    std::string_view value_at(const char* at) const {
        const char* end = std::find_if(at, line_end(), [](char c) { return c == ',' || c == '\t'; });
        return {at, static_cast<std::size_t>(end - at)};
    }

    /// A value could not be read. When the line has not six fields that is the reason; otherwise the value is.
    [[noreturn]] void fail_value(const char* at, const std::string& reason) const {
        const auto tabs = std::count(line_.begin(), line_.end(), '\t');
        if (tabs != 5) {
            fail(line_.data(), "expected 6 tab-separated fields, found " + std::to_string(tabs + 1), line_);
        }
        fail(at, reason, value_at(at));
    }

    // ---- lines -----------------------------------------------------------------------------------------------------

    const char* line_end() const { return line_.data() + line_.size(); }

    /// Takes the next line off the input; its terminator, LF or CR LF, is not part of `line_`.
    void next_line() {
        const std::size_t end = rest_.find('\n');
        line_ = rest_.substr(0, end);
        unterminated_ = end == std::string_view::npos;
        rest_.remove_prefix(unterminated_ ? rest_.size() : end + 1);
        if (line_.ends_with('\r')) {
            line_.remove_suffix(1);
            unterminated_ = false; // a CR at the end of the file shows that the row was complete
        }
        ++line_number_;
    }

    void check_is_text() const {
        if (rest_.empty()) { fail_whole("the file is empty"); }
        if (const std::size_t at = find_control_byte(rest_); at != std::string_view::npos) {
            fail_whole("not a text trace: control byte at offset " + std::to_string(at) + ", the file begins " +
                       excerpt(rest_, 8));
        }
        if (options_.recover) { return; }
        // A sparse file, or one that a crash left without its end: to look for the next line in it may take hours.
        constexpr std::size_t hole = std::size_t{1} << 20;
        const std::size_t nul = rest_.find('\0');
        if (nul != std::string_view::npos && rest_.size() - nul > hole &&
            rest_.substr(nul, hole).find('\n') == std::string_view::npos) {
            fail_whole("not a text trace: NUL bytes from offset " + std::to_string(nul) +
                       " on, as in a file that was not written to its end");
        }
    }

    /// A killed run's last line: even when it reads as a whole row it may be cut inside its last number.
    void drop_unfinished_line() {
        const std::size_t end = rest_.rfind('\n') + 1; // 0 without any newline
        if (end == rest_.size()) { return; }
        const auto line = static_cast<std::size_t>(std::count(rest_.begin(), rest_.end(), '\n')) + 1;
        trace_.source.warnings.push_back(
            name_ + ":" + std::to_string(line) +
            ": the last line has no newline and was dropped: " + excerpt(rest_.substr(end)));
        rest_ = rest_.substr(0, end);
    }

    /// Metadata and chatter, up to the first data line, which is left on the input.
    void read_preamble() {
        while (!rest_.empty()) {
            const std::string_view before = rest_;
            next_line();
            if (line_.starts_with('#')) {
                add_metadata(line_.substr(1));
            } else if (looks_like_data(line_)) {
                rest_ = before;
                --line_number_;
                return;
            } else {
                if (first_chatter_.empty()) { first_chatter_ = line_; }
                trace_.source.skipped.append(line_).append(1, '\n');
            }
        }
        const std::string skipped = std::to_string(trace_.source.skipped_lines());
        fail_whole("no data rows" +
                   (first_chatter_.empty()
                        ? std::string()
                        : " (lines skipped: " + skipped + ", the first " + excerpt(first_chatter_) + ")") +
                   ": neither a text trace (tab-separated lines) nor a binary trace (safetensors)");
    }

    void add_metadata(std::string_view text) {
        if (text.size() > longest_metadata) {
            fail(line_.data(), "a metadata line of " + std::to_string(text.size()) + " bytes", line_);
        }
        Metadata::Line words = metadata_words(text);
        if ((metadata_words_ += words.size()) > most_metadata_words) {
            fail(line_.data(), "more than " + std::to_string(most_metadata_words) + " words of metadata", line_);
        }
        trace_.source.metadata.add(std::move(words));
    }

    // ---- rows ------------------------------------------------------------------------------------------------------

    /// Shapes the columns: k from the first row, n from the number of lines. The rows that a file of this size can
    /// hold bound n, so that memory stays in proportion to the file whatever its bytes say.
    void allocate() {
        const std::string_view before = rest_;
        next_line();
        const auto tabs = std::count(line_.begin(), line_.end(), '\t');
        if (tabs != 5) { fail_value(line_.data(), ""); }
        const std::size_t logits_at = line_.rfind('\t'), ids_at = line_.rfind('\t', logits_at - 1);
        const auto commas = [](std::string_view list) {
            return static_cast<std::size_t>(std::count(list.begin(), list.end(), ','));
        };
        const std::size_t k = commas(line_.substr(ids_at, logits_at - ids_at)) + 1;
        if (commas(line_.substr(logits_at)) + 1 != k) { fail_k(line_.data() + ids_at + 1); }
        rest_ = before;
        --line_number_;
        const std::size_t shortest_row = 4 * k + 8; // "0\t0\t0\t0\t" + k times "0," + k times "0," + newline
        const auto lines =
            static_cast<std::size_t>(std::count(rest_.begin(), rest_.end(), '\n')) + (rest_.ends_with('\n') ? 0 : 1);
        const std::size_t rows_that_fit = rest_.size() / shortest_row + 1;
        TraceSource source = std::move(trace_.source);
        trace_ = Trace<Real>::with_shape((std::min)(lines, rows_that_fit), k);
        trace_.source = std::move(source);
        ids_.resize(k);
    }

    void read_row() {
        const char* at = line_.data();
        const std::int32_t chunk = read_integer(at, '\t', "chunk");
        const std::int32_t pos = read_integer(at, '\t', "pos");
        if (row_ > 0 && std::pair(chunk, pos) <= std::pair(trace_.chunk[row_ - 1], trace_.pos[row_ - 1])) {
            fail(line_.data(),
                 "chunk and pos do not increase: " + std::to_string(chunk) + ", " + std::to_string(pos) + " after " +
                     std::to_string(trace_.chunk[row_ - 1]) + ", " + std::to_string(trace_.pos[row_ - 1]),
                 line_);
        }
        trace_.chunk[row_] = chunk;
        trace_.pos[row_] = pos;
        trace_.target[row_] = read_integer(at, '\t', "target");
        trace_.nll[row_] = read_real(at, '\t', "nll");
        const char* ids_at = at;
        read_ids(at);
        read_logits(at, ids_at);
    }

    void read_ids(const char*& at) {
        const std::size_t k = trace_.k, n = trace_.size();
        const char* const start = at;
        for (std::size_t j = 0; j < k; ++j) {
            const char* const value = at;
            ids_[j] = read_integer(at, j + 1 == k ? '\t' : ',', "token id", start);
            trace_.top_ids[j * n + row_] = ids_[j];
            // A row is short, so looking back is cheaper than sorting; a row of thousands is sorted below instead.
            if (k <= 64 && std::find(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(j), ids_[j]) !=
                               ids_.begin() + static_cast<std::ptrdiff_t>(j)) {
                fail_value(value, "token id repeats in the row");
            }
        }
        if (k > 64) {
            std::sort(ids_.begin(), ids_.end());
            const auto twin = std::adjacent_find(ids_.begin(), ids_.end());
            const char* value = start;
            for (std::size_t j = 0, seen = 0; twin != ids_.end() && j < k; ++j) {
                if (trace_.top_ids[j * n + row_] == *twin && ++seen == 2) {
                    fail_value(value, "token id repeats in the row");
                }
                value = std::find(value, line_end(), ',') + 1;
            }
        }
        if (k < 2) { fail_value(start, "1 token id, at least 2 are needed for a gap"); }
    }

    void read_logits(const char*& at, const char* ids_at) {
        const std::size_t k = trace_.k, n = trace_.size();
        Real previous{};
        for (std::size_t j = 0; j < k; ++j) {
            const char* const value = at;
            const Real logit = read_real(at, j + 1 == k ? '\n' : ',', "logit", ids_at);
            if (j > 0 && logit > previous) { fail_value(value, "logits are not descending"); }
            trace_.top_logits[j * n + row_] = logit;
            previous = logit;
        }
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    /// A list has another length than expected: is it k that changed, or do ids and logits not match?
    [[noreturn]] void fail_k(const char* ids_at) const {
        const char* const tab = std::find(ids_at, line_end(), '\t');
        if (std::count(line_.begin(), line_.end(), '\t') != 5) { fail_value(ids_at, ""); }
        const auto ids = std::count(ids_at, tab, ',') + 1;
        const auto logits = std::count(tab, line_end(), ',') + 1;
        if (ids != logits) {
            fail(ids_at, std::to_string(ids) + " token ids but " + std::to_string(logits) + " logits",
                 {ids_at, static_cast<std::size_t>(line_end() - ids_at)});
        }
        fail(ids_at,
             "k changes: " + std::to_string(ids) + " token ids, the rows before have " + std::to_string(trace_.k),
             {ids_at, static_cast<std::size_t>(tab - ids_at)});
    }

    /// Steps over the separator after a value that ended at `end`; '\n' stands for the end of the line.
    void expect(const char*& at, const char* end, char separator, const char* what, const char* ids_at) const {
        if (separator == '\n' ? end == line_end() : end != line_end() && *end == separator) {
            at = end + (separator == '\n' ? 0 : 1);
            return;
        }
        const bool list_goes_on_or_ends = end == line_end() || *end == ',' || *end == '\t';
        if (ids_at != nullptr && list_goes_on_or_ends) { fail_k(ids_at); }
        fail_value(at, std::string("trailing garbage after ") + what);
    }

    std::int32_t read_integer(const char*& at, char separator, const char* what, const char* ids_at = nullptr) const {
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(at, line_end(), value);
        if (error != std::errc{}) {
            fail_value(at, std::string(what) + (error == std::errc::result_out_of_range ? " does not fit 32 bits"
                                                                                        : " is not an integer"));
        }
        if (value < 0) { fail_value(at, std::string("negative ") + what); }
        expect(at, end, separator, what, ids_at);
        return value;
    }

    Real read_real(const char*& at, char separator, const char* what, const char* ids_at = nullptr) const {
        Real value = 0;
        const auto [end, error] = std::from_chars(at, line_end(), value);
        if (error != std::errc{}) {
            fail_value(at, std::string(what) +
                               (error == std::errc::result_out_of_range ? " is out of range" : " is not a number"));
        }
        if (!options_.keep_non_finite && !simd::is_finite(value)) {
            fail_value(at, std::string(what) + " is not finite");
        }
        expect(at, end, separator, what, ids_at);
        return value;
    }

    // ---- after the rows --------------------------------------------------------------------------------------------

    /// Digits after the decimal point; -1 when the number has none or an exponent, and so no fixed form.
    static std::ptrdiff_t decimals(std::string_view number) {
        const std::size_t point = number.find('.');
        if (point == std::string_view::npos ||
            number.find_first_not_of("0123456789", point + 1) != std::string_view::npos) {
            return -1;
        }
        return static_cast<std::ptrdiff_t>(number.size() - point - 1);
    }

    /// The last row has no newline: was it cut inside its last number? Told by the decimals of the row's other numbers.
    void check_last_row() {
        std::string_view text = line_;
        for (int field = 0; field < 3; ++field) { text.remove_prefix(text.find('\t') + 1); }
        const std::string_view nll = text.substr(0, text.find('\t'));
        std::string_view logits = text.substr(text.rfind('\t') + 1);
        const std::ptrdiff_t usual = decimals(nll);
        bool vary = usual < 0;
        for (std::size_t comma; (comma = logits.find(',')) != std::string_view::npos; logits.remove_prefix(comma + 1)) {
            vary = vary || decimals(logits.substr(0, comma)) != usual;
        }
        if (!vary && decimals(logits) != usual) {
            fail(logits.data(),
                 "the last row is cut: its last number has not " + std::to_string(usual) +
                     " decimals as the others have",
                 logits);
        }
        if (vary) {
            trace_.source.warnings.push_back(name_ + ":" + std::to_string(line_number_) +
                                             ": the last row has no newline "
                                             "and may be cut inside its last number " +
                                             excerpt(logits));
        }
    }

    std::string name_;
    ReadOptions options_;
    std::string_view rest_; ///< not yet read
    std::string_view line_; ///< the current line
    std::string_view first_chatter_;
    std::size_t line_number_ = 0, metadata_words_ = 0;
    bool unterminated_ = false; ///< the current line ends with the file, not with a newline
    std::size_t row_ = 0;
    std::vector<token_id> ids_; ///< the current row's
    Trace<Real> trace_;
};

} // namespace detail

/// Reads a text trace from memory; `name` stands for the path in errors. Real is the type of NLLs and logits. CRLF and
/// a UTF-8 byte order mark are accepted. O(bytes), plus O(k^2) (k <= 64) or O(k log k) a row for repeated ids.
///
/// Throws parse_error naming line, column and text: a wrong number of fields, a bad, negative (ids, chunk, pos,
/// target), non-finite or out-of-range number, trailing garbage, k below 2 or changing, different numbers of ids and
/// logits, ids that repeat in a row, logits that do not descend, (chunk, pos) that do not increase, a line after the
/// first data line that is none, a last row cut inside its last number, no data rows, and bytes that are not text.
/// Never returns a part. ReadOptions may let non-finite values through and drop an unfinished last line.
template <std::floating_point Real = double>
Trace<Real> parse_text_trace(std::string_view bytes, std::string name, ReadOptions options = {}) {
    return detail::TextTraceParser<Real>(bytes, std::move(name), options).parse();
}

/// Reads a text trace file. Throws io_error when it cannot be opened or became shorter meanwhile, parse_error as above.
template <std::floating_point Real = double>
Trace<Real> read_text_trace(const std::filesystem::path& path, ReadOptions options = {}) {
    const MappedFile file(path);
    auto trace = parse_text_trace<Real>(file.text(), path.string(), options);
    file.require_whole();
    return trace;
}

} // namespace logitstat

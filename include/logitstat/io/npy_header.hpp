#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/tensor.hpp"

/// The header of an .npy file, a literal of a Python dictionary
///
///     {'descr': '<f4', 'fortran_order': False, 'shape': (2016, 512), }
///
/// padded with spaces, from untrusted bytes.
namespace logitstat::detail {

struct NpyHeader {
    std::string_view descr; ///< the text between the quotes
    bool fortran_order = false;
    std::vector<std::uint64_t> shape;
};

/// The element type that numpy calls `descr`; throws parse_error for one that is not read, saying why.
inline tensor_type npy_tensor_type(std::string_view descr, const std::string& name) {
    const auto fail = [&](const std::string& reason) {
        throw parse_error(name, "npy: dtype " + excerpt(descr) + reason);
    };
    struct Known {
        std::string_view code;
        tensor_type type;
    };
    static constexpr Known known[] = {
        {"f2", tensor_type::F16}, {"f4", tensor_type::F32}, {"f8", tensor_type::F64}, {"i1", tensor_type::I8},
        {"i2", tensor_type::I16}, {"i4", tensor_type::I32}, {"i8", tensor_type::I64}, {"u1", tensor_type::U8},
        {"u2", tensor_type::U16}, {"u4", tensor_type::U32}, {"u8", tensor_type::U64}, {"b1", tensor_type::BOOL},
    };
    const std::string_view order = descr.substr(0, 1), code = descr.substr(order.size());
    for (const Known& one : known) {
        if (code != one.code) { continue; }
        if (order == ">") { fail(" is big-endian, only little-endian is read"); }
        if (order == "<" || (order == "|" && element_bits(one.type) == 8)) { return one.type; }
    }
    if (code.starts_with("O")) { fail(" is of Python objects, which are not read"); }
    if (code == "V2") { fail(" is raw bytes, as numpy stores bfloat16: a safetensors file says what it holds"); }
    fail(" is none of <f2 <f4 <f8, <i1 to <i8, <u1 to <u8, |b1");
    return {};
}

/// Reads that form and nothing else; every key once, in any order. Complaints name the offset in the file.
class NpyHeaderParser {
  public:
    static constexpr std::size_t most_dimensions = 32; ///< as numpy

    /// `offset`: where `text` begins in the file, which `name` stands for in errors.
    NpyHeaderParser(std::string_view text, std::size_t offset, const std::string& name)
        : text_(text), offset_(offset), name_(name) {}

    /// Throws parse_error. O(header).
    NpyHeader parse() {
        NpyHeader header;
        std::optional<bool> order;
        bool has_descr = false, has_shape = false;
        expect('{', "a dictionary");
        while (!accept('}')) {
            skip_space();
            const std::size_t key_at = at_;
            const std::string_view key = string("a key");
            const auto once = [&](bool seen) {
                if (seen) { fail(key_at, "key " + excerpt(key) + " comes twice"); }
                expect(':', "':'");
            };
            if (key == "descr") {
                once(has_descr);
                has_descr = true;
                skip_space();
                if (peek() == '[') { fail(at_, "the dtype is a structure of fields, not one number"); }
                header.descr = string("a dtype in quotes");
            } else if (key == "fortran_order") {
                once(order.has_value());
                order = boolean();
            } else if (key == "shape") {
                once(has_shape);
                has_shape = true;
                header.shape = tuple();
            } else {
                fail(key_at, "unknown key " + excerpt(key));
            }
            if (!accept(',')) {
                expect('}', "',' or '}'");
                break;
            }
        }
        skip_space();
        if (at_ != text_.size()) { fail(at_, "something follows the dictionary: " + excerpt(rest(), 16)); }
        for (const auto& [seen, key] : {std::pair(has_descr, "descr"), std::pair(order.has_value(), "fortran_order"),
                                        std::pair(has_shape, "shape")}) {
            if (!seen) { fail(at_, std::string("key '") + key + "' is missing"); }
        }
        header.fortran_order = *order;
        return header;
    }

  private:
    [[noreturn]] void fail(std::size_t at, const std::string& reason) const {
        throw parse_error(name_, "npy header, byte " + std::to_string(offset_ + at) + ": " + reason);
    }
    std::string_view rest() const { return text_.substr(at_); }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_space() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') { ++at_; }
    }
    bool accept(char wanted) {
        skip_space();
        if (peek() != wanted) { return false; }
        ++at_;
        return true;
    }
    [[noreturn]] void expected(const std::string& what) const {
        fail(at_, "expected " + what + ", found " + (rest().empty() ? "the end" : excerpt(rest(), 16)));
    }
    void expect(char wanted, const std::string& what) {
        if (!accept(wanted)) { expected(what); }
    }
    bool accept_word(std::string_view word) {
        if (!rest().starts_with(word)) { return false; }
        at_ += word.size();
        return true;
    }

    std::string_view string(const std::string& what) {
        skip_space();
        const char quote = peek();
        if (quote != '\'' && quote != '"') { expected(what); }
        const std::size_t end = text_.find_first_of(std::string{quote, '\\'}, at_ + 1);
        if (end == std::string_view::npos) { fail(at_, "a string that does not end"); }
        if (text_[end] == '\\') { fail(end, "an escape in a string"); }
        const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return inside;
    }
    bool boolean() {
        skip_space();
        if (accept_word("True")) { return true; }
        if (!accept_word("False")) { expected("True or False"); }
        return false;
    }
    std::vector<std::uint64_t> tuple() {
        std::vector<std::uint64_t> shape;
        expect('(', "a tuple");
        bool comma = true;
        while (!accept(')')) {
            if (!comma) { expected("',' or ')'"); }
            std::uint64_t extent = 0;
            const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
            if (error == std::errc::result_out_of_range) { fail(at_, "a dimension above 64 bits"); }
            if (error != std::errc()) { expected("a whole number"); }
            if (shape.size() == most_dimensions) {
                fail(at_, "more than " + std::to_string(most_dimensions) + " dimensions");
            }
            shape.push_back(extent);
            at_ = static_cast<std::size_t>(end - text_.data());
            accept_word("L"); // as Python 2 wrote long integers
            comma = accept(',');
        }
        if (shape.size() == 1 && !comma) { fail(at_, "the shape is a number in parentheses, not a tuple"); }
        return shape;
    }

    std::string_view text_;
    std::size_t offset_, at_ = 0;
    const std::string& name_;
};

} // namespace logitstat::detail

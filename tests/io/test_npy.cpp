#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "logitstat/io/npy.hpp"

namespace test_npy {

using namespace testing;
using logitstat::NpyFile;
using logitstat::parse_error;
using logitstat::tensor_type;

namespace {

using Shape = std::vector<std::uint64_t>;

/// What the reader says of these bytes, after the path.
std::string refusal(const std::string& bytes) {
    TemporaryFolder folder;
    const auto path = folder.write("bad.npy", bytes);
    const std::string message = message_of<parse_error>([&] { NpyFile file(path); });
    CHECK(std::string_view(message).starts_with(path.string() + ": "));
    return message.substr(std::min(message.size(), path.string().size() + 2));
}

struct BadHeader {
    const char* name;
    std::string header;
    std::string message; // after the path; the header begins at byte 10
};

std::string with_shape(const std::string& shape) {
    return "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + "}";
}
std::string with_descr(const std::string& descr) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': (2,)}";
}
const std::string none_of = " is none of <f2 <f4 <f8, <i1 to <i8, <u1 to <u8, |b1";

const std::vector<BadHeader> bad_headers{
    // the literal
    {"empty", "", "npy header, byte 10: expected a dictionary, found the end"},
    {"spaces", "   \n", "npy header, byte 14: expected a dictionary, found the end"},
    {"a list", "[1]", "npy header, byte 10: expected a dictionary, found '[1]'"},
    {"nothing in it", "{}", "npy header, byte 12: key 'descr' is missing"},
    {"no order", "{'descr': '|u1', 'shape': (2,)}", "npy header, byte 41: key 'fortran_order' is missing"},
    {"no shape", "{'descr': '|u1', 'fortran_order': False}", "npy header, byte 50: key 'shape' is missing"},
    {"unfinished", "{'descr': '|u1'", "npy header, byte 25: expected ',' or '}', found the end"},
    {"unfinished after a comma", "{'descr': '|u1',", "npy header, byte 26: expected a key, found the end"},
    {"a string without end", "{'descr", "npy header, byte 11: a string that does not end"},
    {"quotes that differ", "{'descr\": 1}", "npy header, byte 11: a string that does not end"},
    {"an escape", R"({'des\x63r': '|u1'})", "npy header, byte 15: an escape in a string"},
    {"no colon", "{'descr' '|u1'}", "npy header, byte 19: expected ':', found ''|u1'}'"},
    {"a key that is a number", "{1: 2}", "npy header, byte 11: expected a key, found '1: 2}'"},
    {"two commas", "{'descr': '|u1',, }", "npy header, byte 26: expected a key, found ', }'"},
    {"an unknown key", "{'descr': '|u1', 'order': 'C'}", "npy header, byte 27: unknown key 'order'"},
    {"a hostile key", "{'\x1b[2J': 1}", R"(npy header, byte 11: unknown key '\x1b[2J')"},
    {"a key twice", "{'descr': '|u1', 'descr': '|u1'}", "npy header, byte 27: key 'descr' comes twice"},
    {"order twice", "{'fortran_order': False, 'fortran_order': False}",
     "npy header, byte 35: key 'fortran_order' comes twice"},
    {"shape twice", "{'shape': (), 'shape': ()}", "npy header, byte 24: key 'shape' comes twice"},
    {"something after it", with_shape("(2,)") + " #", "npy header, byte 66: something follows the dictionary: '#'"},
    {"a NUL after it", with_shape("(2,)") + std::string(1, '\0'),
     R"(npy header, byte 65: something follows the dictionary: '\x00')"},
    {"a call", "__import__('os')", "npy header, byte 10: expected a dictionary, found '__import__('os')'"},
    // fortran_order
    {"column order", "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1)}",
     "npy: the array is in column order (fortran_order is True): write it with numpy.ascontiguousarray"},
    {"order that is a number", "{'fortran_order': 0}", "npy header, byte 28: expected True or False, found '0}'"},
    {"order in lower case", "{'fortran_order': false}", "npy header, byte 28: expected True or False, found 'false}'"},
    {"order with a tail", "{'fortran_order': Falsely}", "npy header, byte 33: expected ',' or '}', found 'ly}'"},
    // descr
    {"big-endian", with_descr("'>f4'"), "npy: dtype '>f4' is big-endian, only little-endian is read"},
    {"big-endian integers", with_descr("'>i8'"), "npy: dtype '>i8' is big-endian, only little-endian is read"},
    {"objects", with_descr("'|O'"), "npy: dtype '|O' is of Python objects, which are not read"},
    {"bfloat16", with_descr("'|V2'"),
     "npy: dtype '|V2' is raw bytes, as numpy stores bfloat16: a safetensors file says what it holds"},
    {"long double", with_descr("'<f16'"), "npy: dtype '<f16'" + none_of},
    {"complex", with_descr("'<c8'"), "npy: dtype '<c8'" + none_of},
    {"text", with_descr("'<U8'"), "npy: dtype '<U8'" + none_of},
    {"dates", with_descr("'<M8[ns]'"), "npy: dtype '<M8[ns]'" + none_of},
    {"no byte order", with_descr("'f4'"), "npy: dtype 'f4'" + none_of},
    {"native order", with_descr("'=f4'"), "npy: dtype '=f4'" + none_of},
    {"order not applicable", with_descr("'|f4'"), "npy: dtype '|f4'" + none_of},
    {"empty dtype", with_descr("''"), "npy: dtype ''" + none_of},
    {"hostile dtype", with_descr("'<f4\x07'"), R"(npy: dtype '<f4\x07')" + none_of},
    {"a structure", with_descr("[('a', '<f4')]"),
     "npy header, byte 20: the dtype is a structure of fields, not one number"},
    {"dtype without quotes", with_descr("<f4"),
     "npy header, byte 20: expected a dtype in quotes, found '<f4, 'fortran_or...'"},
    // shape
    {"a number", with_shape("2"), "npy header, byte 60: expected a tuple, found '2}'"},
    {"a number in parentheses", with_shape("(2)"),
     "npy header, byte 63: the shape is a number in parentheses, not a tuple"},
    {"a list of numbers", with_shape("[2]"), "npy header, byte 60: expected a tuple, found '[2]}'"},
    {"a tuple without end", with_shape("(2,"), "npy header, byte 63: expected a whole number, found '}'"},
    {"no comma", with_shape("(2 1)"), "npy header, byte 63: expected ',' or ')', found '1)}'"},
    {"only a comma", with_shape("(,)"), "npy header, byte 61: expected a whole number, found ',)}'"},
    {"negative", with_shape("(-2,)"), "npy header, byte 61: expected a whole number, found '-2,)}'"},
    {"with a sign", with_shape("(+2,)"), "npy header, byte 61: expected a whole number, found '+2,)}'"},
    {"a fraction", with_shape("(2.0,)"), "npy header, byte 62: expected ',' or ')', found '.0,)}'"},
    {"nested", with_shape("((2,),)"), "npy header, byte 61: expected a whole number, found '(2,),)}'"},
    {"above 64 bits", with_shape("(18446744073709551616,)"), "npy header, byte 61: a dimension above 64 bits"},
    {"33 dimensions", with_shape("(1" + replaced(std::string(32, 'x'), "x", ",1") + ")"),
     "npy header, byte 125: more than 32 dimensions"},
    {"a product of 2^64", with_shape("(4294967296, 4294967296)"),
     "npy: shape [4294967296, 4294967296] asks for more bytes than can be counted"},
    {"a product that wraps to 2", with_shape("(9223372036854775809, 2)"),
     "npy: shape [9223372036854775809, 2] asks for more bytes than can be counted"},
    {"more than there is", with_shape("(3,)"), "npy: shape [3] of |u1 asks for 3 bytes, the file holds 2: it was cut"},
    {"less than there is", with_shape("(1,)"), "npy: shape [1] of |u1 asks for 1 bytes, the file holds 2"},
    {"a scalar", with_shape("()"), "npy: shape [] of |u1 asks for 1 bytes, the file holds 2"},
    {"no element", with_shape("(0,)"), "npy: shape [0] of |u1 asks for 0 bytes, the file holds 2"},
};

} // namespace

TEST_CASE("headers that are refused, and what is said of each") {
    for (const BadHeader& bad : bad_headers) {
        CAPTURE(bad.name);
        CHECK(refusal(npy_with_header(bad.header, "xy")) == bad.message);
    }
}

TEST_CASE("versions and lengths that are refused") {
    const std::string good = npy("|u1", "(2,)", "xy");
    const auto changed = [&](std::size_t at, int byte) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(byte);
        return bytes;
    };
    CHECK(refusal("") == "npy: the file does not begin with \\x93NUMPY");
    CHECK(refusal(changed(0, 'x')) == "npy: the file does not begin with \\x93NUMPY");
    CHECK(refusal(changed(6, 0)) == "npy: version 0.0, known are 1.0, 2.0 and 3.0");
    CHECK(refusal(changed(6, 4)) == "npy: version 4.0, known are 1.0, 2.0 and 3.0");
    CHECK(refusal(changed(7, 1)) == "npy: version 1.1, known are 1.0, 2.0 and 3.0");
    CHECK(refusal(changed(9, 255)) == "npy: a header of 65398 bytes in a file of 130");
    CHECK(refusal(npy_with_header("{}", "", 2).substr(0, 8) + little_endian(65536, 4)) ==
          "npy: a header of 65536 bytes, more than 65535");
    CHECK(refusal(npy_with_header("{}", "", 3).substr(0, 8) + little_endian(UINT32_MAX, 4) + std::string(99, ' ')) ==
          "npy: a header of 4294967295 bytes, more than 65535");
    CHECK(refusal(npy_with_header("{}", "", 3).substr(0, 8) + little_endian(65535, 4)) ==
          "npy: a header of 65535 bytes in a file of 12");
}

TEST_CASE("a header that numpy would read is read") {
    TemporaryFolder folder;
    const auto shape = [&](const std::string& header, std::size_t size, int major = 1) {
        return NpyFile(folder.write("good.npy", npy_with_header(header, std::string(size, 'x'), major))).tensor().shape;
    };
    CHECK(shape(with_shape("(2,)"), 2) == Shape{2});
    CHECK(shape(with_shape("(2 , 3 , )"), 6, 2) == Shape{2, 3});
    CHECK(shape(with_shape("()"), 1, 3) == Shape{});
    CHECK(shape(with_shape("(0, 18446744073709551615)"), 0) == Shape{0, 18446744073709551615u});
    CHECK(shape(with_shape("(2L, 3L)"), 6) == Shape{2, 3}); // Python 2
    CHECK(shape("{ \"shape\" :(1,\n2),'fortran_order':False ,\t'descr':\"<i1\"}\n\n", 2) == Shape{1, 2});
    CHECK(shape(with_shape("(2,)") + std::string(65535 - with_shape("(2,)").size(), ' '), 2) == Shape{2});
    CHECK(shape(with_shape("(1" + replaced(std::string(31, 'x'), "x", ",1") + ")"), 1) == Shape(32, 1));
}

TEST_CASE("every dtype comes as its type, in place, also after a move") {
    TemporaryFolder folder;
    const std::vector<std::tuple<std::string, tensor_type, std::size_t>> types{
        {"<f2", tensor_type::F16, 2}, {"<f4", tensor_type::F32, 4}, {"<f8", tensor_type::F64, 8},
        {"|i1", tensor_type::I8, 1},  {"<i1", tensor_type::I8, 1},  {"<i2", tensor_type::I16, 2},
        {"<i4", tensor_type::I32, 4}, {"<i8", tensor_type::I64, 8}, {"|u1", tensor_type::U8, 1},
        {"<u2", tensor_type::U16, 2}, {"<u4", tensor_type::U32, 4}, {"<u8", tensor_type::U64, 8},
        {"|b1", tensor_type::BOOL, 1}};
    for (const auto& one : types) {
        const auto& [descr, type, size] = one;
        for (const int major : {1, 2, 3}) {
            CAPTURE(std::get<0>(one));
            std::string data;
            for (std::size_t i = 0; i < 6 * size; ++i) { data += static_cast<char>(i * 37 + 1); }
            NpyFile opened(folder.write("x.npy", npy(descr, "(2, 3)", data, major)));
            const NpyFile file = std::move(opened);
            CHECK(file.tensor().type == type);
            CHECK(file.tensor().shape == Shape{2, 3});
            const auto bytes = file.tensor().bytes;
            CHECK((std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == data));
            CHECK(reinterpret_cast<const char*>(bytes.data()) + bytes.size() ==
                  file.file().text().data() + file.file().text().size());
            CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0);
        }
    }
}

TEST_CASE("a file that is cut at any byte is refused, and one with a byte more") {
    TemporaryFolder folder;
    for (const int major : {1, 2, 3}) {
        const std::string bytes = npy("<f4", "(2, 3)", std::string(24, 'x'), major);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CAPTURE(size);
            CHECK_THROWS_AS(NpyFile(folder.write("cut", bytes.substr(0, size))), parse_error);
        }
        CHECK_NOTHROW(NpyFile(folder.write("whole", bytes)));
        CHECK_THROWS_AS(NpyFile(folder.write("more", bytes + '\0')), parse_error);
    }
    CHECK(refusal(npy("<f4", "(2, 3)", "").substr(0, 9)) == "npy: the file ends at byte 9, inside its header");
}

TEST_CASE("a damaged header is refused or describes the file") {
    TemporaryFolder folder;
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", data(24, 'x');
    const std::vector<std::string> tokens{"0",     "1",       "12", "18446744073709551615",
                                          "-1",    "'",       "\"", "(",
                                          ")",     ",",       "{",  "}",
                                          "False", "True",    "L",  " ",
                                          "\\",    "\xff",    ":",  "f2",
                                          "u1",    "'shape'", "<",  std::string(1, '\0')};
    std::mt19937 random(91);
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    int refused = 0, read = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string text = header;
        for (std::size_t rounds = 1 + below(2); rounds-- > 0 && !text.empty();) {
            const std::size_t at = below(text.size());
            switch (below(7)) {
            case 0: text[at] = static_cast<char>(random() & 255); break;
            case 1: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
            case 2: text.erase(at, 1 + below(3)); break;
            case 3: text.insert(at, tokens[below(tokens.size())]); break;
            case 4: text.replace(at, 1, tokens[below(tokens.size())]); break;
            case 5: // another shape of as many elements
                text = replaced(text, "(2, 3)", below(2) == 0 ? "(6,)" : "(1, 2, 3)");
                break;
            default: text.insert(text.find_last_of(" ,{(") + 1, std::string(below(3), ' '));
            }
        }
        std::string bytes = npy_with_header(text, data, 1 + static_cast<int>(below(3)));
        if (below(30) == 0) { bytes[below(12)] = static_cast<char>(random() & 255); }
        if (below(50) == 0) { bytes.resize(below(bytes.size() + 9)); }
        const auto path = folder.write("m", bytes);
        CAPTURE(i);
        CAPTURE(text);
        try {
            const NpyFile file(path);
            // Bytes that are the file's last, as many as type and shape say.
            const auto& tensor = file.tensor();
            long double wanted = tensor.type == tensor_type::F32 ? 4 : tensor.type == tensor_type::F16 ? 2 : 0;
            if (wanted == 0) {
                wanted = tensor.type == tensor_type::F64 || to_string(tensor.type).ends_with("64") ? 8 : 0;
            }
            if (wanted == 0) {
                wanted = to_string(tensor.type).ends_with("32") ? 4 : to_string(tensor.type).ends_with("16") ? 2 : 1;
            }
            for (const auto extent : tensor.shape) { wanted *= static_cast<long double>(extent); }
            CHECK(wanted == static_cast<long double>(tensor.bytes.size()));
            CHECK(tensor.bytes.size() <= bytes.size());
            CHECK(reinterpret_cast<const char*>(tensor.bytes.data()) + tensor.bytes.size() ==
                  file.file().text().data() + bytes.size());
            ++read;
        } catch (const parse_error& e) {
            CHECK(std::string_view(e.what()).starts_with(path.string() + ": npy"));
            CHECK(std::string_view(e.what()).size() < path.string().size() + 200);
            ++refused;
        }
    }
    // Both happen, or the mutations show nothing.
    CHECK(refused > 5000);
    CHECK(read > 1000);
}

} // namespace test_npy

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/io/safetensors.hpp"

namespace test_safetensors {

using namespace testing;
using logitstat::parse_error;
using logitstat::SafetensorsFile;
using logitstat::Tensor;
using logitstat::tensor_over;
using logitstat::tensor_type;
using logitstat::write_safetensors;

namespace {

struct BadHeader {
    std::string name;
    std::string header;
    std::string message; // after the path
    std::size_t data_size = 8;
};

const std::string h = "safetensors header: ";

/// One tensor 'a' with the given members.
std::string a(const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}
/// Two U8 tensors of 4 bytes with the given offsets.
std::string two(const std::string& first, const std::string& second) {
    return R"({"x":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"y":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
}

const std::vector<BadHeader> bad_headers{
    // JSON
    {"empty", "", h + "does not begin with '{'"},
    {"an array", "[]", h + "does not begin with '{'"},
    {"space first", " {}", h + "does not begin with '{'"},
    {"byte order mark", "\xEF\xBB\xBF{}", h + "does not begin with '{'"},
    {"unfinished", R"({"a":)", h + "not valid JSON at byte 6"},
    {"trailing garbage", R"({"__metadata__":{}}x)", h + "not valid JSON at byte 20"},
    {"two objects", "{}{}", h + "not valid JSON at byte 3"},
    {"trailing comma", "{,}", h + "not valid JSON at byte 2"},
    {"a comment", "{}//", h + "not valid JSON at byte 3"},
    {"a NUL ends nothing", std::string("{}\0garbage", 10), h + "not valid JSON at byte 3"},
    {"a NUL among spaces", std::string("{} \0 ", 5), h + "not valid JSON at byte 4"},
    {"invalid UTF-8", "{\"\xff\":1}", h + "not valid JSON at byte 3"},
    {"overlong UTF-8", "{\"\xC0\xAF\":1}", h + "not valid JSON at byte 3"},
    {"a lone surrogate", R"({"\ud800":1})", h + "not valid JSON at byte 9"},
    // the form
    {"a tensor that is a number", R"({"a":1})", h + "tensor 'a': is a number, not an object"},
    {"a tensor that is null", R"({"a":null})", h + "tensor 'a': is null, not an object"},
    {"a tensor that is a list", R"({"a":[]})", h + "tensor 'a': is an array, not an object"},
    {"metadata that are null", R"({"__metadata__":null})", h + "__metadata__ is null, not an object of strings"},
    {"metadata of numbers", R"({"__metadata__":{"k":1}})",
     h + "__metadata__: the value of 'k' is a number, not a string"},
    {"metadata that nest", R"({"__metadata__":{"k":{}}})",
     h + "__metadata__: the value of 'k' is an object, not a string"},
    {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", h + "__metadata__ comes twice"},
    {"a metadata key twice", R"({"__metadata__":{"k":"1","j":"2","k":"1"}})", h + "__metadata__: 'k' comes twice"},
    {"a tensor twice",
     R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
     h + "tensor 'a' comes twice"},
    {"no dtype", R"({"a":{"shape":[8],"data_offsets":[0,8]}})", h + "tensor 'a': has no dtype"},
    {"no shape", R"({"a":{"dtype":"U8","data_offsets":[0,8]}})", h + "tensor 'a': has no shape"},
    {"no offsets", R"({"a":{"dtype":"U8","shape":[8]}})", h + "tensor 'a': has no data_offsets"},
    {"an empty tensor object", R"({"a":{}})", h + "tensor 'a': has no dtype"},
    {"dtype twice", R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
     h + "tensor 'a': dtype comes twice"},
    {"shape twice", R"({"a":{"dtype":"U8","shape":[8],"shape":[8],"data_offsets":[0,8]}})",
     h + "tensor 'a': shape comes twice"},
    {"another member", R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"crc":1}})",
     h + "tensor 'a': unknown member 'crc'"},
    // dtype
    {"unknown dtype", a(R"("F33")", "[2]", "[0,8]"), h + "tensor 'a': unknown dtype 'F33'"},
    {"lower case dtype", a(R"("f32")", "[2]", "[0,8]"), h + "tensor 'a': unknown dtype 'f32'"},
    {"hostile dtype", a(R"("\u001b[2J")", "[2]", "[0,8]"), h + R"(tensor 'a': unknown dtype '\x1b[2J')"},
    {"dtype that is a number", a("32", "[2]", "[0,8]"), h + "tensor 'a': its dtype is a number, not a string"},
    // shape
    {"shape that is a number", a(R"("F32")", "2", "[0,8]"),
     h + "tensor 'a': its shape is or holds a number, not whole numbers"},
    {"nested shape", a(R"("F32")", "[[2]]", "[0,8]"),
     h + "tensor 'a': its shape is or holds an array, not whole numbers"},
    {"negative extent", a(R"("F32")", "[-2]", "[0,8]"),
     h + "tensor 'a': shape holds '-2', not a whole number of 64 bits"},
    {"fraction", a(R"("F32")", "[2.0]", "[0,8]"), h + "tensor 'a': shape holds '2.0', not a whole number of 64 bits"},
    {"above 64 bits", a(R"("F32")", "[18446744073709551616]", "[0,8]"),
     h + "tensor 'a': shape holds '18446744073709551616', not a whole number of 64 bits"},
    {"a string in the shape", a(R"("F32")", R"(["2"])", "[0,8]"),
     h + "tensor 'a': its shape is or holds a string, not whole numbers"},
    {"true in the shape", a(R"("F32")", "[true]", "[0,8]"),
     h + "tensor 'a': its shape is or holds a boolean, not whole numbers"},
    {"product overflows", a(R"("F32")", "[4294967296,4294967296]", "[0,8]"),
     h + "tensor 'a': its shape asks for more bytes than can be counted, or for part of one"},
    {"product wraps to the right size", a(R"("U8")", "[9223372036854775809,8]", "[0,8]"),
     h + "tensor 'a': its shape asks for more bytes than can be counted, or for part of one"},
    {"bytes overflow", a(R"("F64")", "[2305843009213693953]", "[0,8]"),
     h + "tensor 'a': its shape asks for more bytes than can be counted, or for part of one"},
    {"half a byte", a(R"("F4")", "[15]", "[0,8]"),
     h + "tensor 'a': its shape asks for more bytes than can be counted, or for part of one"},
    // offsets
    {"one offset", a(R"("F32")", "[2]", "[0]"), h + "tensor 'a': data_offsets are not two numbers"},
    {"three offsets", a(R"("F32")", "[2]", "[0,8,8]"), h + "tensor 'a': data_offsets are not two numbers"},
    {"negative offset", a(R"("F32")", "[2]", "[-8,0]"),
     h + "tensor 'a': data_offsets holds '-8', not a whole number of 64 bits"},
    {"backwards", a(R"("F32")", "[2]", "[8,0]"), h + "tensor 'a': data_offsets 8 to 0 run backwards"},
    {"beyond the file", a(R"("F32")", "[3]", "[0,12]"),
     h + "tensor 'a': data_offsets 0 to 12 reach beyond the file's 8 bytes of data"},
    {"far beyond the file", a(R"("U8")", "[8]", "[18446744073709551607,18446744073709551615]"),
     h + "tensor 'a': data_offsets 18446744073709551607 to 18446744073709551615 reach beyond the file's 8 bytes of "
         "data"},
    {"size and shape differ", a(R"("F32")", "[1]", "[0,8]"),
     h + "tensor 'a': data_offsets 0 to 8 hold 8 bytes, its dtype and shape ask for 4"},
    {"a scalar of eight bytes", a(R"("F32")", "[]", "[0,8]"),
     h + "tensor 'a': data_offsets 0 to 8 hold 8 bytes, its dtype and shape ask for 4"},
    {"hole in front", a(R"("F32")", "[1]", "[4,8]"), h + "tensor 'a': data_offsets 4 to 8 leave a hole after 0"},
    {"hole between", two("[0,4]", "[5,9]"), h + "tensor 'y': data_offsets 5 to 9 leave a hole after 4", 9},
    {"overlap", two("[0,4]", "[3,7]"),
     h + "tensor 'y': data_offsets 3 to 7 overlap the tensor before, which ends at 4"},
    {"the same bytes", two("[0,4]", "[0,4]"),
     h + "tensor 'y': data_offsets 0 to 4 overlap the tensor before, which ends at 4"},
    {"bytes of nobody at the end", two("[0,4]", "[4,8]"), h + "its tensors end at byte 8 of the data, the file holds 9",
     9},
    {"no tensor but data", "{}", h + "its tensors end at byte 0 of the data, the file holds 8"},
};

/// The reason why a file is none that the reader may accept, or "". Without the library's own checks.
std::string broken(const SafetensorsFile& file) {
    std::size_t covered = 0;
    const std::byte* next = nullptr;
    for (const Tensor& tensor : file.tensors()) {
        if (next != nullptr && tensor.bytes.data() != next) { return "hole or overlap"; }
        long double bits = tensor.type == tensor_type::F4                                               ? 4
                           : tensor.type == tensor_type::F6_E2M3 || tensor.type == tensor_type::F6_E3M2 ? 6
                                                                                                        : -1;
        for (const char digit : to_string(tensor.type)) { // F64, BF16, U8, F8_E4M3: the first number is the bits
            if (bits > 0) { break; }
            if (digit == '8') { bits = 8; }
            if (digit == '1') { bits = 16; }
            if (digit == '3') { bits = 32; }
            if (digit == '6') { bits = 64; }
        }
        if (tensor.type == tensor_type::BOOL) { bits = 8; }
        for (const auto extent : tensor.shape) { bits *= static_cast<long double>(extent); }
        if (bits != 8.0L * static_cast<long double>(tensor.bytes.size())) { return "bytes and shape"; }
        for (const std::byte byte : tensor.bytes) { covered += byte >= std::byte(0) ? 1 : 0; } // touches them all
        next = tensor.bytes.data() + tensor.bytes.size();
        if (file.find(tensor.name) != &tensor) { return "not found by its name"; }
    }
    return covered <= file.size() ? "" : "more bytes than the file";
}

/// A file of several types, as the writer makes it.
std::filesystem::path write_sample(const TemporaryFolder& folder, std::string_view name) {
    static const std::vector<double> f64{1.5, -0.0};
    static const std::vector<float> f32{1, 2, 3};
    static const std::vector<Eigen::half> f16{Eigen::half(0.5f), Eigen::half(-2.0f)};
    static const std::vector<Eigen::bfloat16> bf16{Eigen::bfloat16(3.0f)};
    static const std::vector<std::int8_t> i8{-1, 2, -3};
    static const std::vector<std::uint64_t> u64{UINT64_MAX};
    const std::vector<Tensor> tensors{
        tensor_over<std::int8_t>("small", {3}, i8),    tensor_over<Eigen::half>("half", {2, 1}, f16),
        tensor_over<float>("single", {1, 3}, f32),     tensor_over<Eigen::bfloat16>("brain", {}, bf16),
        tensor_over<double>("double", {2}, f64),       {"nothing", tensor_type::I16, {0, 5}, {}},
        tensor_over<std::uint64_t>("count", {1}, u64),
    };
    write_safetensors(folder / name, tensors, {{"zweites", "caf\xC3\xA9\n\t\""}, {"erstes", ""}});
    return folder / name;
}

} // namespace

TEST_CASE("headers that are refused, and what is said of each") {
    TemporaryFolder folder;
    for (const BadHeader& bad : bad_headers) {
        CAPTURE(bad.name);
        const auto path =
            folder.write("bad.safetensors", safetensors_bytes(bad.header, std::string(bad.data_size, 'x')));
        CHECK(message_of<parse_error>([&] { SafetensorsFile file(path); }) == path.string() + ": " + bad.message);
    }
}

TEST_CASE("sizes that are refused, and deep nesting") {
    TemporaryFolder folder;
    const auto message = [&](const std::string& bytes) {
        const auto path = folder.write("bad.safetensors", bytes);
        return message_of<parse_error>([&] { SafetensorsFile file(path); }).substr(path.string().size());
    };
    CHECK(message("") == ": not a safetensors file: 0 bytes are fewer than a header's length takes");
    CHECK(message("1234567") == ": not a safetensors file: 7 bytes are fewer than a header's length takes");
    CHECK(message(with_length("{}", "", 3)) == ": not a safetensors file: a header of 3 bytes in a file of 10");
    CHECK(message(with_length("{}", "", 100'000'001)) ==
          ": not a safetensors file: a header of 100000001 bytes, more than 100000000");
    CHECK(message(with_length("{}", "", UINT64_MAX)) ==
          ": not a safetensors file: a header of 18446744073709551615 bytes, more than 100000000");
    CHECK(message(with_length("{}", "", UINT64_MAX - 7)) == // plus eight it would be zero
          ": not a safetensors file: a header of 18446744073709551608 bytes, more than 100000000");
    CHECK(message(safetensors_bytes(std::string(1'000'000, '{'), "")) ==
          ": safetensors header: not valid JSON at byte 2");
    std::string nested = "{";
    for (int i = 0; i < 100'000; ++i) { nested += "\"a\":{"; }
    CHECK(message(safetensors_bytes(nested, "")) == ": safetensors header: tensor 'a': unknown member 'a'");
    CHECK(message(safetensors_bytes("{\"a\":" + std::string(1'000'000, '['), "")) ==
          ": safetensors header: tensor 'a': is an array, not an object");
    std::string wide = "[8";
    for (int i = 0; i < 63; ++i) { wide += ",1"; }
    CHECK_NOTHROW(
        SafetensorsFile(folder.write("64", safetensors_bytes(a(R"("U8")", wide + "]", "[0,8]"), "12345678"))));
    CHECK(message(safetensors_bytes(a(R"("U8")", wide + ",1]", "[0,8]"), "12345678")) ==
          ": safetensors header: tensor 'a': has more than 64 dimensions");
}

TEST_CASE("what the reference implementation accepts is accepted") {
    TemporaryFolder folder;
    const auto open = [&](const std::string& header, std::size_t size) {
        return SafetensorsFile(folder.write("good.safetensors", safetensors_bytes(header, std::string(size, 'x'))));
    };
    CHECK(open("{}", 0).tensors().empty());
    CHECK(open("{}      ", 0).tensors().empty());
    CHECK(open("{ \"__metadata__\" : { } }\n", 0).metadata().empty());
    CHECK(open(two("[4,8]", "[0,4]"), 8).tensors()[0].name == "y"); // by their bytes, not by the header's order
    CHECK(open(a(R"("F32")", "[]", "[0,4]"), 4).find("a")->shape.empty());
    CHECK(open(a(R"("F32")", "[0,18446744073709551615]", "[0,0]"), 0).find("a")->bytes.empty());
    CHECK(open(a(R"("F6_E2M3")", "[4]", "[0,3]"), 3).find("a")->type == tensor_type::F6_E2M3);
    CHECK(open(R"({"\u0061\u0000":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1)
              .find(std::string_view("a\0", 2)) != nullptr);
    const auto empties = open(
        R"({"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
        2);
    CHECK(empties.tensors()[0].name == "b");
    CHECK(empties.find("c") == nullptr);
    for (const auto& info : logitstat::detail::tensor_types) { // the table is in the order of the enum
        CHECK(to_string(info.type) == info.name);
        CHECK(element_bits(info.type) == info.bits);
        CHECK(logitstat::tensor_type_of(info.name) == info.type);
    }
}

TEST_CASE("what is written is read back, aligned, in place, also after a move") {
    TemporaryFolder folder;
    SafetensorsFile opened(write_sample(folder, "s.safetensors"));
    const SafetensorsFile file = std::move(opened);
    CHECK(broken(file) == "");
    CHECK(file.metadata() == logitstat::SafetensorsMetadata{{"zweites", "caf\xC3\xA9\n\t\""}, {"erstes", ""}});
    std::vector<std::string> order;
    for (const Tensor& tensor : file.tensors()) { order.push_back(tensor.name); }
    // By descending element size, then as given; the empty tensor lies where the one after it begins.
    CHECK(order == std::vector<std::string>{"double", "count", "single", "half", "brain", "nothing", "small"});
    for (const Tensor& tensor : file.tensors()) { CHECK(SafetensorsFile::is_aligned(tensor)); }
    CHECK(file.values<double>(*file.find("double"))[0] == 1.5);
    CHECK(std::signbit(file.values<double>(*file.find("double"))[1]));
    CHECK(file.values<float>(*file.find("single"))[2] == 3.0f);
    CHECK(static_cast<float>(file.values<Eigen::half>(*file.find("half"))[1]) == -2.0f);
    CHECK(static_cast<float>(file.values<Eigen::bfloat16>(*file.find("brain"))[0]) == 3.0f);
    CHECK(file.values<std::int8_t>(*file.find("small"))[2] == -3);
    CHECK(file.values<std::uint64_t>(*file.find("count"))[0] == UINT64_MAX);
    CHECK(file.values<std::int16_t>(*file.find("nothing")).empty());
    CHECK(file.find("single")->shape == std::vector<std::uint64_t>{1, 3});
    CHECK(message_of<parse_error>([&] { (void)file.values<std::int32_t>(*file.find("single")); }) ==
          (folder / "s.safetensors").string() + ": tensor 'single': is of type F32, not I32");

    const std::string bytes = content(folder / "s.safetensors");
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    CHECK((length + 8) % 64 == 0);
    CHECK(bytes[8] == '{');
    CHECK(folder.names() == std::set<std::string>{"s.safetensors"});
}

TEST_CASE("bytes that are not aligned are said to be so, not read") {
    TemporaryFolder folder;
    bool odd = false;
    for (std::size_t spaces = 0; spaces < 4; ++spaces) {
        const SafetensorsFile one(
            folder.write("odd", foreign_file({{"pad", "BOOL", {1}, "\1"}, {"x", "F32", {1}, "abcd"}}, "{}", spaces)));
        CHECK(one.values<std::uint8_t>(*one.find("pad"))[0] == 1);
        if (SafetensorsFile::is_aligned(*one.find("x"))) { continue; }
        odd = true;
        CHECK(message_of<parse_error>([&] { (void)one.values<float>(*one.find("x")); }) ==
              (folder / "odd").string() +
                  ": tensor 'x': its bytes are not aligned for its type and cannot be viewed in place");
    }
    CHECK(odd);
}

TEST_CASE("the writer refuses what no reader would take, and leaves nothing behind") {
    TemporaryFolder folder;
    const std::vector<float> x{1, 2};
    const auto refusal = [&](const std::vector<Tensor>& tensors, const logitstat::SafetensorsMetadata& metadata = {}) {
        const auto text =
            message_of<std::invalid_argument>([&] { write_safetensors(folder / "x", tensors, metadata); });
        CHECK(folder.names().empty());
        return text;
    };
    const Tensor good = tensor_over<float>("x", {2}, x);
    CHECK(refusal({tensor_over<float>("x", {3}, x)}) ==
          "safetensors: tensor 'x': 8 bytes do not fit its type and shape, which ask for 12");
    CHECK(refusal({tensor_over<float>("x", {1ull << 40, 1ull << 40}, x)}) ==
          "safetensors: tensor 'x': 8 bytes do not fit its type and shape");
    CHECK(refusal({good, good}) == "safetensors: tensor 'x': comes twice");
    CHECK(refusal({tensor_over<float>("__metadata__", {2}, x)}) ==
          "safetensors: tensor '__metadata__': the name is reserved");
    CHECK(refusal({tensor_over<float>("\xff", {2}, x)}) ==
          "safetensors: a tensor's name or a metadata string is not UTF-8");
    CHECK(refusal({good}, {{"k", "\xff"}}) == "safetensors: a tensor's name or a metadata string is not UTF-8");
    CHECK(refusal({good}, {{"k", "1"}, {"k", "1"}}) == "safetensors: metadata 'k': comes twice");
    CHECK(refusal({tensor_over<float>("x", std::vector<std::uint64_t>(65, 1), x)}) ==
          "safetensors: tensor 'x': too many dimensions");
    CHECK_THROWS_AS(write_safetensors(folder / "none" / "x", std::vector{good}), logitstat::io_error);
}

TEST_CASE("a file that is cut at any byte is refused, and one with a byte more") {
    TemporaryFolder folder;
    const std::string bytes = content(write_sample(folder, "s"));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CAPTURE(size);
        CHECK_THROWS_AS(SafetensorsFile(folder.write("cut", bytes.substr(0, size))), parse_error);
    }
    CHECK_THROWS_AS(SafetensorsFile(folder.write("more", bytes + '\0')), parse_error);
}

TEST_CASE("a damaged header is refused or describes the file") {
    TemporaryFolder folder;
    const std::string valid = content(write_sample(folder, "s"));
    std::uint64_t length = 0;
    std::memcpy(&length, valid.data(), 8);
    const std::vector<std::string> tokens{"0",     "1",       "18446744073709551615",
                                          "-1",    "1e3",     "{",
                                          "}",     "[",       "]",
                                          ",",     ":",       "\"",
                                          "null",  "F64",     "U8",
                                          "shape", "\\u0000", "\xff",
                                          " ",     "[0,8]",   std::string(1, '\0')};
    std::mt19937 random(77);
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    int refused = 0, read = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string header = valid.substr(8, length), data = valid.substr(8 + length);
        for (std::size_t rounds = 1 + below(2); rounds-- > 0 && !header.empty();) {
            const std::size_t at = below(header.find_last_of('}') + 1);
            switch (below(7)) {
            case 0: header[at] = static_cast<char>(random() & 255); break;
            case 1: header[at] = static_cast<char>(header[at] ^ (1 << below(8))); break;
            case 2: header.erase(at, 1 + below(4)); break;
            case 3: header.insert(at, tokens[below(tokens.size())]); break;
            case 4: header.replace(at, 1, tokens[below(tokens.size())]); break;
            case 5: // a digit, which is what offsets and shapes are made of
                if (const auto digit = header.find_first_of("0123456789", at); digit != header.npos) {
                    header[digit] = static_cast<char>('0' + below(10));
                }
                break;
            default: // a letter of a name or of the metadata: stays valid most of the time
                if (const auto letter = header.find_first_of("abcdeiouns", at); letter != header.npos) {
                    header[letter] = static_cast<char>('a' + below(26));
                }
            }
        }
        if (below(50) == 0) { data.resize(below(data.size() + 9)); }
        std::string bytes = safetensors_bytes(header, data);
        if (below(50) == 0) { bytes[below(8)] = static_cast<char>(random() & 255); }
        const auto path = folder.write("m", bytes);
        CAPTURE(i);
        CAPTURE(header);
        try {
            const SafetensorsFile file(path);
            CHECK(broken(file) == "");
            ++read;
        } catch (const parse_error& e) {
            CHECK(std::string_view(e.what()).starts_with(path.string() + ": "));
            ++refused;
        }
    }
    // Both happen, or the mutations show nothing.
    CHECK(refused > 5000);
    CHECK(read > 1000);
}

} // namespace test_safetensors

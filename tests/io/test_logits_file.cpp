#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/safetensors.hpp"

namespace test_logits_file {

using namespace testing;
using logitstat::LogitsFile;
using logitstat::LogitsOptions;
using logitstat::parse_error;
using logitstat::read_logits;
using logitstat::tensor_type;
using logitstat::token_id;
namespace fs = std::filesystem;

namespace {

static_assert(std::is_nothrow_move_constructible_v<LogitsFile> || std::is_move_constructible_v<LogitsFile>);
static_assert(!std::is_copy_constructible_v<LogitsFile>);

/// Every value, row after row, in its exact double.
std::vector<double> values_of(const LogitsFile& file) {
    return file.visit([&](auto rows) {
        static_assert(logitstat::logits_rows<decltype(rows)>);
        CHECK(rows.size() == file.size());
        CHECK(rows.vocabulary() == file.vocabulary());
        std::vector<double> values;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto row = rows.row(i);
            CHECK(row.size() == file.vocabulary());
            for (const auto value : row) { values.push_back(static_cast<double>(value)); }
        }
        return values;
    });
}
std::vector<token_id> targets_of(const LogitsFile& file) { return {file.targets().begin(), file.targets().end()}; }

const std::vector<double> six{1, -2.5, 0.125, 4, 96, -0.75}; // exact in every type

template <class T> std::string six_bytes() {
    std::vector<T> values;
    for (const double value : six) { values.push_back(static_cast<T>(value)); }
    return packed(values);
}

std::string refusal(const fs::path& path, const LogitsOptions& options = {}) {
    const std::string message = message_of<parse_error>([&] { read_logits(path, options); });
    CHECK(std::string_view(message).starts_with(path.string() + ": "));
    return message.substr(std::min(message.size(), path.string().size() + 2));
}
std::string refusal(const TemporaryFolder& folder, const std::vector<fs::path>& paths) {
    const std::string message = message_of<parse_error>([&] { read_logits(paths); });
    return replaced(message, folder.path().string() + "/", "");
}

/// A safetensors file, its data aligned at 64.
std::string tensors(const std::vector<ForeignTensor>& all) {
    const std::string bytes = foreign_file(all, "{}");
    std::size_t data = 0;
    for (const ForeignTensor& one : all) { data += one.data.size(); }
    return foreign_file(all, "{}", 64 - (bytes.size() - data) % 64);
}

} // namespace

TEST_CASE("all formats and types, told apart by their content") {
    TemporaryFolder folder;
    const auto check = [&](const std::string& bytes, tensor_type type) {
        LogitsFile opened = read_logits(folder.write("file", bytes));
        const LogitsFile file = std::move(opened);
        CHECK(file.element_type() == type);
        CHECK(file.name() == (folder / "file").string());
        CHECK(file.size() == 2);
        CHECK(file.vocabulary() == 3);
        CHECK(file.targets().empty());
        CHECK(file.kld() == nullptr);
        CHECK(values_of(file) == six);
    };
    for (const std::string shape : {"(2, 3)", "(1, 2, 3)", "(2, 1, 3)"}) {
        check(npy("<f2", shape, six_bytes<Eigen::half>()), tensor_type::F16);
        check(npy("<f4", shape, six_bytes<float>(), 2), tensor_type::F32);
        check(npy("<f8", shape, six_bytes<double>(), 3), tensor_type::F64);
    }
    for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{2, 3}, {1, 2, 3}, {2, 1, 3}}) {
        check(tensors({{"l", "F16", shape, six_bytes<Eigen::half>()}}), tensor_type::F16);
        check(tensors({{"l", "BF16", shape, six_bytes<Eigen::bfloat16>()}}), tensor_type::BF16);
        check(tensors({{"l", "F32", shape, six_bytes<float>()}}), tensor_type::F32);
        check(tensors({{"l", "F64", shape, six_bytes<double>()}}), tensor_type::F64);
    }
    LogitsFile opened = read_logits(folder.write("file", small_kld()));
    const LogitsFile kld = std::move(opened);
    CHECK(kld.element_type() == tensor_type::F32);
    CHECK(kld.size() == 4);
    CHECK(targets_of(kld) == std::vector<token_id>{1, 0, 0, 1});
    REQUIRE(kld.kld() != nullptr);
    CHECK(kld.kld()->is_censored(0));
    const auto values = values_of(kld);
    REQUIRE(values.size() == 12);
    CHECK(values[1] == -7.0);
    CHECK(values[6] == -1.0986123f);
}

TEST_CASE("rows in place, and only as what they are") {
    TemporaryFolder folder;
    const LogitsFile file = read_logits(folder.write("x.npy", npy("<f4", "(2, 3)", six_bytes<float>())));
    CHECK(file.rows<float>().shards().size() == 1);
    CHECK(file.rows<float>().row(1)[1] == 96.0f);
    CHECK(reinterpret_cast<std::uintptr_t>(file.rows<float>().row(0).data()) % 64 == 0);
    CHECK(message_of<std::invalid_argument>([&] { file.rows<double>(); }) ==
          file.name() + ": its rows are not stored as F64");
    const LogitsFile kld = read_logits(folder.write("x.kld", small_kld()));
    CHECK(message_of<std::invalid_argument>([&] { kld.rows<float>(); }) ==
          kld.name() + ": its rows are not stored as F32");
}

TEST_CASE("files that hold no logits") {
    TemporaryFolder folder;
    const auto of = [&](const std::string& bytes) { return refusal(folder.write("bad", bytes)); };
    CHECK(of("") == "the file is empty");
    CHECK(of(tsv(rows)) == "no file of logits (.npy, safetensors, or llama.cpp's base log-probabilities, .kld): the "
                           "file begins '0\\x090\\x095\\x091....'");
    CHECK(of("\x93NUMP") == "no file of logits (.npy, safetensors, or llama.cpp's base log-probabilities, .kld): the "
                            "file begins '\\x93NUMP'");
    const std::string must_be = " cannot be logits, which are F16, BF16, F32 or F64 of shape [n, V] or [batch, n, V]";
    CHECK(of(npy("<i4", "(2, 3)", six_bytes<std::int32_t>())) == "I32 [2, 3]" + must_be);
    CHECK(of(npy("<f4", "(6,)", six_bytes<float>())) == "F32 [6]" + must_be);
    CHECK(of(npy("<f4", "()", "1234")) == "F32 []" + must_be);
    CHECK(of(npy("<f4", "(1, 1, 2, 3)", six_bytes<float>())) == "F32 [1, 1, 2, 3]" + must_be);
    CHECK(of(npy("<f4", "(0, 3)", "")) == "F32 [0, 3] holds no logits");
    CHECK(of(npy("<f4", "(3, 0)", "")) == "F32 [3, 0] holds no logits");
    CHECK(of(npy("<f4", "(2, 0, 3)", "")) == "F32 [2, 0, 3] holds no logits");
    // The readers' own complaints come through.
    CHECK(of(npy("<f4", "(2, 4)", six_bytes<float>())) ==
          "npy: shape [2, 4] of <f4 asks for 32 bytes, the file holds 24: it was cut");
    CHECK(of(small_kld() + "x") == "kld: 1 bytes more than its header asks for");
    CHECK(of(with_length("{", "", 8)) == "not a safetensors file: a header of 8 bytes in a file of 9");
    CHECK(message_of<logitstat::io_error>([&] { read_logits(folder / "none"); }) ==
          (folder / "none").string() + ": cannot open: No such file or directory");
}

TEST_CASE("bytes that are not aligned are said to be so, not read") {
    TemporaryFolder folder;
    const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
    for (std::size_t spaces = 0; spaces < 4; ++spaces) {
        const auto path = folder.write("odd", npy_with_header(header + std::string(spaces, ' '), six_bytes<float>()));
        if ((10 + header.size() + spaces) % 4 == 0) {
            CHECK(values_of(read_logits(path)) == six);
        } else {
            CHECK(refusal(path) ==
                  "its bytes are not aligned for its type and cannot be viewed in place: rewrite the file with a "
                  "writer that aligns them, as numpy and safetensors do");
        }
    }
}

TEST_CASE("which tensor of a safetensors file") {
    TemporaryFolder folder;
    const ForeignTensor a{"a", "F32", {2, 3}, six_bytes<float>()}, b{"b", "F32", {3, 2}, six_bytes<float>()},
        v{"v", "F32", {6}, six_bytes<float>()}, ids{"ids", "I32", {2, 3}, six_bytes<std::int32_t>()};
    CHECK(read_logits(folder.write("1", tensors({v, ids, a}))).vocabulary() == 3);
    CHECK(read_logits(folder.write("2", tensors({a, b})), {.tensor = "b"}).vocabulary() == 2);
    CHECK(refusal(folder / "2") == "several tensors could be the logits, name one: 'a' F32 [2, 3], 'b' F32 [3, 2]");
    CHECK(refusal(folder / "2", {.tensor = "c"}) == "has no tensor 'c'; it holds 'a' F32 [2, 3], 'b' F32 [3, 2]");
    CHECK(refusal(folder.write("3", tensors({v, ids}))) ==
          "has no tensor that could be the logits; it holds 'v' F32 [6], 'ids' I32 [2, 3]");
    CHECK(refusal(folder / "3", {.tensor = "v"}) ==
          "tensor 'v': F32 [6] cannot be logits, which are F16, BF16, F32 or F64 of shape [n, V] or [batch, n, V]");
    CHECK(refusal(folder.write("4", tensors({}))) == "has no tensor that could be the logits; it holds nothing");
    std::vector<ForeignTensor> many;
    for (int i = 0; i < 20; ++i) { many.push_back({"w" + std::to_string(i), "F32", {2, 3}, six_bytes<float>()}); }
    CHECK(refusal(folder.write("5", tensors(many))).ends_with("'w7' F32 [2, 3] and 12 more"));
}

TEST_CASE("targets beside the logits") {
    TemporaryFolder folder;
    const ForeignTensor logits{"logits", "F32", {2, 3}, six_bytes<float>()};
    const auto with = [&](const std::string& name, const std::string& dtype, std::vector<std::size_t> shape,
                          const std::string& data) {
        return folder.write("x", tensors({logits, {name, dtype, std::move(shape), data}}));
    };
    CHECK(targets_of(read_logits(with("targets", "I64", {2}, packed<std::int64_t>({2, 0})))) ==
          std::vector<token_id>{2, 0});
    CHECK(targets_of(read_logits(with("target", "U8", {1, 2}, "\1\2"))) == std::vector<token_id>{1, 2});
    CHECK(read_logits(with("labels", "U8", {2}, "\1\2")).targets().empty());
    CHECK(refusal(with("targets", "U8", {3}, "\1\2\1")) == "3 targets for 2 rows of logits");
    CHECK(refusal(with("targets", "U8", {2}, "\1\3")) == "target 3 at position 1 is not below the vocabulary of 3");
    CHECK(refusal(with("targets", "I8", {2}, "\1\xff")) == "tensor 'targets': -1 at position 1 is no token id");
    CHECK(refusal(with("targets", "F32", {2}, "12345678")) ==
          "tensor 'targets': F32 [2] cannot be targets, which are integers [n] or [batch, n]");
}

TEST_CASE("shards: rows follow in the order of the list") {
    TemporaryFolder folder;
    const std::vector<fs::path> two{folder.write("b", npy("<f4", "(2, 3)", six_bytes<float>())),
                                    folder.write("a", tensors({{"x", "F32", {1, 1, 3}, packed<float>({7, 8, 9})}}))};
    LogitsFile opened = read_logits(two);
    const LogitsFile file = std::move(opened);
    CHECK(file.size() == 3);
    CHECK(file.name() == two[0].string());
    std::vector<double> expected = six;
    expected.insert(expected.end(), {7, 8, 9});
    CHECK(values_of(file) == expected);
    CHECK(values_of(read_logits(std::span(two).first(1))) == six);
    const std::array reversed{two[1], two[0]};
    CHECK(values_of(read_logits(reversed))[0] == 7);

    const auto f8 = folder.write("f8", npy("<f8", "(2, 3)", six_bytes<double>()));
    const auto wide = folder.write("wide", npy("<f4", "(1, 6)", six_bytes<float>()));
    const auto kld = folder.write("kld", small_kld());
    CHECK(refusal(folder, {two[0], f8}) == "f8: logits of type F64, but b has F32");
    CHECK(refusal(folder, {two[0], two[1], wide}) == "wide: a vocabulary of 6, but b has 3");
    CHECK(refusal(folder, {two[0], kld}) == "kld: a .kld file is whole: it cannot be one of several shards");
    CHECK(refusal(folder, {kld, kld}) == "kld: a .kld file is whole: it cannot be one of several shards");
    CHECK(refusal(folder, {two[0], folder.write("no", "no")}).starts_with("no: no file of logits"));
    CHECK(message_of<std::invalid_argument>([] { read_logits(std::span<const fs::path>()); }) ==
          "logits: no file given");

    const ForeignTensor logits{"logits", "F32", {2, 3}, six_bytes<float>()};
    const auto first = folder.write("t1", tensors({logits, {"targets", "U8", {2}, "\1\2"}}));
    const auto second = folder.write("t2", tensors({{"targets", "I32", {2}, packed<std::int32_t>({0, 1})}, logits}));
    CHECK(targets_of(read_logits(std::array{first, second})) == std::vector<token_id>{1, 2, 0, 1});
    CHECK(refusal(folder, {first, two[0]}) == "b: no tensor of targets, but t1 has one");
    CHECK(refusal(folder, {two[0], first}) == "t1: a tensor of targets, but b has none");
}

TEST_CASE("a file of logits cut at any byte is refused") {
    TemporaryFolder folder;
    for (const std::string& bytes : {npy("<f2", "(2, 3)", six_bytes<Eigen::half>()), small_kld(),
                                     tensors({{"l", "BF16", {2, 3}, six_bytes<Eigen::bfloat16>()}})}) {
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CAPTURE(size);
            CHECK_THROWS_AS(read_logits(folder.write("cut", bytes.substr(0, size))), parse_error);
        }
        CHECK_NOTHROW(read_logits(folder.write("whole", bytes)));
    }
}

TEST_CASE("damaged files are refused or are rows of logits") {
    TemporaryFolder folder;
    std::mt19937 random(17);
    const std::vector<std::string> whole{
        npy("<f4", "(2, 3)", six_bytes<float>()), small_kld(),
        tensors({{"l", "F32", {2, 3}, six_bytes<float>()}, {"targets", "U8", {2}, "\1\2"}})};
    int refused = 0, read = 0;
    for (int i = 0; i < 9000; ++i) {
        std::string bytes = whole[static_cast<std::size_t>(i) % whole.size()];
        for (std::size_t rounds = 1 + random() % 2; rounds-- > 0;) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 4) {
            case 0: bytes[at] = static_cast<char>(random() & 255); break;
            case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
            case 2: bytes[at] = static_cast<char>('0' + random() % 10); break;
            default: bytes.insert(at, 1, ' ');
            }
        }
        const auto path = folder.write("m", bytes);
        CAPTURE(i);
        try {
            const LogitsFile file = read_logits(path);
            CHECK(file.size() > 0);
            CHECK(file.size() * file.vocabulary() <= bytes.size());
            for (const token_id target : file.targets()) {
                CHECK(target >= 0);
                CHECK(static_cast<std::size_t>(target) < file.vocabulary());
            }
            const auto values = values_of(file); // a row of a .kld file may be refused as late as this
            CHECK(values.size() == file.size() * file.vocabulary());
            ++read;
        } catch (const parse_error& e) {
            CHECK(std::string_view(e.what()).starts_with(path.string() + ": "));
            ++refused;
        }
    }
    CHECK(refused > 3000);
    CHECK(read > 800);
}

} // namespace test_logits_file

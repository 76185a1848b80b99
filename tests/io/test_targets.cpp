#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/targets.hpp"

namespace test_targets {

using namespace testing;
using logitstat::check_targets;
using logitstat::parse_error;
using logitstat::read_targets;
using logitstat::token_id;

namespace {

using Tokens = logitstat::Column<token_id>;

std::string refusal(const std::filesystem::path& path, const std::string& tensor = "") {
    const std::string message = message_of<parse_error>([&] { read_targets(path, tensor); });
    CHECK(std::string_view(message).starts_with(path.string() + ":"));
    return message.substr(std::min(message.size(), path.string().size() + 2));
}

} // namespace

TEST_CASE_TEMPLATE("targets of any integer type", T, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
    TemporaryFolder folder;
    const Tokens expected{5, 0, 127, 1};
    const std::string data = packed<T>({5, 0, 127, 1});
    const std::string letter = std::is_signed_v<T> ? "i" : "u";
    const std::string descr = (sizeof(T) == 1 ? "|" : "<") + letter + std::to_string(sizeof(T));
    CHECK(read_targets(folder.write("x", npy(descr, "(4,)", data))) == expected);
    CHECK(read_targets(folder.write("x", npy(descr, "(2, 2)", data))) == expected);
    const std::string dtype = (std::is_signed_v<T> ? "I" : "U") + std::to_string(8 * sizeof(T));
    for (std::size_t spaces = 0; spaces < 8; ++spaces) { // aligned or not
        CHECK(read_targets(folder.write("x", foreign_file({{"t", dtype, {4}, data}}, "{}", spaces))) == expected);
    }
    // What int32 does not hold.
    if constexpr (sizeof(T) >= 4 && !std::is_same_v<T, std::int32_t>) {
        CHECK(refusal(folder.write("x", npy(descr, "(2,)", packed<T>({1, T(2147483648u)})))) ==
              "2147483648 at position 1 is no token id");
        CHECK(read_targets(folder.write("x", npy(descr, "(1,)", packed<T>({2147483647})))) == Tokens{2147483647});
    }
    if constexpr (std::is_signed_v<T>) { // the padding of many data loaders
        CHECK(refusal(folder.write("x", npy(descr, "(2,)", packed<T>({1, -100})))) ==
              "-100 at position 1 is no token id");
    }
}

TEST_CASE("targets of a trace and of a .kld file") {
    TemporaryFolder folder;
    const auto trace = logitstat::parse_text_trace(tsv(rows), "t");
    CHECK(read_targets(folder.write("t.tsv", tsv(rows))) == trace.target);
    logitstat::write_binary_trace(folder / "t.safetensors", trace);
    CHECK(read_targets(folder / "t.safetensors") == trace.target);
    CHECK(read_targets(folder.write("x.kld", small_kld())) == Tokens{1, 0, 0, 1});
    // A binary trace is checked as one; a tensor that is asked for by name is just a tensor.
    std::string bytes = content(folder / "t.safetensors");
    const std::size_t nll = bytes.size() - 4; // in the last column, whichever it is
    bytes[nll + 3] = '\xff';
    folder.write("bad.safetensors", bytes);
    CHECK(contains(refusal(folder / "bad.safetensors"), "tensor '"));
    CHECK(read_targets(folder / "t.safetensors", "target") == trace.target);
    CHECK(read_targets(folder / "t.safetensors", "pos") == trace.pos);
}

TEST_CASE("which tensor of a safetensors file") {
    TemporaryFolder folder;
    const ForeignTensor a{"a", "U8", {2}, "\1\2"}, b{"b", "U8", {2}, "\3\4"}, target{"target", "U8", {2}, "\5\6"},
        targets{"targets", "U8", {2}, "\7\x8"}, real{"real", "F32", {1}, "1234"}, cube{"cube", "U8", {1, 2, 1}, "\1\2"};
    const auto write = [&](const std::vector<ForeignTensor>& all) {
        return folder.write("x", foreign_file(all, "{}"));
    };
    CHECK(read_targets(write({real, a, cube})) == Tokens{1, 2});
    CHECK(read_targets(write({a, b, targets})) == Tokens{7, 8});
    CHECK(read_targets(write({a, targets, target})) == Tokens{5, 6});
    CHECK(read_targets(write({a, targets, b}), "b") == Tokens{3, 4});
    CHECK(refusal(write({a, b, real})) == "several tensors could be the targets, name one: 'a' U8 [2], 'b' U8 [2]");
    CHECK(refusal(write({real, cube})) ==
          "has no tensor that could be the targets; it holds 'real' F32 [1], 'cube' U8 [1, 2, 1]");
    CHECK(refusal(write({a}), "c") == "has no tensor 'c'; it holds 'a' U8 [2]");
    CHECK(refusal(write({a, cube}), "cube") ==
          "tensor 'cube': U8 [1, 2, 1] cannot be targets, which are integers [n] or [batch, n]");
}

TEST_CASE("files that hold no targets, and targets that do not fit") {
    TemporaryFolder folder;
    const auto of = [&](const std::string& bytes) { return refusal(folder.write("bad", bytes)); };
    CHECK(of(npy("<f4", "(1,)", "1234")) == "F32 [1] cannot be targets, which are integers [n] or [batch, n]");
    CHECK(of(npy("|b1", "(2,)", "\1\1")) == "BOOL [2] cannot be targets, which are integers [n] or [batch, n]");
    CHECK(of(npy("|u1", "()", "1")) == "U8 [] cannot be targets, which are integers [n] or [batch, n]");
    CHECK(of(std::string("\x1f\x8b\x08\0\0", 5)) ==
          "no file of targets (.npy, safetensors, a trace, .kld): control byte at offset 0, the file begins "
          "'\\x1f\\x8b\\x08\\x00\\x00'");
    CHECK(of("") == "the file is empty");
    CHECK(of("5\n6\n") != "");
    CHECK(read_targets(folder.write("none", npy("<i4", "(0,)", ""))).empty());

    const Tokens targets{0, 2, 1};
    CHECK_NOTHROW(check_targets(targets, 3, 3, "t"));
    CHECK(message_of<parse_error>([&] { check_targets(targets, 4, 3, "t"); }) == "t: 3 targets for 4 rows of logits");
    CHECK(message_of<parse_error>([&] { check_targets(targets, 3, 2, "t"); }) ==
          "t: target 2 at position 1 is not below the vocabulary of 2");
    const Tokens negative{0, -1};
    CHECK(message_of<parse_error>([&] { check_targets(negative, 2, SIZE_MAX, "t"); }) ==
          "t: target -1 at position 1 is not below the vocabulary of 18446744073709551615");
}

} // namespace test_targets

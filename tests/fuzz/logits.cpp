#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/fuzz_file.hpp"
#include "fuzz/target.hpp"
#include "io/logits_bytes.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/decoded_kld.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/logits_positions.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/targets.hpp"
#include "logitstat/simd/columns.hpp"

namespace {

using namespace logitstat;
using testing::npy;
using testing::packed;

/// Calls `action`; an error of the data must name the file.
template <class Action> void attempt(const std::string& name, const Action& action) {
    try {
        action();
    } catch (const parse_error& refused) {
        fuzz::require(refused.path() == name, "an error names the file");
        fuzz::require(std::string_view(refused.what()).starts_with(name), "an error begins with the file's name");
    }
}

/// Reads every byte of a tensor, and its elements where they can be viewed.
void check_tensor(const Tensor& tensor) {
    const auto bytes = byte_count(tensor.type, tensor.shape);
    fuzz::require(bytes && *bytes == tensor.bytes.size(), "a tensor has the bytes that its type and shape ask for");
    std::size_t sum = 0;
    for (const std::byte byte : tensor.bytes) { sum += static_cast<std::size_t>(byte); }
    fuzz::use(sum);
}

/// The positions that a file says: of columns that fit each other.
void check_positions_columns(const LogitsPositions& positions) {
    const std::size_t n = (std::max)(positions.target.size(), positions.chunk.size());
    fuzz::require(positions.target.empty() || positions.target.size() == n, "there are as many targets as positions");
    fuzz::require(positions.chunk.size() == positions.pos.size(), "chunk and pos come together");
    fuzz::require(positions.chunk.empty() || positions.chunk.size() == n, "there are as many chunks as positions");
    fuzz::require(positions.censored.empty() || positions.censored.size() == n, "there are as many marks as positions");
    for (const token_id target : positions.target) { fuzz::require(target >= 0, "no target is negative"); }
    for (std::size_t i = 0; i < positions.chunk.size(); ++i) {
        fuzz::require(positions.chunk[i] >= 0 && positions.pos[i] >= 0, "no chunk and no pos is negative");
        if (i > 0) {
            fuzz::require(std::pair(positions.chunk[i - 1], positions.pos[i - 1]) <
                              std::pair(positions.chunk[i], positions.pos[i]),
                          "chunk and pos increase");
        }
    }
    for (const auto mark : positions.censored) {
        fuzz::require(mark <= logitstat::censored_somewhere, "a mark is one of the marks");
    }
}

/// As a file of logits of whatever format: all rows, all targets.
void read_as_logits(const std::filesystem::path& path) {
    attempt(path.string(), [&] {
        LogitsFile file = read_logits(path);
        fuzz::require(file.size() > 0 && file.vocabulary() > 0, "a file of logits holds logits");
        fuzz::require(file.targets().empty() || file.targets().size() == file.size(), "there is a target a row");
        for (const token_id target : file.targets()) {
            fuzz::require(target >= 0 && std::cmp_less(target, file.vocabulary()), "a target is in the vocabulary");
        }
        check_positions_columns(positions_of(file));
        file.visit([&](auto rows) {
            fuzz::require(rows.size() == file.size() && rows.vocabulary() == file.vocabulary(), "the rows are all");
            double sum = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const auto row = rows.row(i);
                fuzz::require(row.size() == file.vocabulary(), "a row has a value a token");
                for (const auto value : row) { sum += static_cast<double>(value); }
                file.release_before(i + 1);
            }
            fuzz::use(sum);
        });
    });
}

// ---- .npy
// --------------------------------------------------------------------------------------------------------------

void read_npy(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    attempt(path.string(), [&] { check_tensor(NpyFile(path).tensor()); });
    read_as_logits(path);
}

std::string floats(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) { values[i] = 0.25f * static_cast<float>(i % 7) - 1; }
    return packed(values);
}

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (; times > 0; --times) { all += text; }
    return all;
}

std::vector<std::string> npy_seeds() {
    const std::string reordered = "{\"shape\": (2L, 3L), \"fortran_order\": False, \"descr\": \"<f4\"}";
    return {npy("<f4", "(2, 3)", floats(6)),
            npy("<f4", "(2, 2, 3)", floats(12), 2),
            npy("<f8", "(1, 3)", floats(6), 3),
            npy("<f2", "(2, 3)", floats(3)),
            npy("<i4", "(3,)", packed(std::vector<std::int32_t>{1, 2, 3})),
            npy("<i8", "(3, 1)", packed(std::vector<std::int64_t>{1, 2, 3})),
            npy("|u1", "()", "x"),
            npy("|b1", "(0, 5)", ""),
            npy(">f4", "(2, 3)", floats(6)),
            npy("<f4", "(4294967296, 4294967296)", floats(6)),
            npy("<f4", "(0, 4294967296)", ""),
            npy("<f4", "(" + repeated("1, ", 65) + ")", floats(1)),
            testing::npy_with_header(reordered, floats(6)),
            testing::npy_with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", floats(6))};
}

// ---- safetensors
// -------------------------------------------------------------------------------------------------------

/// Reads a tensor's values in its own type, as Eigen and integers have them.
void sum_values(const SafetensorsFile& file, const Tensor& tensor) {
    const auto sum = [&]<class T>(T) {
        if (!SafetensorsFile::is_aligned(tensor)) { return; }
        double total = 0;
        for (const T value : file.values<T>(tensor)) { total += static_cast<double>(value); }
        fuzz::use(total);
    };
    switch (tensor.type) {
    case tensor_type::F64: sum(double{}); break;
    case tensor_type::F32: sum(float{}); break;
    case tensor_type::F16: sum(Eigen::half{}); break;
    case tensor_type::BF16: sum(Eigen::bfloat16{}); break;
    case tensor_type::I64: sum(std::int64_t{}); break;
    case tensor_type::U16: sum(std::uint16_t{}); break;
    case tensor_type::BOOL: sum(std::uint8_t{}); break;
    default: attempt(file.name(), [&] { fuzz::use(file.values<float>(tensor).size()); });
    }
}

void read_safetensors(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    attempt(path.string(), [&] {
        const SafetensorsFile file(path);
        for (const Tensor& tensor : file.tensors()) {
            check_tensor(tensor);
            fuzz::require(file.find(tensor.name) == &tensor, "a tensor is found by its name");
            sum_values(file, tensor);
        }
        // What is read can be written, and is then the same but for the order of the tensors.
        const std::string again =
            fuzz::written_by([&](const auto& to) { write_safetensors(to, file.tensors(), file.metadata()); });
        const auto copy_path = fuzz::file_of<1>(again);
        const SafetensorsFile copy(copy_path);
        fuzz::require(copy.metadata() == file.metadata(), "metadata are read as they were written");
        fuzz::require(copy.tensors().size() == file.tensors().size(), "as many tensors are read as were written");
        for (const Tensor& tensor : file.tensors()) {
            const Tensor* const found = copy.find(tensor.name);
            fuzz::require(found != nullptr && found->type == tensor.type && found->shape == tensor.shape &&
                              std::ranges::equal(found->bytes, tensor.bytes),
                          "a tensor is read as it was written");
            fuzz::require(SafetensorsFile::is_aligned(*found), "a tensor that was written is aligned");
        }
    });
    read_as_logits(path);
}

std::vector<std::string> safetensors_seeds() {
    static const std::vector<float> values{1, 2, 3, -1, 0.5f, 0.25f};
    static const std::vector<double> wide{1, 2, 3, 4};
    static const std::vector<std::int64_t> targets{2, 0};
    static const std::vector<std::uint16_t> half{0x3C00, 0, 0x7C00, 0x8000};
    const auto file = [](std::vector<Tensor> tensors, const SafetensorsMetadata& metadata = {}) {
        return fuzz::written_by([&](const auto& to) { write_safetensors(to, tensors, metadata); });
    };
    const auto span = [](const auto& from) { return std::span(from); };
    Tensor of_half = tensor_over<std::uint16_t>("h", {2, 2}, span(half)), brain = of_half, packed_bits = of_half;
    of_half.type = tensor_type::F16;
    brain.type = tensor_type::BF16;
    packed_bits.type = tensor_type::F4;
    packed_bits.shape = {16};
    const Tensor logits = tensor_over<float>("logits", {2, 3}, span(values));
    const Tensor of_targets = tensor_over<std::int64_t>("targets", {2}, span(targets));
    const auto header = [](const std::string& text) { return testing::safetensors_bytes(text, "abcd"); };
    const auto entry = [&](const std::string& shape, const std::string& offsets) {
        return header(R"({"x": {"dtype": "F32", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}");
    };
    return {file({logits}),
            file({logits, tensor_over<float>("targets", {3}, span(values).first(3))}),
            file({logits}, {{"format", "logitstat-trace"}}),
            header("null"),
            header("[1]"),
            header(R"({"__metadata__": {"a": null}})"),
            header(R"({"__metadata__": [true]})"),
            entry("null", "[0, 4]"),
            entry("[true]", "[0, 4]"),
            entry("[1]", "{}"),
            entry("[" + repeated("1, ", 64) + "1]", "[0, 4]"),
            entry("[0, 4294967296]", "[0, 0]"),
            file({logits, of_targets}, {{"format", "pt"}, {"k\"\\", "\xC3\xBC"}}),
            file({tensor_over<float>("x", {1, 2, 3}, span(values)), of_half}),
            file({tensor_over<double>("d", {2, 2}, span(wide))}),
            file({of_half}),
            file({brain}),
            file({packed_bits, {"scalar", tensor_type::BOOL, {}, std::as_bytes(span(targets)).first(1)}}),
            file({{"empty", tensor_type::I8, {0, 4}, {}}})};
}

// ---- .kld
// --------------------------------------------------------------------------------------------------------------

void read_kld(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    attempt(path.string(), [&] {
        const KldFile file(path);
        fuzz::require(file.size() == file.chunks() * file.rows_per_chunk(), "the rows of all chunks");
        fuzz::require(file.tokens().size() == file.chunks() * file.chunk_tokens(), "the tokens of all chunks");
        fuzz::require(file.row_offset(file.size()) == bytes.size(), "the last row ends with the file");
        for (std::size_t i = 0; i < file.size(); ++i) {
            fuzz::require(file.chunk(i) < file.chunks() && file.pos(i) + 1 < file.chunk_tokens(), "a position exists");
            fuzz::require(file.targets()[i] == file.tokens()[file.chunk(i) * file.chunk_tokens() + file.pos(i) + 1],
                          "the target is the next token");
        }
        DecodedKld decoded(file);
        for (std::size_t i = 0; i < file.size(); ++i) {
            attempt(path.string(), [&] {
                const KldRow row = file.row(i);
                const auto values = decoded.row(i);
                for (std::size_t token = 0; token < values.size(); ++token) {
                    fuzz::require(simd::is_finite(values[token]) && values[token] < 0.01f,
                                  "log p is finite and below 0");
                    fuzz::require(row.log_prob<float>(token) == values[token], "both ways of decoding agree");
                }
                fuzz::use(file.is_censored(i));
            });
        }
    });
    read_as_logits(path);
}

std::vector<std::string> kld_seeds() {
    const testing::KldRowBytes even{0.0002f, -13.2f, {0, 65535, 7, 9}}, tie{0, -1.3862944f, {0, 0, 0, 0}};
    return {testing::small_kld(), testing::kld(3, 4, 1, {0, 1, 3}, {even}),
            testing::kld(4, 4, 2, {0, 1, 3, 2, 0, 0, 0, 0}, {even, tie}),
            testing::kld(2147483647, 2147483647, 2147483647, {1, 2}, {}), testing::small_kld().substr(0, 80)};
}

// ---- targets
// -----------------------------------------------------------------------------------------------------------

void read_targets_file(std::string_view bytes) {
    const auto path = fuzz::file_of(bytes);
    attempt(path.string(), [&] {
        const LogitsPositions positions = read_positions(path);
        check_positions_columns(positions);
        fuzz::require(read_targets(path) == positions.target, "the targets alone are the same");
    });
    attempt(path.string(), [&] { fuzz::use(read_targets(path, "targets").size()); });
}

std::vector<std::string> targets_seeds() {
    const std::string rows = "0\t0\t5\t1.250000\t7,8\t3.500000,2.500000\n0\t1\t6\t0.500000\t4,3\t9.000000,8.000000\n";
    std::vector<std::string> all = npy_seeds();
    for (const auto& more : {safetensors_seeds(), kld_seeds()}) { all.insert(all.end(), more.begin(), more.end()); }
    all.push_back("# model\tx\n" + rows);
    const auto trace = parse_text_trace<double>(rows, "seed");
    all.push_back(fuzz::written_by([&](const auto& to) { write_binary_trace(to, trace); }));
    return all;
}

} // namespace

std::vector<fuzz::Target> fuzz::logits_targets() {
    return {{"npy", read_npy, npy_seeds},
            {"safetensors", read_safetensors, safetensors_seeds},
            {"kld", read_kld, kld_seeds},
            {"targets", read_targets_file, targets_seeds}};
}

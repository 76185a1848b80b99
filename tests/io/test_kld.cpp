#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/logits_bytes.hpp"
#include "logitstat/io/decoded_kld.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/logits/logits_view.hpp"

namespace test_kld {

using namespace testing;
using logitstat::DecodedKld;
using logitstat::KldFile;
using logitstat::KldRow;
using logitstat::parse_error;
using logitstat::token_id;

namespace {

static_assert(logitstat::logits_rows<DecodedKld>);

const std::string good = small_kld();
constexpr std::size_t rows_begin = 20 + 4 * 10, row_bytes = 8 + 2 * 4;

template <class T> std::string changed(std::string bytes, std::size_t at, T value) {
    REQUIRE(at + sizeof value <= bytes.size());
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
}

/// What the reader says of these bytes, after the path: at opening, or of row 1.
std::string refusal(const std::string& bytes) {
    TemporaryFolder folder;
    const auto path = folder.write("bad.kld", bytes);
    const std::string message = message_of<parse_error>([&] { (void)KldFile(path).row(1); });
    CHECK(std::string_view(message).starts_with(path.string() + ": kld: "));
    return message.substr(std::min(message.size(), path.string().size() + 7));
}

std::vector<token_id> copy(std::span<const token_id> values) { return {values.begin(), values.end()}; }

/// The whole chunks in this many bytes of the small file, by counting upwards.
int whole_chunks(std::size_t size) {
    int chunks = 0;
    while (rows_begin + static_cast<std::size_t>(chunks + 1) * 2 * row_bytes <= size) { ++chunks; }
    return chunks;
}

} // namespace

TEST_CASE("kld: rows that are no distribution are refused") {
    TemporaryFolder folder;
    const auto row_of = [&](float scale, float min, std::vector<std::uint16_t> q) {
        const auto path = folder.write("x.kld", kld(3, 3, 1, {0, 1, 2}, {{scale, min, std::move(q)}}));
        const logitstat::KldFile file(path);
        file.row(0);
    };
    row_of(0, -1.0986123f, {0, 0, 0});
    row_of(0.0001f, -7.0f, {65535, 0, 100});
    const std::pair<float, float> wrong[] = {{0.f, 0.f}, {0.f, -50.f}, {0.f, -1e30f}, {1e-6f, -0.5f}, {0.0001f, -20.f}};
    for (const std::pair<float, float>& row : wrong) {
        CAPTURE(row.second);
        const std::string message = message_of<parse_error>([&] { row_of(row.first, row.second, {65535, 0, 100}); });
        CHECK(contains(message, "they are no distribution over 3 tokens"));
    }
}

TEST_CASE("header, tokens, positions, targets and rows") {
    TemporaryFolder folder;
    KldFile opened(folder.write("x.kld", good));
    const KldFile file = std::move(opened);
    CHECK(file.size() == 4);
    CHECK(file.vocabulary() == 3);
    CHECK(file.chunks() == 2);
    CHECK(file.chunk_tokens() == 5);
    CHECK(file.rows_per_chunk() == 2);
    CHECK(copy(file.tokens()) == std::vector<token_id>{0, 1, 2, 1, 0, 2, 2, 1, 0, 1});
    CHECK(copy(file.targets()) == std::vector<token_id>{1, 0, 0, 1}); // positions 2 and 3 predict tokens 3 and 4
    const std::size_t chunk[] = {0, 0, 1, 1}, pos[] = {2, 3, 2, 3};
    const bool censored[] = {true, false, true, false};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(file.chunk(i) == chunk[i]);
        CHECK(file.pos(i) == pos[i]);
        CHECK(file.is_censored(i) == censored[i]);
        CHECK(file.row_offset(i) == rows_begin + i * row_bytes);
    }
    CHECK(file.row_offset(4) == good.size());
    const KldRow row = file.row(3);
    CHECK(row.scale == 0.0001f);
    CHECK(row.min_log_prob == -6.75f);
    CHECK(std::vector<std::uint16_t>(row.q.begin(), row.q.end()) == std::vector<std::uint16_t>{65535, 65000, 3});
    CHECK(row.log_prob(1) == double(0.0001f) * 65000 - 6.75); // exact: 24 and 16 bits of factors
    CHECK(row.log_prob<float>(2) == doctest::Approx(0.0001 * 3 - 6.75).epsilon(1e-7));
    CHECK(message_of<std::invalid_argument>([&] { (void)file.row(4); }) == file.name() + ": row 4 of 4");

    DecodedKld rows(file), other = rows;
    CHECK(rows.size() == 4);
    CHECK(rows.vocabulary() == 3);
    const auto first = rows.row(0), last = other.row(3); // each with its own buffer
    CHECK(std::vector<float>(first.begin(), first.end()) ==
          std::vector<float>{row.log_prob<float>(0) - 0.25f, -7.0f, 0.0001f * 100 - 7.0f});
    CHECK(last[1] == row.log_prob<float>(1));
}

TEST_CASE("what is refused, and what is said of it") {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(refusal("") == "the file does not begin with _logits_");
    CHECK(refusal("_logits") == "the file does not begin with _logits_");
    CHECK(refusal(good.substr(0, 19)) == "the file ends at byte 19, inside its header");
    CHECK(refusal(changed(good, 8, 2)) == "n_ctx is 2, at least 3 is needed");
    CHECK(refusal(changed(good, 8, -1)) == "n_ctx is -1, at least 3 is needed");
    CHECK(refusal(changed(good, 12, 0)) == "n_vocab is 0, at least 1 is needed");
    CHECK(refusal(changed(good, 12, INT32_MIN)) == "n_vocab is -2147483648, at least 1 is needed");
    CHECK(refusal(changed(good, 16, 0)) == "n_chunk is 0, at least 1 is needed");
    CHECK(refusal(changed(good, 16, 3)) ==
          "the file was cut: it holds 1 whole chunks of the 3 that its header announces (2 of 6 positions)");
    CHECK(refusal(changed(good, 16, 1)) == "52 bytes more than its header asks for");
    CHECK(refusal(changed(good, 16, 100)) == "the file was cut: it holds 0 whole chunks, and 26 of the 500 tokens of "
                                             "the 100 that its header announces");
    // 2^31-1 times 2^31-1 times 4 would wrap to 4.
    CHECK(refusal(changed(changed(good, 8, INT32_MAX), 16, INT32_MAX)) ==
          "the file was cut: it holds 0 whole chunks, and 26 of the 4611686014132420609 tokens of the 2147483647 that "
          "its header announces");
    CHECK(refusal(changed(good, 12, INT32_MAX)) ==
          "the file was cut: it holds 0 whole chunks of the 2 that its header announces (0 of 4 positions)");
    CHECK(refusal(good.substr(0, good.size() - 1)) ==
          "the file was cut: it holds 1 whole chunks of the 2 that its header announces (3 of 4 positions)");
    CHECK(refusal(good + '\0') == "1 bytes more than its header asks for");
    CHECK(refusal(changed(good, 20 + 4 * 6, 3)) == "token 3 at position 1 of chunk 1 is not below the vocabulary of 3");
    CHECK(refusal(changed(good, 20, -1)) == "token -1 at position 0 of chunk 0 is not below the vocabulary of 3");
    const std::size_t row = rows_begin + row_bytes;
    CHECK(refusal(changed(good, row, nan)) == "row 1 (chunk 0, pos 3): scale is nan, not a number from 0 up");
    CHECK(refusal(changed(good, row, infinity)) == "row 1 (chunk 0, pos 3): scale is inf, not a number from 0 up");
    CHECK(refusal(changed(good, row, -0.5f)) == "row 1 (chunk 0, pos 3): scale is -0.5, not a number from 0 up");
    CHECK(refusal(changed(good, row + 4, nan)) == "row 1 (chunk 0, pos 3): min_log_prob is nan, not finite");
    CHECK(refusal(changed(good, row + 4, -infinity)) == "row 1 (chunk 0, pos 3): min_log_prob is -inf, not finite");
    CHECK(refusal(changed(good, row, 1.0f)) == "row 1 (chunk 0, pos 3): its largest log-probability is 65521, above 0");
    CHECK(refusal(changed(good, row + 4, 3.0e38f)).find("its largest log-probability is 3") != std::string::npos);
    // The other rows of such a file are still read.
    TemporaryFolder folder;
    CHECK(KldFile(folder.write("x.kld", changed(good, row, nan))).row(0).q.size() == 3);
}

TEST_CASE("a file cut at any byte says how many chunks are whole") {
    for (std::size_t size = 20; size < good.size(); ++size) {
        CAPTURE(size);
        CHECK(contains(refusal(good.substr(0, size)),
                       "the file was cut: it holds " + std::to_string(whole_chunks(size)) + " whole chunks"));
    }
    for (std::size_t size = 8; size < 20; ++size) {
        CHECK(refusal(good.substr(0, size)) == "the file ends at byte " + std::to_string(size) + ", inside its header");
    }
}

TEST_CASE("a damaged file is refused or keeps what its reader promises") {
    TemporaryFolder folder;
    std::mt19937 random(5);
    const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
    int refused = 0, refused_row = 0, read = 0;
    for (int i = 0; i < 10000; ++i) {
        std::string bytes = good;
        for (std::size_t rounds = 1 + below(2); rounds-- > 0 && !bytes.empty();) {
            const std::size_t at = below(bytes.size());
            switch (below(6)) {
            case 0: bytes[at] = static_cast<char>(random() & 255); break;
            case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
            case 2: bytes[8 + below(12)] = static_cast<char>(random() & 255); break;
            case 3: bytes = changed(bytes, 8 + 4 * below(3), static_cast<std::int32_t>(1 + below(8))); break;
            case 4: bytes.resize(at + below(bytes.size()), '\1'); break;
            default: bytes = changed(bytes + std::string(8, '\0'), at, static_cast<std::uint32_t>(random()));
            }
            if (bytes.size() < 20) { break; }
        }
        const auto path = folder.write("m", bytes);
        CAPTURE(i);
        bool open = false;
        try {
            const KldFile file(path);
            open = true;
            CHECK(file.row_offset(file.size()) == bytes.size());
            CHECK(file.size() == file.chunks() * file.rows_per_chunk());
            CHECK(file.targets().size() == file.size());
            DecodedKld rows(file);
            for (std::size_t row = 0; row < file.size(); ++row) {
                CHECK(file.targets()[row] == file.tokens()[file.chunk(row) * file.chunk_tokens() + file.pos(row) + 1]);
                CHECK(file.targets()[row] >= 0);
                CHECK(static_cast<std::size_t>(file.targets()[row]) < file.vocabulary());
                for (const float log_prob : rows.row(row)) { CHECK((log_prob <= 1e-3f && log_prob >= -1e39)); }
            }
            ++read;
        } catch (const parse_error& e) {
            CHECK(std::string_view(e.what()).starts_with(path.string() + ": kld: "));
            ++(open ? refused_row : refused);
        }
    }
    CHECK(refused > 2000);
    CHECK(refused_row > 100);
    CHECK(read > 800);
}

TEST_CASE("a file of llama.cpp, where it is: its figures come out") {
    const std::filesystem::path base = std::filesystem::path(REAL_LOGITS) / "base.kld";
    if (!std::filesystem::exists(base)) {
        MESSAGE("SKIPPED: no " << base.string());
        return;
    }
    const KldFile file(base);
    CHECK(file.size() == 2016);
    CHECK(file.vocabulary() == 512);
    CHECK(file.chunks() == 32);
    CHECK(file.chunk_tokens() == 128);
    DecodedKld rows(file);
    long double nll = 0;
    double least = 2, most = 0;
    int censored = 0;
    for (std::size_t i = 0; i < file.size(); ++i) {
        double sum = 0;
        for (const float log_prob : rows.row(i)) { sum += std::exp(static_cast<double>(log_prob)); }
        least = std::min(least, sum);
        most = std::max(most, sum);
        nll -= file.row(i).log_prob(static_cast<std::size_t>(file.targets()[i]));
        censored += file.is_censored(i);
    }
    // From Python: struct.unpack of each row, math.exp of each log-probability, in double.
    CHECK(least == doctest::Approx(0.9999491939).epsilon(1e-7));
    CHECK(most == doctest::Approx(1.0000610948).epsilon(1e-7));
    CHECK(censored == 15);
    // int8_expected.txt, by llama.cpp: Mean PPL(base)
    CHECK(std::exp(nll / 2016) == doctest::Approx(222.694335).epsilon(1e-8));

    // The targets belong to the rows of the logits beside it: Mean PPL(Q) of the same page.
    const logitstat::NpyFile npy(std::filesystem::path(REAL_LOGITS) / "s_int8.npy");
    CHECK(npy.tensor().shape == std::vector<std::uint64_t>{2016, 512});
    const auto* logits = reinterpret_cast<const float*>(npy.tensor().bytes.data());
    nll = 0;
    for (std::size_t i = 0; i < 2016; ++i) {
        long double sum = 0;
        for (std::size_t token = 0; token < 512; ++token) { sum += std::exp((long double)logits[i * 512 + token]); }
        nll += std::log(sum) - logits[i * 512 + static_cast<std::size_t>(file.targets()[i])];
    }
    CHECK(std::exp(nll / 2016) == doctest::Approx(231.173068).epsilon(1e-8));
}

} // namespace test_kld

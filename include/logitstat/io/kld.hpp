#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/logits/positions.hpp"
#include "logitstat/simd/columns.hpp"
#include "logitstat/trace/column.hpp"
#include "logitstat/trace/trace.hpp"

/// The base log-probabilities of llama.cpp's perplexity tool (--kl-divergence-base FILE, usually .kld), little-endian:
///
///     "_logits_"; int32 n_ctx, n_vocab, n_chunk; int32 tokens[n_chunk][n_ctx]; a row an evaluated position
///
/// Of each chunk the positions from n_ctx/2 up to n_ctx - 2 are evaluated, n_ctx - 1 - n_ctx/2 of them; position p
/// predicts token p + 1. A row is float scale, float min_log_prob and n_vocab uint16 q, padded to an even number;
/// log p = scale q + min_log_prob. The writer clamps at 16 (some builds 24) below the row's maximum: what lies lower is
/// stored as q = 0.
namespace logitstat {

static_assert(std::endian::native == std::endian::little, ".kld data are viewed in place: little-endian only");

/// Do these bytes begin like a .kld file?
inline bool looks_like_kld(std::string_view bytes) { return bytes.starts_with("_logits_"); }

/// One evaluated position. The probabilities of a row add up to 1 but for the rounding of q, some 1e-4.
struct KldRow {
    float scale = 0;                  ///< finite, >= 0
    float min_log_prob = 0;           ///< finite; log p of q = 0
    std::span<const std::uint16_t> q; ///< [n_vocab] quantized log-probabilities

    /// log p of a token below n_vocab, in nats, unchecked. As float it is what llama.cpp computes, but for the last bit
    /// where the compiler fuses product and sum; as double it is rounded once.
    template <std::floating_point Real = double> Real log_prob(std::size_t token) const {
        return static_cast<Real>(scale) * static_cast<Real>(q[token]) + static_cast<Real>(min_log_prob);
    }
};

/// A .kld file, memory-mapped. Header and tokens are read, the rows are views of the mapping and live as long as this
/// object, also when it is moved.
class KldFile {
  public:
    /// O(tokens). Throws io_error when the file cannot be opened or became shorter; parse_error, naming the file, for
    /// another magic, counts below 1 (n_ctx below 3, where no position is evaluated), tokens outside [0, n_vocab), and
    /// a size other than what the header asks for: of a run that was cut it says how many chunks are whole.
    explicit KldFile(const std::filesystem::path& path) : KldFile(MappedFile(path), path.string()) {}

    /// The same from a file that has been opened; `name` stands for it in errors.
    KldFile(MappedFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {
        const std::string_view bytes = file_.text();
        if (!looks_like_kld(bytes)) { fail("the file does not begin with _logits_"); }
        std::array<std::int32_t, 3> counts;
        if (bytes.size() < header_size) {
            fail("the file ends at byte " + std::to_string(bytes.size()) + ", inside its header");
        }
        std::memcpy(counts.data(), bytes.data() + 8, sizeof counts);
        for (const auto& [count, least, what] : {std::tuple(counts[0], 3, "n_ctx"), std::tuple(counts[1], 1, "n_vocab"),
                                                 std::tuple(counts[2], 1, "n_chunk")}) {
            if (count < least) {
                fail(std::string(what) + " is " + std::to_string(count) + ", at least " + std::to_string(least) +
                     " is needed");
            }
        }
        context_ = static_cast<std::uint32_t>(counts[0]);
        vocabulary_ = static_cast<std::uint32_t>(counts[1]);
        chunks_ = static_cast<std::uint32_t>(counts[2]);
        row_bytes_ = sizeof(std::uint16_t) * (2 * ((vocabulary_ + 1) / 2) + 4);

        // Divided instead of multiplied: the header may ask for more bytes than 64 bits count.
        const std::uint64_t tokens = context_ * chunks_, after_header = bytes.size() - header_size;
        if (tokens > after_header / sizeof(token_id)) {
            fail("the file was cut: it holds 0 whole chunks, and " + std::to_string(after_header / sizeof(token_id)) +
                 " of the " + std::to_string(tokens) + " tokens of the " + std::to_string(chunks_) +
                 " that its header announces");
        }
        tokens_ = {reinterpret_cast<const token_id*>(bytes.data() + header_size), static_cast<std::size_t>(tokens)};
        const std::uint64_t row_area = after_header - tokens * sizeof(token_id), whole_rows = row_area / row_bytes_;
        const std::uint64_t rows = chunks_ * rows_per_chunk();
        if (whole_rows < rows) {
            fail("the file was cut: it holds " + std::to_string(whole_rows / rows_per_chunk()) +
                 " whole chunks of the " + std::to_string(chunks_) + " that its header announces (" +
                 std::to_string(whole_rows) + " of " + std::to_string(rows) + " positions)");
        }
        if (const std::uint64_t more = row_area - rows * row_bytes_; more > 0) {
            fail(std::to_string(more) + " bytes more than its header asks for");
        }
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (tokens_[i] < 0 || std::cmp_greater_equal(tokens_[i], vocabulary_)) {
                fail("token " + std::to_string(tokens_[i]) + " at position " + std::to_string(i % context_) +
                     " of chunk " + std::to_string(i / context_) + " is not below the vocabulary of " +
                     std::to_string(vocabulary_));
            }
        }
        file_.require_whole();
        targets_.reserve(static_cast<std::size_t>(rows));
        for (std::size_t i = 0; i < rows; ++i) { targets_.push_back(tokens_[chunk(i) * context_ + pos(i) + 1]); }
    }

    std::size_t size() const noexcept { return targets_.size(); }         ///< evaluated positions, all chunks
    std::size_t vocabulary() const noexcept { return vocabulary_; }       ///< n_vocab
    std::size_t chunks() const noexcept { return chunks_; }               ///< n_chunk
    std::size_t chunk_tokens() const noexcept { return context_; }        ///< n_ctx
    std::span<const token_id> tokens() const noexcept { return tokens_; } ///< [n_chunk][n_ctx]
    std::size_t rows_per_chunk() const noexcept { return context_ - 1 - context_ / 2; } ///< evaluated positions a chunk
    const std::string& name() const noexcept { return name_; }                          ///< as errors give it
    const MappedFile& file() const noexcept { return file_; }                           ///< the bytes

    /// The chunk of evaluated position i, unchecked.
    std::size_t chunk(std::size_t i) const noexcept { return i / rows_per_chunk(); }
    /// The position of evaluated position i in its chunk, n_ctx/2 the first, unchecked.
    std::size_t pos(std::size_t i) const noexcept { return context_ / 2 + i % rows_per_chunk(); }
    /// The token after each evaluated position, [size()].
    std::span<const token_id> targets() const noexcept { return targets_; }

    /// Evaluated position i, in place. O(1). Throws std::invalid_argument for i beyond the file; parse_error when scale
    /// or min_log_prob is not finite, scale is negative, or a probability of the row may lie above 1.
    KldRow row(std::size_t i) const {
        if (i >= size()) {
            throw std::invalid_argument(name_ + ": row " + std::to_string(i) + " of " + std::to_string(size()));
        }
        const char* const at = file_.text().data() + row_offset(i);
        KldRow row;
        std::memcpy(&row.scale, at, sizeof row.scale);
        std::memcpy(&row.min_log_prob, at + sizeof row.scale, sizeof row.min_log_prob);
        row.q = {reinterpret_cast<const std::uint16_t*>(at + 8), vocabulary_};
        const auto refuse = [&](const std::string& reason) {
            fail("row " + std::to_string(i) + " (chunk " + std::to_string(chunk(i)) + ", pos " +
                 std::to_string(pos(i)) + "): " + reason);
        };
        if (!simd::is_finite(row.scale) || row.scale < 0) {
            refuse("scale is " + detail::shortest_text(row.scale) + ", not a number from 0 up");
        }
        if (!simd::is_finite(row.min_log_prob)) {
            refuse("min_log_prob is " + detail::shortest_text(row.min_log_prob) + ", not finite");
        }
        // The writer gives the maximum q = 65535, and rounding in float loses 1e-5 at most.
        if (const double top = 65535.0 * row.scale + row.min_log_prob; top > 1e-3) {
            refuse("its largest log-probability is " + detail::shortest_text(top) + ", above 0");
        } else {
            // V probabilities that add up to 1 are neither all above 1/V nor all below it.
            const double of_equals = -std::log(static_cast<double>(vocabulary_));
            if (row.min_log_prob > of_equals + 0.1 || top < of_equals - 0.1) {
                refuse("its log-probabilities lie between " + detail::shortest_text(row.min_log_prob) + " and " +
                       detail::shortest_text(top) + ": they are no distribution over " + std::to_string(vocabulary_) +
                       " tokens");
            }
        }
        return row;
    }

    /// Is the target of position i stored as q = 0? Then its true log p is what is stored or lower: its NLL is
    /// censored. (In a row that spans less than the clamp this may be the true minimum: the file does not tell.) Throws
    /// as `row`.
    bool is_censored(std::size_t i) const { return row(i).q[static_cast<std::size_t>(targets_[i])] == 0; }

    /// Where row i begins in the file, in bytes; i == size() is the end.
    std::size_t row_offset(std::size_t i) const noexcept {
        return header_size + tokens_.size_bytes() + i * static_cast<std::size_t>(row_bytes_);
    }

  private:
    static constexpr std::size_t header_size = 20;
    [[noreturn]] void fail(const std::string& reason) const { throw parse_error(name_, "kld: " + reason); }

    MappedFile file_;
    std::string name_;
    std::uint64_t context_ = 0, vocabulary_ = 0, chunks_ = 0, row_bytes_ = 0;
    std::span<const token_id> tokens_;
    Column<token_id> targets_;
};

/// Where the rows of a .kld file stand, what they predict, and which targets are censored. O(rows). Throws as
/// `KldFile::row`.
inline LogitsPositions positions_of(const KldFile& file) {
    LogitsPositions positions;
    positions.target.assign(file.targets().begin(), file.targets().end());
    for (std::size_t i = 0; i < file.size(); ++i) {
        positions.chunk.push_back(static_cast<std::int32_t>(file.chunk(i)));
        positions.pos.push_back(static_cast<std::int32_t>(file.pos(i)));
        positions.censored.push_back(file.is_censored(i) ? censored_somewhere : 0);
        if (i % 64 == 63) {
            file.file().release(file.row_offset(i - 63), file.row_offset(i));
        } // else all stay in memory
    }
    return positions;
}

} // namespace logitstat

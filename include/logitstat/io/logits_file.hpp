#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/decoded_kld.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/logits_shard.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/logits/logits_view.hpp"

namespace logitstat {

/// Full-vocabulary logits from files of any format, memory-mapped: nothing is copied, rows come from the disk as they
/// are read. Movable, not copyable; what it gives lives as long as the object, `rows` and `targets` also when it is
/// moved. All const members may be called from several threads.
class LogitsFile {
  public:
    /// A .kld file that has been opened.
    explicit LogitsFile(KldFile file) : kld_(std::move(file)), name_(kld_->name()) {}
    /// One file, or the shards of one table of rows, in their order. Throws as `read_logits`.
    LogitsFile(std::span<const std::filesystem::path> paths, const LogitsOptions& options);

    std::size_t size() const noexcept { return kld_ ? kld_->size() : ends_.back(); } ///< rows
    /// V, the values of a row.
    std::size_t vocabulary() const noexcept { return kld_ ? kld_->vocabulary() : shards_.front().vocabulary(); }
    /// Of the values that `visit` gives: F16, BF16, F32 or F64; F32 for the log-probabilities of a .kld file.
    tensor_type element_type() const noexcept { return kld_ ? tensor_type::F32 : shards_.front().type(); }
    /// Rows that follow each other in one text, where the file says: of a chunk of a .kld file, of a batch of
    /// [batch, n, V] (in all shards the same n).
    std::optional<std::size_t> rows_per_chunk() const {
        if (kld_) { return kld_->rows_per_chunk(); }
        const auto first = shards_.front().rows_per_batch();
        const bool all = std::ranges::all_of(shards_, [&](const auto& s) { return s.rows_per_batch() == first; });
        return all ? first : std::nullopt;
    }
    const std::string& name() const noexcept { return name_; } ///< the path, of several the first

    /// The token that each row predicts, [size()], each in [0, vocabulary()); empty when the files do not say. A .kld
    /// file does, a safetensors file may in a tensor `target` or `targets`.
    std::span<const token_id> targets() const noexcept { return kld_ ? kld_->targets() : targets_; }
    /// The .kld file: chunks, quantized rows, censored targets. nullptr for other formats.
    const KldFile* kld() const noexcept { return kld_ ? &*kld_ : nullptr; }

    /// The rows in place. Throws std::invalid_argument unless T is the C++ type of `element_type`, and for a .kld file,
    /// whose rows are not stored as that: `visit` decodes them.
    template <logit_value T> ShardedLogits<T> rows() const {
        if (kld_ || tensor_type_for<T>() != element_type()) {
            throw std::invalid_argument(name_ + ": its rows are not stored as " +
                                        std::string(to_string(tensor_type_for<T>())));
        }
        std::vector<LogitsView<T>> views;
        for (const detail::LogitsShard& shard : shards_) { views.push_back(shard.view<T>()); }
        return ShardedLogits<T>(std::move(views));
    }

    /// Calls f with the rows in their own type, `ShardedLogits<T>` or, for a .kld file, `DecodedKld`, each
    /// `logits_rows` by value, and returns what it returns, which must be of one type.
    template <class F> decltype(auto) visit(F&& f) const {
        if (kld_) { return std::forward<F>(f)(DecodedKld(*kld_)); }
        switch (element_type()) {
        case tensor_type::F16: return std::forward<F>(f)(rows<Eigen::half>());
        case tensor_type::BF16: return std::forward<F>(f)(rows<Eigen::bfloat16>());
        case tensor_type::F64: return std::forward<F>(f)(rows<double>());
        default: return std::forward<F>(f)(rows<float>());
        }
    }

    /// For a walk from the first row to the last: gives back the memory of the rows before `row`, so that files larger
    /// than memory can be read. Cheap enough to call at every row: it acts when `release_step` bytes have come
    /// together, and at the end. With a row below the last call's a new walk begins. Rows that were given back can
    /// still be read. Not from two threads at once; threads that read meanwhile are not disturbed. Where the system
    /// cannot give back pages nothing happens.
    void release_before(std::size_t row);
    /// Throws io_error when a file has become shorter since it was opened: see MappedFile. For the end of a walk.
    void require_whole() const {
        if (kld_) { kld_->file().require_whole(); }
        for (const detail::LogitsShard& shard : shards_) { shard.file().require_whole(); }
    }
    static constexpr std::size_t release_step = std::size_t{1} << 22; ///< bytes that are given back at once

  private:
    std::optional<KldFile> kld_;
    std::vector<detail::LogitsShard> shards_; ///< otherwise: one at least, of one type and vocabulary
    std::vector<std::size_t> ends_;           ///< ends_[s]: rows in the shards 0 to s
    Column<token_id> targets_;
    std::string name_;
    std::size_t released_ = 0; ///< rows
};

inline LogitsFile::LogitsFile(std::span<const std::filesystem::path> paths, const LogitsOptions& options) {
    if (paths.empty()) { throw std::invalid_argument("logits: no file given"); }
    name_ = paths.front().string();
    for (const std::filesystem::path& path : paths) {
        MappedFile file(path, [&](std::string_view head) { detail::require_logits(head, path.string()); });
        if (looks_like_kld(file.text())) {
            if (paths.size() > 1) {
                throw parse_error(path.string(), "a .kld file is whole: it cannot be one of several shards");
            }
            kld_.emplace(std::move(file), path.string());
            return;
        }
        const auto& shard = shards_.emplace_back(std::move(file), path.string(), options);
        const auto& first = shards_.front();
        const auto differ = [&](const std::string& ours, const std::string& theirs) {
            throw parse_error(path.string(), ours + ", but " + name_ + " has " + theirs);
        };
        if (shard.vocabulary() != first.vocabulary()) {
            differ("a vocabulary of " + std::to_string(shard.vocabulary()), std::to_string(first.vocabulary()));
        }
        if (shard.type() != first.type()) {
            differ("logits of type " + std::string(to_string(shard.type())), std::string(to_string(first.type())));
        }
        if (shard.targets().has_value() != first.targets().has_value()) {
            differ(shard.targets() ? "a tensor of targets" : "no tensor of targets", shard.targets() ? "none" : "one");
        }
        if (shard.targets()) { targets_.insert(targets_.end(), shard.targets()->begin(), shard.targets()->end()); }
        ends_.push_back(shard.rows() + (ends_.empty() ? 0 : ends_.back()));
    }
}

inline void LogitsFile::release_before(std::size_t row) {
    row = (std::min)(row, size());
    if (row < released_) { released_ = 0; }
    const std::size_t row_bytes = kld_ ? kld_->row_offset(1) - kld_->row_offset(0) : shards_.front().row_bytes();
    if (row == released_ || (row < size() && row - released_ < std::max<std::size_t>(1, release_step / row_bytes))) {
        return;
    }
    const auto release = [&](const auto& part, std::size_t begin, std::size_t end) { // rows of the part
        // From a page earlier, whatever its size: the last call left the page that its end cut.
        const std::size_t from = part.row_offset(begin);
        part.file().release(from - std::min<std::size_t>(from, 1 << 16), part.row_offset(end));
    };
    if (kld_) { release(*kld_, released_, row); }
    for (std::size_t s = 0, first = 0; s < shards_.size(); first = ends_[s++]) {
        const std::size_t begin = (std::max)(released_, first), end = (std::min)(row, ends_[s]);
        if (begin < end) { release(shards_[s], begin - first, end - first); }
    }
    released_ = row;
}

/// The logits of a file, told apart by its content: .npy (float16, float32, float64), safetensors (F16, BF16, F32, F64)
/// or llama.cpp's base log-probabilities (.kld). The first two hold [n, V], or [batch, n, V], which counts as one row
/// after the other. O(header), and O(tokens) where the file has targets: logits are not looked at, non-finite ones
/// included.
///
/// Throws io_error when the file cannot be opened; parse_error naming the file for what its format's reader refuses, no
/// or several tensors that could be the logits (listed), another shape or type, bytes that are not aligned, no row, or
/// naming all formats when the file is none of them.
inline LogitsFile read_logits(const std::filesystem::path& path, const LogitsOptions& options = {}) {
    return LogitsFile(std::span(&path, 1), options);
}

/// The same sharded over several .npy or safetensors files, whose rows follow each other in the order of the list.
/// Throws also std::invalid_argument for an empty list, and parse_error, naming two files, when they differ in
/// vocabulary, type, or in having targets.
inline LogitsFile read_logits(std::span<const std::filesystem::path> shards, const LogitsOptions& options = {}) {
    return LogitsFile(shards, options);
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

/// Full-vocabulary logits in memory that others own: a mapped file, a harness's buffer. What `trace/` is for traces,
/// this folder is for logits; it knows neither files nor statistics.
namespace logitstat {

/// The element types of logits.
template <class T>
concept logit_value = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Eigen::half> ||
    std::same_as<T, Eigen::bfloat16>;

/// What a statistic over full logits takes: `size()` rows of `vocabulary()` values; `row(i)`, i < size(), is unchecked
/// and may reuse the memory of the row before (`DecodedKld` does): give each thread a copy of its own.
template <class R>
concept logits_rows = logit_value<typename R::value_type> && std::copyable<R> && requires(R& rows, std::size_t i) {
    { rows.size() } -> std::same_as<std::size_t>;
    { rows.vocabulary() } -> std::same_as<std::size_t>;
    { rows.row(i) } -> std::same_as<std::span<const typename R::value_type>>;
};

/// n rows of V logits, row-major: row i begins `stride` elements after row i - 1, and the elements between a row's end
/// and the next row are never read. Non-owning, cheap to copy, any alignment that T allows.
template <logit_value T> class LogitsView {
  public:
    using value_type = T; ///< of a logit

    LogitsView() = default; ///< no row

    /// Throws std::invalid_argument when vocabulary is 0, stride is below it, or the rows need more than `values`.
    LogitsView(std::span<const T> values, std::size_t rows, std::size_t vocabulary, std::size_t stride)
        : data_(values.data()), rows_(rows), vocabulary_(vocabulary), stride_(stride) {
        if (vocabulary == 0) { throw std::invalid_argument("logits: a vocabulary of 0"); }
        if (stride < vocabulary) {
            throw std::invalid_argument("logits: a stride of " + std::to_string(stride) +
                                        " is below the vocabulary of " + std::to_string(vocabulary));
        }
        // The last row need not be followed by padding. Divided, since a product may overflow.
        if (rows > 0 && (values.size() < vocabulary || (values.size() - vocabulary) / stride < rows - 1)) {
            throw std::invalid_argument("logits: " + std::to_string(values.size()) + " values are too few for " +
                                        std::to_string(rows) + " rows of " + std::to_string(vocabulary));
        }
    }
    /// Rows without padding.
    LogitsView(std::span<const T> values, std::size_t rows, std::size_t vocabulary)
        : LogitsView(values, rows, vocabulary, vocabulary) {}

    std::size_t size() const noexcept { return rows_; }             ///< n, rows
    std::size_t vocabulary() const noexcept { return vocabulary_; } ///< V, values a row; 0 without a view
    std::size_t stride() const noexcept { return stride_; }         ///< elements
    const T* data() const noexcept { return data_; }                ///< the first element of the first row
    std::span<const T> row(std::size_t i) const { return {data_ + i * stride_, vocabulary_}; } ///< unchecked, O(1)

  private:
    const T* data_ = nullptr;
    std::size_t rows_ = 0, vocabulary_ = 0, stride_ = 0;
};

/// Views one after the other, as when a run writes its rows into several files. `row(i)` is O(log shards).
template <logit_value T> class ShardedLogits {
  public:
    using value_type = T; ///< of a logit

    ShardedLogits() = default; ///< no row
    /// Throws std::invalid_argument when the shards differ in vocabulary.
    explicit ShardedLogits(std::vector<LogitsView<T>> shards) : shards_(std::move(shards)) {
        std::size_t rows = 0;
        for (const LogitsView<T>& shard : shards_) {
            if (shard.vocabulary() != vocabulary()) {
                throw std::invalid_argument("logits: shards of different vocabularies, " +
                                            std::to_string(vocabulary()) + " and " +
                                            std::to_string(shard.vocabulary()));
            }
            ends_.push_back(rows += shard.size());
        }
    }

    /// Rows of all shards.
    std::size_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
    /// V, values a row; 0 without a shard.
    std::size_t vocabulary() const noexcept { return shards_.empty() ? 0 : shards_.front().vocabulary(); }
    std::span<const LogitsView<T>> shards() const noexcept { return shards_; } ///< in the order given
    /// Row i of all, [V], unchecked. O(log shards).
    std::span<const T> row(std::size_t i) const {
        const auto shard = static_cast<std::size_t>(std::ranges::upper_bound(ends_, i) - ends_.begin());
        return shards_[shard].row(shard == 0 ? i : i - ends_[shard - 1]);
    }

  private:
    std::vector<LogitsView<T>> shards_;
    std::vector<std::size_t> ends_; ///< ends_[s]: rows in the shards 0 to s
};

} // namespace logitstat

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tiny_lm {

/// What counting can do, as a yardstick for training: bytes predicted from the `order` - 1 bytes before them, by counts
/// of the training text, each order interpolated with the one below it (Witten and Bell 1991).
class NGram {
  public:
    NGram(std::span<const std::uint8_t> text, std::size_t order) : contexts_(order) {
        for (std::size_t length = 0; length < order; ++length) {
            for (std::size_t i = length; i < text.size(); ++i) {
                Context& context = contexts_[length][key(text, i, length)];
                ++context.total;
                context.kinds += context.counts[text[i]]++ == 0;
            }
        }
    }

    /// Mean negative log-likelihood of the text's bytes, in nats.
    double nll(std::span<const std::uint8_t> text) const {
        double sum = 0;
        for (std::size_t i = 0; i < text.size(); ++i) {
            double p = 1.0 / 256;
            for (std::size_t length = 0; length < contexts_.size() && length <= i; ++length) {
                const auto found = contexts_[length].find(key(text, i, length));
                if (found == contexts_[length].end()) { break; }
                const auto& [counts, total, kinds] = found->second;
                const auto seen = counts.find(text[i]);
                p = ((seen == counts.end() ? 0 : seen->second) + kinds * p) / (total + kinds);
            }
            sum -= std::log(p);
        }
        return sum / static_cast<double>(text.size());
    }

  private:
    struct Context {
        std::unordered_map<std::uint8_t, double> counts;
        double total = 0, kinds = 0;
    };

    /// The `length` bytes ahead of position i.
    static std::uint64_t key(std::span<const std::uint8_t> text, std::size_t i, std::size_t length) {
        std::uint64_t bytes = 0;
        for (std::size_t j = i - length; j < i; ++j) { bytes = bytes << 8 | text[j]; }
        return bytes;
    }

    std::vector<std::unordered_map<std::uint64_t, Context>> contexts_; ///< by the length of the context
};

} // namespace tiny_lm

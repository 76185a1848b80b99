#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tiny_lm/model.hpp"

namespace test {

/// Small enough to try every weight, with two of everything.
inline constexpr tiny_lm::Shape small_shape{
    .vocabulary = 11, .context = 9, .width = 8, .heads = 2, .layers = 2, .hidden = 12};

template <class Scalar> tiny_lm::Weights<Scalar> random_weights(const tiny_lm::Shape& shape, std::uint32_t seed) {
    std::mt19937 random(seed);
    tiny_lm::Weights<Scalar> weights(shape);
    for (const auto& [name, matrix] : weights.all()) {
        for (tiny_lm::Index i = 0; i < matrix->size(); ++i) {
            matrix->data()[i] = static_cast<Scalar>(static_cast<double>(random()) / 4294967296.0 - 0.5);
        }
        if (name.ends_with("norm")) { matrix->array() += Scalar(1); }
    }
    return weights;
}

inline std::vector<std::uint8_t> random_tokens(const tiny_lm::Shape& shape, std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::uint8_t> tokens(count);
    for (auto& token : tokens) {
        token = static_cast<std::uint8_t>(random() % static_cast<std::uint32_t>(shape.vocabulary));
    }
    return tokens;
}

} // namespace test

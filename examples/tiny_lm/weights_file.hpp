#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/safetensors.hpp"
#include "model.hpp"

namespace tiny_lm {

/// Writes the weights as float32 tensors of the names that `Weights::all` gives.
inline void write_weights(const std::filesystem::path& path, Weights<float> weights,
                          const logitstat::SafetensorsMetadata& metadata) {
    std::vector<logitstat::Tensor> tensors;
    for (const auto& [name, matrix] : weights.all()) {
        const std::vector shape{static_cast<std::uint64_t>(matrix->rows()), static_cast<std::uint64_t>(matrix->cols())};
        const std::span values(matrix->data(), static_cast<std::size_t>(matrix->size()));
        tensors.push_back(logitstat::tensor_over<float>(name, shape, values));
    }
    logitstat::write_safetensors(path, tensors, metadata);
}

/// Reads them back. Throws io_error when the file cannot be read; parse_error, naming file and tensor, when it is not
/// safetensors, or a tensor is missing, left over, of another type or shape, or not finite.
inline Weights<float> read_weights(const std::filesystem::path& path, const Shape& shape) {
    const logitstat::SafetensorsFile file(path);
    Weights<float> weights(shape);
    const auto all = weights.all();
    for (const auto& [name, matrix] : all) {
        const auto fail = [&, name = name](const std::string& reason) {
            throw logitstat::parse_error(path.string(), "tensor '" + name + "' " + reason);
        };
        const logitstat::Tensor* tensor = file.find(name);
        if (tensor == nullptr) { fail("is missing"); }
        const std::vector wanted{static_cast<std::uint64_t>(matrix->rows()),
                                 static_cast<std::uint64_t>(matrix->cols())};
        if (tensor->shape != wanted) {
            fail("has not the shape " + std::to_string(matrix->rows()) + " x " + std::to_string(matrix->cols()));
        }
        const auto values = file.values<float>(*tensor);
        std::copy(values.begin(), values.end(), matrix->data());
        if (!matrix->allFinite()) { fail("holds an infinite or NaN value"); }
    }
    if (file.tensors().size() != all.size()) {
        throw logitstat::parse_error(path.string(), "more tensors than the model has");
    }
    return weights;
}

} // namespace tiny_lm

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/tensor.hpp"
#include "logitstat/io/tensor_convert.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// Throws parse_error, naming `name` (the file that the targets are from) and the first offence, unless there is one
/// target a row and each is in [0, vocabulary). O(rows).
inline void check_targets(std::span<const token_id> targets, std::size_t rows, std::size_t vocabulary,
                          const std::string& name) {
    if (targets.size() != rows) {
        throw parse_error(name,
                          std::to_string(targets.size()) + " targets for " + std::to_string(rows) + " rows of logits");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (targets[i] < 0 || std::cmp_greater_equal(targets[i], vocabulary)) {
            throw parse_error(name, "target " + std::to_string(targets[i]) + " at position " + std::to_string(i) +
                                        " is not below the vocabulary of " + std::to_string(vocabulary));
        }
    }
}

namespace detail {

/// The words that errors put before what is wrong with a tensor; an .npy file's has no name.
inline std::string tensor_label(const Tensor& tensor) {
    return tensor.name.empty() ? std::string() : "tensor " + excerpt(tensor.name) + ": ";
}

/// "'logits' F32 [3, 8], 'x' I32 [3] and 4 more", for errors.
inline std::string tensor_list(std::span<const Tensor* const> tensors) {
    constexpr std::size_t most = 8;
    std::string text;
    for (std::size_t i = 0; i < tensors.size() && i < most; ++i) {
        text += (i == 0 ? "" : ", ") + excerpt(tensors[i]->name);
        text.append(" ").append(to_string(tensors[i]->type)).append(" ").append(shape_text(tensors[i]->shape));
    }
    if (tensors.size() > most) { text += " and " + std::to_string(tensors.size() - most) + " more"; }
    return tensors.empty() ? "nothing" : text;
}

/// The tensor called `wanted`; without a name the only one that `fits`. `what` says what is looked for. Throws
/// parse_error that lists the tensors to choose from.
template <class Fits>
const Tensor& choose_tensor(const SafetensorsFile& file, const std::string& wanted, const std::string& what,
                            Fits fits) {
    std::vector<const Tensor*> all, fitting;
    for (const Tensor& tensor : file.tensors()) {
        all.push_back(&tensor);
        if (fits(tensor)) { fitting.push_back(&tensor); }
    }
    if (!wanted.empty()) {
        const Tensor* const found = file.find(wanted);
        if (found == nullptr) {
            throw parse_error(file.name(), "has no tensor " + excerpt(wanted) + "; it holds " + tensor_list(all));
        }
        return *found;
    }
    if (fitting.empty()) {
        throw parse_error(file.name(), "has no tensor that could be the " + what + "; it holds " + tensor_list(all));
    }
    if (fitting.size() > 1) {
        throw parse_error(file.name(), "several tensors could be the " + what + ", name one: " + tensor_list(fitting));
    }
    return *fitting.front();
}

/// Can these be targets? Integers [n], or [batch, n], which count as one row after the other.
inline bool fits_targets(const Tensor& tensor) {
    return is_integer(tensor.type) && (tensor.shape.size() == 1 || tensor.shape.size() == 2);
}

/// The tensor's values as token ids; throws parse_error when it is of another form or a value is none.
inline Column<token_id> target_values(const Tensor& tensor, const std::string& name) {
    const auto fail = [&](const std::string& reason) { throw parse_error(name, tensor_label(tensor) + reason); };
    if (!fits_targets(tensor)) {
        fail(std::string(to_string(tensor.type)) + " " + shape_text(tensor.shape) +
             " cannot be targets, which are integers [n] or [batch, n]");
    }
    Column<token_id> targets;
    convert_integers(tensor, targets, [&](auto value, std::size_t i) {
        if (!std::in_range<token_id>(value) || value < 0) {
            fail(std::to_string(value) + " at position " + std::to_string(i) + " is no token id");
        }
        return static_cast<token_id>(value);
    });
    return targets;
}

/// Among a safetensors file's tensors the one named `target` (as in a binary trace) or `targets`, nullptr when there is
/// none.
inline const Tensor* named_targets(const SafetensorsFile& file) {
    const Tensor* const one = file.find("target");
    return one != nullptr ? one : file.find("targets");
}

} // namespace detail
} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "io/helpers.hpp"
#include "io/safetensors_bytes.hpp"
#include "logitstat/io/binary_trace_reader.hpp"

/// Binary traces as another program might write them, to be spoilt.
namespace testing {

/// The tensors of a trace as a foreign writer would give them, to be spoilt.
struct Foreign {
    std::vector<ForeignTensor> tensors;
    std::string metadata = R"({"format":"logitstat-trace","version":"1"})";

    ForeignTensor& operator[](std::string_view name) { return *std::ranges::find(tensors, name, &ForeignTensor::name); }
    void remove(std::string_view name) {
        std::erase_if(tensors, [&](const ForeignTensor& tensor) { return tensor.name == name; });
    }
    std::string bytes(std::size_t spaces = 0) const { return foreign_file(tensors, metadata, spaces); }
};

template <class Real> Foreign foreign(const logitstat::Trace<Real>& trace) {
    const auto view = trace.view();
    const std::size_t n = view.size(), k = view.k;
    const std::string real = sizeof(Real) == 4 ? "F32" : "F64";
    return {{{"chunk", "I32", {n}, bytes_of(view.chunk)},
             {"nll", real, {n}, bytes_of(view.nll)},
             {"pos", "I32", {n}, bytes_of(view.pos)},
             {"target", "I32", {n}, bytes_of(view.target)},
             {"top_ids", "I32", {k, n}, bytes_of(view.top_ids)},
             {"top_logits", real, {k, n}, bytes_of(view.top_logits)}}};
}

template <class T> void put(ForeignTensor& tensor, std::size_t index, T value) {
    REQUIRE((index + 1) * sizeof(T) <= tensor.data.size());
    std::memcpy(tensor.data.data() + index * sizeof(T), &value, sizeof value);
}

/// 3 positions of 3 candidates.
inline logitstat::Trace<double> sample() { return logitstat::parse_text_trace(tsv(rows), "sample"); }

/// What the reader says of these bytes, after the path.
template <class Real = double> std::string refusal(const std::string& bytes, logitstat::ReadOptions options = {}) {
    TemporaryFolder folder;
    const auto path = folder.write("bad.safetensors", bytes);
    const std::string message =
        message_of<logitstat::parse_error>([&] { logitstat::MappedTrace<Real> trace(path, options); });
    CHECK(std::string_view(message).starts_with(path.string() + ": "));
    return message.substr(std::min(message.size(), path.string().size() + 2));
}

} // namespace testing

#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "logitstat/io/binary_trace_metadata.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/writable.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// Writes a binary trace: a safetensors file whose tensors are the columns of TraceView, NLLs and logits in the trace's
/// own type (F32 or F64), everything else I32, and whose `__metadata__` holds the source (binary_trace_metadata.hpp).
/// Nothing is rounded: what is read back is equal bit by bit. The file appears under its name only when it is complete.
/// O(n k). Throws std::invalid_argument before the first byte when a reader would refuse the result; io_error when the
/// file cannot be written.
template <trace_like T>
void write_binary_trace(const std::filesystem::path& path, const T& trace, const TraceSource& source,
                        WriteOptions options = {}) {
    using Real = typename T::real_type;
    detail::require_writable(trace, options);
    const auto view = trace.view();
    const std::uint64_t n = view.size(), k = view.k;
    const std::vector<Tensor> tensors{
        tensor_over<Real>("nll", {n}, view.nll),
        tensor_over<Real>("top_logits", {k, n}, view.top_logits),
        tensor_over<std::int32_t>("chunk", {n}, view.chunk),
        tensor_over<std::int32_t>("pos", {n}, view.pos),
        tensor_over<std::int32_t>("target", {n}, view.target),
        tensor_over<std::int32_t>("top_ids", {k, n}, view.top_ids),
    };
    write_safetensors(path, tensors, detail::to_safetensors_metadata(source), [&] { detail::require_whole(trace); });
}

/// The same of a trace that has a source.
template <trace_like T>
requires requires(const T& trace) { trace.source; }
void write_binary_trace(const std::filesystem::path& path, const T& trace, WriteOptions options = {}) {
    write_binary_trace(path, trace, trace.source, options);
}

} // namespace logitstat

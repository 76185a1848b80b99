#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "logitstat/error.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/target_tensor.hpp"
#include "logitstat/logits/positions.hpp"

namespace logitstat {

/// The tokens that the positions predict, from a file of any kind, told apart by its content: integers of an .npy or
/// safetensors file, shape [n] or [batch, n] (one row after the other); a trace's target column; those of a .kld file.
/// The last two also say which chunk and position each is of; the first do not, and chunk and pos are empty. Of a
/// safetensors file that is no trace the tensor called `tensor`, else `target` or `targets`, else the only tensor of
/// that form. Values are copied as int32, so alignment does not matter. O(n).
///
/// Throws io_error when the file cannot be opened or became shorter meanwhile; parse_error for what the format's reader
/// refuses, a value below 0 or above int32, no or several tensors that it could be (listed), or naming all formats when
/// the file is none of them. Their number and the vocabulary are for `check_targets`.
inline LogitsPositions read_positions(const std::filesystem::path& path, const std::string& tensor = {}) {
    const std::string name = path.string();
    MappedFile file(path, [&](std::string_view head) {
        if (looks_like_npy(head) || looks_like_kld(head)) { return; }
        detail::require_trace(head, name, "no file of targets (.npy, safetensors, a trace, .kld)");
    });
    const std::string_view bytes = file.text();
    const auto of_trace = [](const auto& trace) {
        return LogitsPositions{{trace.target.begin(), trace.target.end()},
                               {trace.chunk.begin(), trace.chunk.end()},
                               {trace.pos.begin(), trace.pos.end()},
                               {}};
    };
    if (!tensor.empty() && !looks_like_safetensors(bytes)) {
        throw parse_error(name, "only safetensors files have tensors by name, such as " + detail::excerpt(tensor));
    }
    if (looks_like_npy(bytes)) {
        const NpyFile opened(std::move(file), name);
        LogitsPositions positions{detail::target_values(opened.tensor(), name), {}, {}, {}};
        opened.file().require_whole();
        return positions;
    }
    if (looks_like_kld(bytes)) { return positions_of(KldFile(std::move(file), name)); }
    if (looks_like_safetensors(bytes)) {
        SafetensorsFile opened(std::move(file), name);
        if (tensor.empty() && detail::says_trace(opened.metadata())) {
            return of_trace(MappedTrace<double>(std::move(opened)).view()); // read whole, and so checked whole
        }
        const Tensor* const named = tensor.empty() ? detail::named_targets(opened) : nullptr;
        const Tensor& chosen =
            named != nullptr ? *named : detail::choose_tensor(opened, tensor, "targets", detail::fits_targets);
        LogitsPositions positions{detail::target_values(chosen, name), {}, {}, {}};
        opened.file().require_whole();
        return positions;
    }
    const auto trace = parse_text_trace<double>(bytes, name);
    file.require_whole();
    return of_trace(trace);
}

/// The targets alone. Throws as `read_positions`.
inline Column<token_id> read_targets(const std::filesystem::path& path, const std::string& tensor = {}) {
    return std::move(read_positions(path, tensor).target);
}

} // namespace logitstat

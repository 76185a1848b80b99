#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_reader.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/read_options.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// A trace from a file of either format: the columns, as doubles, and the memory that they lie in. Movable, not
/// copyable (`converted<double>(trace)` makes a copy); the columns live as long as the object, also when it is moved.
class LoadedTrace : public TraceView<double> {
  public:
    TraceSource source; ///< path, metadata, warnings, and what a text reader skipped

    /// A text trace that has been parsed.
    explicit LoadedTrace(Trace<double> text)
        : TraceView<double>(text.view()), source(std::move(text.source)), memory_(std::move(text)) {}
    /// A binary trace that has been opened.
    explicit LoadedTrace(MappedTrace<double> binary)
        : TraceView<double>(binary.view()), source(std::move(binary.source)), memory_(std::move(binary)) {}

    /// Throws io_error when the file behind a binary trace has become shorter since it was opened: see MappedFile. For
    /// the end of a comparison. Text is in memory.
    void require_whole() const {
        if (binary_file() != nullptr) { binary_file()->file().require_whole(); }
    }

    /// The file behind a binary trace: how it stores its tensors, and those that are no columns. nullptr for text.
    const SafetensorsFile* binary_file() const noexcept {
        const auto* binary = std::get_if<MappedTrace<double>>(&memory_);
        return binary == nullptr ? nullptr : &binary->file();
    }

  private:
    std::variant<Trace<double>, MappedTrace<double>> memory_; // moving it leaves the columns where they are
};

namespace detail {

/// Throws parse_error when a file that begins with these bytes is neither a text nor a binary trace. `what` names the
/// formats that it could have been.
inline void require_trace(std::string_view head, const std::string& name, const std::string& what) {
    if (looks_like_safetensors(head)) { return; }
    if (const std::size_t at = find_control_byte(head); at != std::string_view::npos) {
        throw parse_error(name, what + ": control byte at offset " + std::to_string(at) + ", the file begins " +
                                    excerpt(head, 8));
    }
}

} // namespace detail

/// Reads a trace file, text or binary, told apart by its content. A text trace is parsed into memory; the columns of a
/// binary one are viewed in place, or widened where it stores floats. Throws io_error when the file cannot be opened
/// or became shorter meanwhile, parse_error as the reader of its format, or naming both formats when it is neither.
inline LoadedTrace read_trace(const std::filesystem::path& path, ReadOptions options = {}) {
    MappedFile file(path, [&](std::string_view head) {
        detail::require_trace(head, path.string(),
                              "neither a text trace (tab-separated lines) nor a binary trace (safetensors)");
    });
    if (looks_like_safetensors(file.text())) {
        return LoadedTrace(MappedTrace<double>(SafetensorsFile(std::move(file), path.string()), options));
    }
    auto text = parse_text_trace<double>(file.text(), path.string(), options);
    file.require_whole();
    return LoadedTrace(std::move(text));
}

} // namespace logitstat

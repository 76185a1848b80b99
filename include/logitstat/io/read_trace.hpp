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

    /// The file behind a binary trace: how it stores its tensors, and those that are no columns. nullptr for text.
    const SafetensorsFile* binary_file() const noexcept {
        const auto* binary = std::get_if<MappedTrace<double>>(&memory_);
        return binary == nullptr ? nullptr : &binary->file();
    }

  private:
    std::variant<Trace<double>, MappedTrace<double>> memory_; // moving it leaves the columns where they are
};

/// Reads a trace file, text or binary, told apart by its content. A text trace is parsed into memory; the columns of a
/// binary one are viewed in place, or widened where it stores floats. Throws io_error when the file cannot be opened,
/// parse_error as the reader of its format, or naming both formats when it is neither.
inline LoadedTrace read_trace(const std::filesystem::path& path, ReadOptions options = {}) {
    MappedFile file(path);
    const std::string_view bytes = file.text();
    if (looks_like_safetensors(bytes)) {
        return LoadedTrace(MappedTrace<double>(SafetensorsFile(std::move(file), path.string()), options));
    }
    if (const std::size_t at = detail::find_control_byte(bytes); at != std::string_view::npos) {
        throw parse_error(
            path.string(),
            "neither a text trace (tab-separated lines) nor a binary trace (safetensors): control byte at "
            "offset " +
                std::to_string(at) + ", the file begins " + detail::excerpt(bytes, 8));
    }
    return LoadedTrace(parse_text_trace<double>(bytes, path.string(), options));
}

} // namespace logitstat

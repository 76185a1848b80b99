#pragma once

#include <filesystem>

#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// Reads a trace file, whichever format its content shows it to be (today: the text trace). Throws io_error and
/// parse_error as the reader of that format.
inline Trace<double> read_trace(const std::filesystem::path& path) { return read_text_trace<double>(path); }

} // namespace logitstat

#pragma once

/// Everything. It needs nlohmann-json, for the headers of binary traces and for the JSON reports. What a program
/// without it may include: `trace/`, `logits/`, `simd/`, `stats/`, `compare.hpp`, `noise_floor.hpp`, `report/text.hpp`,
/// `report/markdown.hpp`, of `capture/` all (but not `capture.hpp`, which writes either format), and of `io/` the text
/// trace (`text_trace_reader.hpp`, `text_trace_writer.hpp`), `manifest.hpp`, `npy.hpp`, `kld.hpp` and
/// `decoded_kld.hpp`.

#include "logitstat/capture.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_reader.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/decoded_kld.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/logits_file.hpp"
#include "logitstat/io/manifest.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/read_options.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/targets.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/logits/logits_view.hpp"
#include "logitstat/matrix.hpp"
#include "logitstat/noise_floor.hpp"
#include "logitstat/report/format.hpp"
#include "logitstat/report/json.hpp"
#include "logitstat/report/markdown.hpp"
#include "logitstat/report/matrix_csv.hpp"
#include "logitstat/report/matrix_json.hpp"
#include "logitstat/report/matrix_markdown.hpp"
#include "logitstat/report/matrix_text.hpp"
#include "logitstat/report/text.hpp"
#include "logitstat/trace/converted.hpp"
#include "logitstat/trace/eigen.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"
#include "logitstat/version.hpp"

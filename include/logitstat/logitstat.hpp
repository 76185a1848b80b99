#pragma once

/// Everything that needs no optional dependency. Left out are `logitstat/report/json.hpp` and
/// `logitstat/report/matrix_json.hpp`, which need nlohmann-json.

#include "logitstat/compare.hpp"
#include "logitstat/error.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/output_file.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/matrix.hpp"
#include "logitstat/noise_floor.hpp"
#include "logitstat/report/format.hpp"
#include "logitstat/report/markdown.hpp"
#include "logitstat/report/matrix_csv.hpp"
#include "logitstat/report/matrix_markdown.hpp"
#include "logitstat/report/matrix_text.hpp"
#include "logitstat/report/text.hpp"
#include "logitstat/trace/eigen.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/version.hpp"

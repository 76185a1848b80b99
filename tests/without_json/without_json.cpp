// The headers that logitstat.hpp names as free of nlohmann-json. Here <nlohmann/json.hpp> is an error.

#include "logitstat/capture/run_metadata.hpp"
#include "logitstat/capture/trace_builder.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/compare_logits.hpp"
#include "logitstat/io/decoded_kld.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/manifest.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/io/text_trace_reader.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/logits/logits_view.hpp"
#include "logitstat/noise_floor.hpp"
#include "logitstat/report/logits_markdown.hpp"
#include "logitstat/report/logits_text.hpp"
#include "logitstat/report/markdown.hpp"
#include "logitstat/report/text.hpp"
#include "logitstat/trace/converted.hpp"
#include "logitstat/trace/eigen.hpp"

std::string compare_text(const std::string& reference, const std::string& candidate) {
    return logitstat::text_report(
        logitstat::compare(logitstat::read_text_trace(reference), logitstat::read_text_trace(candidate)));
}

std::string compare_kld_text(const logitstat::KldFile& reference, const logitstat::KldFile& candidate) {
    return logitstat::text_report(logitstat::compare_logits(
        logitstat::DecodedKld(reference), logitstat::DecodedKld(candidate), logitstat::positions_of(reference)));
}

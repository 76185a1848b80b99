// logits_to_trace: full logits, gigabytes of them, to a trace, which is what most comparisons need.

#include <concepts>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli.hpp"
#include "logits_cli.hpp"
#include "logitstat/capture/run_metadata.hpp"
#include "logitstat/capture/trace_builder.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/stats/clusters.hpp"

namespace {

template <std::floating_point Real>
logitstat::Trace<Real> score(logitstat::LogitsFile& file, const logitstat::LogitsPositions& where, std::size_t top_k,
                             logitstat::non_finite_rows policy) {
    cli::Progress progress("rows");
    logitstat::TraceBuilder<Real> trace(top_k, policy);
    file.visit([&](auto rows) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            try {
                trace.record(where.chunk[i], where.pos[i], where.target[i], rows.row(i));
            } catch (const std::invalid_argument& defect) {
                throw std::invalid_argument(file.name() + ": " + defect.what());
            }
            if (i % 64 == 63) {
                file.release_before(i);
                progress(i + 1, rows.size());
            }
        }
    });
    file.require_whole();
    return trace.trace();
}

/// The number of chunks, and their length where all have the same.
void describe_chunks(logitstat::RunMetadata& run, const logitstat::LogitsPositions& where) {
    const auto boundaries = logitstat::cluster_boundaries(where.chunk);
    run.chunks = std::ssize(boundaries) - 1;
    const auto length = [&](std::size_t c) { return static_cast<std::int64_t>(boundaries[c + 1] - boundaries[c]); };
    bool equal = true;
    for (std::size_t c = 0; c + 1 < boundaries.size(); ++c) { equal = equal && length(c) == length(0); }
    if (equal) { run.chunk_tokens = length(0); }
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Makes a trace of full-vocabulary logits: of each row the target's NLL and the best tokens with their "
                 "logits.",
                 "logits_to_trace");
    cli::LogitsInput logits(app, "LOGITS", "--", "full logits");
    std::string output, to, top_k = "8";
    bool keep = false;
    logitstat::RunMetadata run;
    app.add_option("OUTPUT", output,
                   "trace: binary when its name ends in .safetensors, otherwise text; - is standard output, text only")
        ->type_name("FILE")
        ->required()
        ->check(cli::not_empty());
    cli::PositionFlags positions(app);
    app.add_option("--top-k", top_k, "candidates of each position")->type_name("K")->capture_default_str();
    app.add_option("--to", to, "format of OUTPUT, whatever its name")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"text", "binary"}));
    app.add_flag(
        "--keep-non-finite", keep,
        "mark rows that cannot be scored (a NaN, a target of probability 0) with NaN instead of stopping there");
    app.add_option("--model", run.model, "metadata: the checkpoint")->type_name("TEXT");
    app.add_option("--device", run.device, "metadata: what computed the logits")->type_name("TEXT");
    app.add_option("--corpus", run.corpus, "metadata: the text")->type_name("TEXT");
    app.footer(
        "NLLs and logits of a binary trace are float32, or float64 where the logits are; a text trace has six\n"
        "decimals. Of a .kld file the NLLs are normalized, the log-probabilities as stored; it says so in the trace's "
        "metadata,\n"
        "with the number of clamped targets, whose NLLs are at least what is stored.\n\n"
        "Exit status: 0, or 2 for bad usage, logits that cannot be scored, or an output that could not be written.\n\n"
        "Example: logits_to_trace logits.npy run.tsv --targets tokens.npy --model some-4bit");

    return cli::run(app, argc, argv, [&] {
        const bool to_binary = to.empty() ? output.ends_with(".safetensors") : to == "binary";
        if (output == "-" && to_binary) { throw std::invalid_argument("binary output needs a file (see --help)"); }
        auto inputs = logits.paths();
        for (const auto& path : positions.paths()) { inputs.push_back(path); }
        for (const auto& path : inputs) {
            if (cli::same_file(path, output)) { throw std::invalid_argument(output + ": is an input"); }
        }
        const auto candidates = cli::number<std::size_t>("--top-k", top_k);
        auto file = logits.open();
        const logitstat::LogitsFile* const files[] = {&file};
        auto where = positions.read(files);
        if (where.target.empty()) {
            throw std::invalid_argument(file.name() + ": holds no targets, and a trace needs them: give --targets");
        }
        if (where.chunk.empty()) { logitstat::set_chunks(where, file.size(), file.size()); }
        describe_chunks(run, where);
        if (file.kld() != nullptr) {
            run.extra.push_back({"logits", "log_probabilities"});
            if (const auto censored = where.censored_count(); censored > 0) {
                run.extra.push_back({"censored_targets", std::to_string(censored)});
                std::cerr << "logits_to_trace: warning: " << censored << " of " << file.size()
                          << " targets are censored: their NLL is at least what the trace will say\n";
            }
        }
        const auto write = [&](auto trace) {
            trace.source.metadata = run.metadata(candidates);
            const logitstat::WriteOptions options{.keep_non_finite = keep};
            if (to_binary) {
                logitstat::write_binary_trace(output, trace, options);
            } else if (output == "-") {
                logitstat::write_text_trace(std::cout, trace, trace.source, options);
            } else {
                logitstat::write_text_trace(output, trace, options);
            }
        };
        const auto policy = keep ? logitstat::non_finite_rows::mark : logitstat::non_finite_rows::refuse;
        // Text has its decimals from double, as a recorder's.
        if (to_binary && file.element_type() != logitstat::tensor_type::F64) {
            write(score<float>(file, where, candidates, policy));
        } else {
            write(score<double>(file, where, candidates, policy));
        }
        std::cout << std::flush;
        if (!std::cout) { throw std::runtime_error("cannot write to standard output"); }
        return 0;
    });
}

// convert_trace: a trace from one file format to the other, byte for byte and back; what a trace file holds; whether it
// is sound.

#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "cli.hpp"
#include "logitstat/io/binary_trace_writer.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/io/text_trace_writer.hpp"
#include "logitstat/report/format.hpp"
#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/perplexity.hpp"
#include "logitstat/trace/converted.hpp"
#include "logitstat/trace/finite.hpp"

namespace {

using logitstat::report::counted;
using logitstat::report::fixed;
using logitstat::report::printable;

void print_warnings(const logitstat::TraceSource& source) {
    for (const std::string& warning : source.warnings) {
        std::cerr << "convert_trace: warning: " << printable(warning) << '\n';
    }
}

std::string shape(const logitstat::LoadedTrace& trace) {
    const auto chunks = logitstat::cluster_boundaries(trace.chunk).size() - 1;
    return counted(static_cast<std::int64_t>(trace.size()), "position") + " in " +
           counted(static_cast<std::int64_t>(chunks), "chunk") + ", " + std::to_string(trace.k) + " candidates each";
}

std::string format(const logitstat::LoadedTrace& trace) {
    const auto* file = trace.binary_file();
    if (file == nullptr) { return "text trace"; }
    const auto type = [&](const char* name) { return std::string(to_string(file->find(name)->type)); };
    return "binary trace (safetensors), NLLs " + type("nll") + ", logits " + type("top_logits");
}

void print_info(const std::string& path, logitstat::ReadOptions options) {
    const auto trace = logitstat::read_trace(path, options);
    const auto* file = trace.binary_file();
    const auto line = [](const std::string& label, const std::string& value) {
        std::cout << logitstat::report::pad_right(label, 12) << value << '\n';
    };
    line("file", printable(path));
    line("format", format(trace));
    std::error_code not_regular; // a pipe has no size
    const auto size = file != nullptr ? file->size() : std::filesystem::file_size(path, not_regular);
    if (!not_regular) { line("size", counted(static_cast<std::int64_t>(size), "byte")); }
    line("holds", shape(trace));
    const auto finite = logitstat::finite_positions(trace, trace);
    if (finite.size() < trace.size()) {
        line("not finite", counted(static_cast<std::int64_t>(trace.size() - finite.size()), "position") +
                               ", left out of what follows");
    }
    if (!finite.empty()) {
        const auto perplexity = logitstat::perplexity(logitstat::subset(trace, finite)).value();
        line("mean NLL", fixed(perplexity.mean_nll, 6) + " nats");
        line("perplexity", fixed(perplexity.value, 4));
    }
    if (const auto skipped = trace.source.skipped_lines(); skipped > 0) {
        line("skipped", counted(static_cast<std::int64_t>(skipped), "line") + " ahead of the data");
    }
    std::string label = "metadata";
    for (const auto& words : trace.source.metadata.lines()) {
        std::string text;
        for (const std::string& word : words) { text += (text.empty() ? "" : "  ") + printable(word); }
        line(std::exchange(label, ""), text);
    }
    print_warnings(trace.source);
}

void check(const std::string& path, logitstat::ReadOptions options) {
    const auto trace = logitstat::read_trace(path, options);
    print_warnings(trace.source);
    std::cout << printable(path) << ": ok, " << format(trace) << ": " << shape(trace) << ", "
              << counted(static_cast<std::int64_t>(trace.source.warnings.size()), "warning") << '\n';
}

/// Does a binary trace store nothing wider than float? Then float holds it exactly.
bool stores_floats(const logitstat::LoadedTrace& trace) {
    const auto* file = trace.binary_file();
    return file != nullptr && file->find("nll")->type != logitstat::tensor_type::F64 &&
           file->find("top_logits")->type != logitstat::tensor_type::F64;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Converts a logit trace between text and binary (safetensors), shows what a trace holds, or checks it.",
        "convert_trace");
    std::string input, output, to, info, checked;
    bool narrow = false, recover = false, keep = false;
    const auto file = [&](const char* name, std::string& path, const char* help) {
        return app.add_option(name, path, help)->type_name("FILE")->check(cli::not_empty());
    };
    file("INPUT", input, "trace to convert; its format is told by its content");
    file("OUTPUT", output,
         "binary when its name ends in .safetensors, otherwise text; - is standard output, text only");
    app.add_option("--to", to, "format of OUTPUT, whatever its name")
        ->type_name("FORMAT")
        ->check(CLI::IsMember({"text", "binary"}));
    app.add_flag("--float", narrow, "store NLLs and logits as float32: half their size, rounded to some seven digits");
    app.add_flag("--recover", recover,
                 "a text trace that a killed run left behind: drop its last line when that has no newline");
    app.add_flag("--keep-non-finite", keep, "let rows with NaN or infinite values through, as a recorder marks them");
    file("--info", info, "instead of converting: print what the trace holds");
    file("--check", checked,
         "instead of converting: read all of the trace strictly; status 0 when it is sound, else 2");
    app.footer(
        "A text trace becomes a binary one of doubles, which turns back into the same bytes where the text was written "
        "as\n"
        "harnesses do, with six decimals and without carriage returns. A binary trace of floats stays one of floats.\n"
        "The text format has six decimals: what a binary trace has beyond them is lost in "
        "text.\n\n"
        "Exit status: 0, or 2 for bad usage, a trace with an error, or an output that could not be written.\n\n"
        "Examples: convert_trace metal.tsv metal.safetensors\n"
        "          convert_trace run.safetensors run.tsv\n"
        "          convert_trace --recover killed.tsv whole.tsv\n"
        "          convert_trace --check metal.safetensors");

    return cli::run(app, argc, argv, [&] {
        const int tasks = !input.empty() + !info.empty() + !checked.empty();
        if (tasks != 1 || input.empty() != output.empty()) {
            throw std::invalid_argument("give INPUT and OUTPUT, or --info FILE, or --check FILE (see --help)");
        }
        if (input.empty() && (narrow || recover || !to.empty())) {
            throw std::invalid_argument("--float, --recover and --to go with INPUT and OUTPUT (see --help)");
        }
        const bool to_binary = to.empty() ? output.ends_with(".safetensors") : to == "binary";
        if (narrow && !to_binary) { throw std::invalid_argument("--float goes with binary output (see --help)"); }
        const logitstat::ReadOptions read{.keep_non_finite = keep, .recover = recover};
        const logitstat::WriteOptions write{.keep_non_finite = keep};
        if (!info.empty()) {
            print_info(info, read);
        } else if (!checked.empty()) {
            check(checked, read);
        } else {
            if (cli::same_file(input, output)) { throw std::invalid_argument(output + ": is the input"); }
            if (output == "-" && to_binary) { throw std::invalid_argument("binary output needs a file (see --help)"); }
            const auto trace = logitstat::read_trace(input, read);
            print_warnings(trace.source);
            if (output == "-") {
                logitstat::write_text_trace(std::cout, trace, trace.source, write);
                trace.require_whole(); // files are checked before they have their name
            } else if (!to_binary) {
                logitstat::write_text_trace(output, trace, write);
            } else if (narrow || stores_floats(trace)) {
                const auto narrowed = logitstat::converted<float>(trace);
                trace.require_whole();
                logitstat::write_binary_trace(output, narrowed, write);
            } else {
                logitstat::write_binary_trace(output, trace, write);
            }
        }
        std::cout << std::flush;
        if (!std::cout) { throw std::runtime_error("cannot write to standard output"); }
        return 0;
    });
}

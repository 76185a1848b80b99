// compare_traces: two traces in, every figure that decides whether the candidate's arithmetic is acceptable out.

#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "logitstat/logitstat.hpp"
#include "logitstat/report/json.hpp"

namespace {

constexpr int status_error = 2; // bad usage, unreadable or incomparable input: never mistaken for a verdict

/// One line of standard error for each line of the message.
int fail(const std::string& message) {
    std::size_t start = 0;
    while (start <= message.size()) {
        const std::size_t end = std::min(message.find('\n', start), message.size());
        std::cerr << "compare_traces: " << logitstat::report::printable(message.substr(start, end - start)) << '\n';
        start = end + 1;
    }
    return status_error;
}

struct Arguments {
    std::string reference, candidate, json, markdown;
    logitstat::CompareOptions options;
    std::string quantiles = "floor-index", color = "auto";
    bool quiet = false;
};

void declare(CLI::App& app, Arguments& a) {
    app.add_option("REFERENCE", a.reference, "trace of the arm that is taken as right")->required();
    app.add_option("CANDIDATE", a.candidate, "trace of the arm that is examined")->required();
    app.add_option("--decided", a.options.decided_gap,
                   "the verdict looks at positions whose two best reference logits are at least GAP apart")
        ->type_name("GAP")
        ->capture_default_str();
    app.add_option("--thresholds", a.options.thresholds, "gaps of the threshold sweep, separated by commas")
        ->type_name("GAP,...")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--top", a.options.worst, "list the N disagreements with the largest reference gap")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--json", a.json, "also write all figures as JSON; - is standard output, instead of the text")
        ->type_name("FILE");
    app.add_option("--markdown", a.markdown, "also write a Markdown report; - is standard output, instead of the text")
        ->type_name("FILE");
    app.add_flag("--curve", a.options.step_curve, "put the exact sweep over every gap that occurs into the JSON");
    app.add_option("--quantiles", a.quantiles, "rule for quantiles of the logit delta")
        ->check(CLI::IsMember({"floor-index", "linear"}))
        ->capture_default_str();
    app.add_flag("--strict", a.options.strict, "treat warnings (not like for like, a trace that may be cut) as errors");
    app.add_option("--color", a.color, "colour the text report")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str();
    app.add_flag("-q,--quiet", a.quiet, "no text report: only files and the exit status");
    app.set_version_flag("--version", "compare_traces " LOGITSTAT_VERSION_STRING);
    app.footer("Exit status: 0 identical or pass, 1 fail, 2 bad usage or unreadable or incomparable input,\n"
               "3 inconclusive (the reference had decided no position at the gap).\n\n"
               "Example: compare_traces metal.tsv rocm.tsv --thresholds 0.5,1,2 --top 10 --json result.json");
}

void check(const Arguments& a) {
    if (a.json == "-" && a.markdown == "-") {
        throw std::invalid_argument("--json - and --markdown - cannot share standard output");
    }
    logitstat::check_threshold(a.options.decided_gap);
    for (const double threshold : a.options.thresholds) { logitstat::check_threshold(threshold); }
}

int run(Arguments a) {
    check(a);
    a.options.quantiles =
        a.quantiles == "linear" ? logitstat::quantile_rule::linear : logitstat::quantile_rule::floor_index;
    const auto reference = logitstat::read_trace(a.reference);
    const auto candidate = logitstat::read_trace(a.candidate);
    const logitstat::Comparison result = logitstat::compare(reference, candidate, a.options);

    // Files are completed only when all of them could be written, and before anything is printed.
    std::vector<std::unique_ptr<logitstat::OutputFile>> files;
    std::string printed;
    const auto emit = [&](const std::string& path, const std::string& report) {
        if (path == "-") {
            printed = report;
        } else if (!path.empty()) {
            files.push_back(std::make_unique<logitstat::OutputFile>(path));
            files.back()->stream() << report;
        }
    };
    if (!a.json.empty()) { emit(a.json, logitstat::json_report(result)); }
    if (!a.markdown.empty()) { emit(a.markdown, logitstat::markdown_report(result)); }
    for (const auto& file : files) { file->commit(); }
    if (printed.empty() && !a.quiet) {
        const bool terminal = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
        printed = logitstat::text_report(result, {.color = a.color == "always" || (a.color == "auto" && terminal)});
    }
    std::cout << printed << std::flush;
    if (!std::cout) { throw std::runtime_error("cannot write to standard output"); }
    return logitstat::exit_code(result.verdict);
}

} // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    CLI::App app("Compares two logit traces of the same tokens: what did the candidate change, and does it matter?");
    declare(app, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        return app.exit(asked_for_help);
    } catch (const CLI::ParseError& bad_usage) { return fail(std::string(bad_usage.what()) + " (see --help)"); }
    try {
        return run(std::move(arguments));
    } catch (const std::exception& error) { return fail(error.what()); }
}

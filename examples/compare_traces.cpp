// compare_traces: two traces in, every figure that decides whether the candidate's arithmetic is acceptable out.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "logitstat/logitstat.hpp"
#include "logitstat/report/json.hpp"

namespace {

constexpr int status_error = 2; // bad usage, unreadable or incomparable input: never mistaken for a verdict

int fail(std::string_view message) {
    std::cerr << "compare_traces: " << logitstat::report::printable(message) << '\n';
    return status_error;
}

struct Arguments {
    std::string reference, candidate, json, markdown;
    std::string decided = "2", top = "0";
    std::vector<std::string> thresholds = {"0.5,1,2"};
    logitstat::CompareOptions options;
    std::string quantiles = "floor-index", color = "auto";
    bool quiet = false;
};

void declare(CLI::App& app, Arguments& a) {
    const CLI::Validator named([](std::string& path) { return std::string(path.empty() ? "empty file name" : ""); },
                               "");
    app.add_option("REFERENCE", a.reference, "trace of the arm that is taken as right")
        ->type_name("FILE")
        ->check(named)
        ->required();
    app.add_option("CANDIDATE", a.candidate, "trace of the arm that is examined, of the same tokens")
        ->type_name("FILE")
        ->check(named)
        ->required();
    app.add_option("--decided", a.decided,
                   "the verdict looks at positions whose two best reference logits are at least GAP apart")
        ->type_name("GAP")
        ->capture_default_str();
    app.add_option("--thresholds", a.thresholds, "gaps of the threshold sweep, separated by commas")
        ->type_name("GAP,...")
        ->allow_extra_args(false) // one list each time: what follows may be a trace
        ->default_str("0.5,1,2");
    app.add_option("--top", a.top, "list the N disagreements with the largest reference gap")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--json", a.json, "also write all figures as JSON; - is standard output, instead of the text")
        ->type_name("FILE")
        ->check(named);
    app.add_option("--markdown", a.markdown, "also write a Markdown report; - is standard output, instead of the text")
        ->type_name("FILE")
        ->check(named);
    app.add_flag("--curve", a.options.step_curve, "put the exact sweep over every gap that occurs into the JSON");
    app.add_option("--quantiles", a.quantiles, "rule for quantiles of the logit delta")
        ->type_name("RULE")
        ->check(CLI::IsMember({"floor-index", "linear"}))
        ->capture_default_str();
    app.add_flag("--strict", a.options.strict, "treat warnings (not like for like, a trace that may be cut) as errors");
    app.add_option("--color", a.color, "colour the text report; auto: on a terminal, unless NO_COLOR is set")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->capture_default_str();
    app.add_flag("-q,--quiet", a.quiet, "no text report: only files and the exit status");
    app.set_version_flag("--version", "compare_traces " LOGITSTAT_VERSION_STRING);
    app.footer("Exit status:\n"
               "  0  identical (every best token agrees) or pass (no mismatch at a decided position)\n"
               "  1  fail (a mismatch at a decided position)\n"
               "  2  bad usage, unreadable or incomparable input, or a report that could not be written\n"
               "  3  inconclusive (tokens differ, and the reference had decided no position)\n\n"
               "Example: compare_traces metal.tsv rocm.tsv --thresholds 0.5,1,2 --top 10 --json result.json");
}

/// The whole text as a number. CLI11 would read "" as 0 and "-1" as a huge count, and a gate must not guess.
template <class Number> Number number(const char* option, std::string_view text) {
    const std::size_t first = std::min(text.find_first_not_of(' '), text.size());
    const std::string_view digits = text.substr(first, text.find_last_not_of(' ') + 1 - first);
    Number value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
        const std::string why = error == std::errc::result_out_of_range ? " is out of range"
                                : std::is_integral_v<Number>            ? " is not a whole number of at least 0"
                                                                        : " is not a number";
        throw std::invalid_argument(std::string(option) + ": '" + std::string(text) + "'" + why + " (see --help)");
    }
    return value;
}

double gap(const char* option, std::string_view text) {
    const double value = number<double>(option, text);
    try {
        logitstat::check_threshold(value);
    } catch (const std::exception& bad) { throw std::invalid_argument(std::string(option) + ": " + bad.what()); }
    return value + 0.0; // -0 is 0
}

/// True when writing to both names would lose one of them. Devices and pipes lose nothing.
bool same_file(const std::string& a, const std::string& b) {
    namespace fs = std::filesystem;
    std::error_code none;
    return a != "-" && b != "-" && (!fs::exists(a, none) || fs::is_regular_file(a, none)) &&
           fs::weakly_canonical(a, none) == fs::weakly_canonical(b, none);
}

void check(Arguments& a) {
    a.options.decided_gap = gap("--decided", a.decided);
    a.options.thresholds.clear();
    for (const std::string& list : a.thresholds) {
        for (std::size_t start = 0, end = 0; end < list.size() || start == 0; start = end + 1) {
            end = std::min(list.find(',', start), list.size());
            a.options.thresholds.push_back(gap("--thresholds", std::string_view(list).substr(start, end - start)));
        }
    }
    a.options.worst = number<std::size_t>("--top", a.top);
    a.options.quantiles =
        a.quantiles == "linear" ? logitstat::quantile_rule::linear : logitstat::quantile_rule::floor_index;
    if (a.json == "-" && a.markdown == "-") {
        throw std::invalid_argument("--json - and --markdown - cannot share standard output");
    }
    if (!a.json.empty() && !a.markdown.empty() && same_file(a.json, a.markdown)) {
        throw std::invalid_argument("--json and --markdown name the same file: " + a.json);
    }
    for (const std::string* output : {&a.json, &a.markdown}) {
        for (const std::string* input : {&a.reference, &a.candidate}) {
            if (!output->empty() && same_file(*output, *input)) {
                throw std::invalid_argument(*output + ": a report would overwrite this input");
            }
        }
    }
}

int run(Arguments a) {
    check(a);
    const auto reference = logitstat::read_trace(a.reference);
    const auto candidate = logitstat::read_trace(a.candidate);
    const logitstat::Comparison result = logitstat::compare(reference, candidate, a.options);

    // Nothing appears unless everything could be written: bytes to the files, then to standard output, then the names.
    std::vector<std::unique_ptr<logitstat::OutputFile>> files;
    std::string printed;
    const auto emit = [&](const std::string& path, const std::string& report) {
        if (path == "-") {
            printed = report;
        } else if (!path.empty()) {
            files.push_back(std::make_unique<logitstat::OutputFile>(path));
            errno = 0;
            files.back()->stream() << report << std::flush;
            if (!files.back()->stream()) {
                throw logitstat::io_error(path, "cannot write: " + std::generic_category().message(errno));
            }
        }
    };
    if (!a.json.empty()) { emit(a.json, logitstat::json_report(result)); }
    if (!a.markdown.empty()) { emit(a.markdown, logitstat::markdown_report(result)); }
    if (printed.empty() && !a.quiet) {
        const char* no_color = std::getenv("NO_COLOR"); // counts unless empty (no-color.org)
        const bool terminal = isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
        printed = logitstat::text_report(result, {.color = a.color == "always" || (a.color == "auto" && terminal)});
    }
    errno = 0;
    std::cout << printed << std::flush;
    if (!std::cout) {
        throw std::runtime_error("cannot write to standard output: " + std::generic_category().message(errno));
    }
    for (const auto& file : files) { file->commit(); }
    return logitstat::exit_code(result.verdict);
}

} // namespace

int main(int argc, char** argv) {
    // A closed standard stream must not become the number of a file that is opened later and take its text.
    int descriptor = 0;
    while ((descriptor = open("/dev/null", O_RDONLY)) >= 0 && descriptor <= STDERR_FILENO) {}
    if (descriptor >= 0) { close(descriptor); }

    Arguments arguments;
    CLI::App app("Compares two logit traces of the same tokens: what did the candidate change, and does it matter?",
                 "compare_traces");
    declare(app, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked_for_help) {
        return app.exit(asked_for_help);
    } catch (const CLI::ParseError& bad_usage) { return fail(std::string(bad_usage.what()) + " (see --help)"); }
    try {
        return run(std::move(arguments));
    } catch (const logitstat::not_comparable& reasons) {
        const std::string all = reasons.what(); // under --strict there may be several, one a line
        for (std::size_t start = 0, end = 0; start < all.size(); start = end + 1) {
            end = std::min(all.find('\n', start), all.size());
            fail(std::string_view(all).substr(start, end - start));
        }
        return status_error;
    } catch (const std::exception& error) { return fail(error.what()); }
}

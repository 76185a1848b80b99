// compare_traces: two traces in, every figure that decides whether the candidate's arithmetic is acceptable out.

#include <string>
#include <vector>

#include "compare_cli.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/io/read_trace.hpp"
#include "logitstat/noise_floor.hpp"
#include "logitstat/report/json.hpp"
#include "logitstat/report/markdown.hpp"
#include "logitstat/report/text.hpp"

int main(int argc, char** argv) {
    CLI::App app("Compares two logit traces of the same tokens: what did the candidate change, and does it matter?",
                 "compare_traces");
    std::string reference, candidate, rerun, top = "5";
    bool curve = false;
    const auto trace = [&](const char* name, std::string& path, const char* help) {
        return app.add_option(name, path, help)->type_name("FILE")->check(cli::not_empty());
    };
    trace("REFERENCE", reference, "trace of the arm that is taken as right")->required();
    trace("CANDIDATE", candidate, "trace of the arm that is examined, of the same tokens")->required();
    cli::CompareFlags flags(app);
    trace("--noise", rerun,
          "trace of a second run of the reference: the noise floor that the candidate is held against");
    app.add_option("--top", top, "list the N disagreements with the largest reference gap")
        ->type_name("N")
        ->capture_default_str();
    cli::Outputs outputs(app);
    outputs.add(app, "--json", "also write all figures as JSON");
    outputs.add(app, "--markdown", "also write a Markdown report");
    app.add_flag("--curve", curve, "put the exact sweep over every gap that occurs into the JSON");
    app.footer(cli::verdict_statuses +
               "Example: compare_traces metal.tsv rocm.tsv --thresholds 0.5,1,2 --top 10 --json result.json");

    return cli::run(app, argc, argv, [&] {
        logitstat::CompareOptions options = flags.options();
        options.worst = cli::number<std::size_t>("--top", top);
        options.step_curve = curve;
        std::vector<std::string> inputs{reference, candidate};
        if (!rerun.empty()) { inputs.push_back(rerun); }
        outputs.check(inputs);

        const auto reference_trace = logitstat::read_trace(reference, flags.read_options());
        const auto against = [&](const std::string& path) {
            return logitstat::compare(reference_trace, logitstat::read_trace(path, flags.read_options()), options);
        };
        auto result = against(candidate);
        if (!rerun.empty()) {
            const auto again = against(rerun);
            result.noise = logitstat::noise_floor(result, again);
            for (const std::string& warning : again.warnings) { result.warnings.push_back("noise floor: " + warning); }
        }
        outputs.write(
            [&] { return logitstat::text_report(result, {.color = outputs.use_color()}); },
            {[&] { return logitstat::json_report(result); }, [&] { return logitstat::markdown_report(result); }});
        return logitstat::exit_code(result.verdict);
    });
}

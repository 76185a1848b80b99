// correctness_matrix: many pairs of traces in, the tables and the one verdict of a correctness document out.

#include <filesystem>
#include <string>
#include <vector>

#include "compare_cli.hpp"
#include "logitstat/io/manifest.hpp"
#include "logitstat/matrix.hpp"
#include "logitstat/report/matrix_csv.hpp"
#include "logitstat/report/matrix_json.hpp"
#include "logitstat/report/matrix_markdown.hpp"
#include "logitstat/report/matrix_text.hpp"

int main(int argc, char** argv) {
    CLI::App app("Compares many pairs of logit traces and gives one verdict over all.", "correctness_matrix");
    std::string manifest, candidates, pattern, threads = "0";
    app.add_option(
           "MANIFEST", manifest,
           "tab-separated list of pairs, its first line 'name tag reference candidate', paths relative to it, lines "
           "that begin with # are comments; or a folder of reference traces")
        ->type_name("FILE")
        ->check(cli::not_empty())
        ->required();
    app.add_option("CANDIDATES", candidates, "with a folder of references: the folder of candidate traces")
        ->type_name("FOLDER")
        ->check(cli::not_empty());
    app.add_option(
           "--pattern", pattern,
           "with two folders: a regular expression that whole file names match; group 1 is the pair's name, further "
           "groups its tag (default: equal file names pair up)")
        ->type_name("REGEX");
    cli::CompareFlags flags(app);
    app.add_option("--threads", threads, "pairs compared at once; 0: as many as the machine has cores")
        ->type_name("N")
        ->capture_default_str();
    cli::Outputs outputs(app);
    outputs.add(app, "--json", "also write all figures as JSON");
    outputs.add(app, "--markdown", "also write the tables of a correctness document");
    outputs.add(app, "--csv", "also write a row a pair as CSV");
    app.footer(
        "Exit status:\n"
        "  0  every pair is identical or passes\n"
        "  1  a pair fails\n"
        "  2  no pair fails, but one could not be compared; or bad usage, or a report that could not be written\n"
        "  3  otherwise, when a pair is inconclusive\n\n"
        "Examples: correctness_matrix pairs.tsv --markdown matrix.md\n"
        "          correctness_matrix metal/ rocm/ --pattern '[^_]+_(.*)_(w[0-9]+)\\.tsv'");

    return cli::run(app, argc, argv, [&] {
        const logitstat::CompareOptions options = flags.options();
        const auto thread_count = cli::number<std::size_t>("--threads", threads);
        const bool folders = std::filesystem::is_directory(manifest);
        if (folders != !candidates.empty()) {
            throw std::invalid_argument(
                folders ? manifest + ": a folder of references needs a folder of candidates (see --help)"
                        : "CANDIDATES goes with a folder of references (see --help)");
        }
        if (!folders && !pattern.empty()) {
            throw std::invalid_argument("--pattern goes with two folders (see --help)");
        }
        std::vector<std::filesystem::path> ignored;
        const auto pairs = folders ? logitstat::pair_folders(manifest, candidates, pattern, &ignored)
                                   : logitstat::read_manifest(manifest);
        if (!ignored.empty()) {
            const std::string note = logitstat::report::counted(static_cast<std::int64_t>(ignored.size()), "file") +
                                     " left out by --pattern, such as " + ignored.front().string();
            if (options.strict) { throw std::invalid_argument(note); }
            std::cerr << "correctness_matrix: " << logitstat::report::printable(note) << '\n';
        }
        std::vector<std::string> inputs;
        if (!folders) { inputs.push_back(manifest); }
        for (const auto& pair : pairs) {
            inputs.insert(inputs.end(), {pair.reference.string(), pair.candidate.string()});
        }
        outputs.check(inputs);

        const auto matrix = [&] {
            cli::Progress progress("pairs");
            return logitstat::compare_pairs(pairs, options, thread_count, std::ref(progress));
        }();
        outputs.write([&] { return logitstat::text_report(matrix, {.color = outputs.use_color()}); },
                      {[&] { return logitstat::json_report(matrix); },
                       [&] { return logitstat::markdown_report(matrix); },
                       [&] { return logitstat::csv_report(matrix); }});
        return logitstat::exit_code(matrix.verdict);
    });
}

// compare_logits: the full logits of two arms in, the divergences over the whole vocabulary and everything that
// compare_traces tells out.

#include <string>
#include <type_traits>
#include <vector>

#include "compare_cli.hpp"
#include "logits_cli.hpp"
#include "logitstat/compare_logits_files.hpp"
#include "logitstat/report/logits_json.hpp"
#include "logitstat/report/logits_markdown.hpp"
#include "logitstat/report/logits_text.hpp"

namespace {

/// Other tools' conventions, by name or one by one.
class ConventionFlags {
  public:
    explicit ConventionFlags(CLI::App& app) {
        app.add_option("--conventions", name_,
                       "llama.cpp: KL and NLLs as its perplexity tool takes them, that is --kl-skip-below -16 "
                       "--as-stored --single-precision --quantiles linear-float; for reproducing its figures")
            ->type_name("NAME")
            ->check(CLI::IsMember({"none", "llama.cpp"}))
            ->default_str("none");
        app.add_option("--kl-skip-below", skip_below_,
                       "leave out the terms of KL whose reference log-probability is at most X")
            ->type_name("X")
            ->check(cli::not_empty());
        app.add_flag("--as-stored", as_stored_, "do not normalize the log-probabilities of a .kld file");
        app.add_flag("--single-precision", single_precision_, "round NLLs, probabilities and the terms of KL to float");
    }
    void apply(logitstat::CompareLogitsOptions& options) const {
        if (name_ == "llama.cpp") {
            options.kl = logitstat::KlConventions::llama_cpp();
            if (!options.compare.quantiles) { options.compare.quantiles = logitstat::quantile_rule::linear_float; }
        }
        if (!skip_below_.empty()) {
            const auto x = cli::number<double>("--kl-skip-below", skip_below_);
            if (!logitstat::simd::is_finite(x)) { throw std::invalid_argument("--kl-skip-below: not finite"); }
            options.kl.skip_below = x;
        }
        options.kl.as_stored = options.kl.as_stored || as_stored_;
        options.kl.single_precision = options.kl.single_precision || single_precision_;
    }

  private:
    std::string name_, skip_below_;
    bool as_stored_ = false, single_precision_ = false;
};

} // namespace

int main(int argc, char** argv) {
    CLI::App app(
        "Compares the full-vocabulary logits of two arms that scored the same tokens: KL and other divergences, "
        "top-1 agreement, perplexity, and whether what changed matters.",
        "compare_logits");
    cli::LogitsInput reference(app, "REFERENCE", "--reference-", "logits of the arm that is taken as right");
    cli::LogitsInput candidate(app, "CANDIDATE", "--candidate-", "logits of the arm that is examined");
    cli::PositionFlags positions(app);
    std::string top_k = "8", threads = "0", top = "5", vocabulary = "0";
    const auto count = [&](const char* name, std::string& value, const char* help) {
        app.add_option(name, value, help)->type_name("N")->capture_default_str();
    };
    count("--vocabulary", vocabulary,
          "compare only the first N tokens of each row, where the arms are padded to different sizes; 0: all");
    count("--top-k", top_k, "best tokens of the top-k overlap; so many logits of each row must be finite");
    constexpr bool threaded = !std::is_same_v<logitstat::preferred_execution, logitstat::serial>;
    count("--threads", threads,
          threaded ? "threads; 0: one for each processor"
                   : "without effect: this program was built without oneTBB, and uses one thread");
    ConventionFlags conventions(app);
    cli::CompareFlags flags(app, "linear");
    std::string max_kl;
    app.add_option(
           "--max-kl", max_kl,
           "what the mean KL(P || Q) may be: fail when its whole interval is above, inconclusive when the limit "
           "lies within the interval")
        ->type_name("NATS")
        ->check(cli::not_empty());
    count("--top", top, "list the N disagreements with the largest reference gap");
    cli::Outputs outputs(app);
    outputs.add(app, "--json", "also write all figures as JSON");
    outputs.add(app, "--markdown", "also write a Markdown report");
    app.footer(
        std::string(
            "Rows are [n, V] or [batch, n, V] of float16, bfloat16, float32 or float64, or those of a .kld file; the "
            "two\n"
            "arms may be of different formats. Files larger than memory are no problem. Without targets anywhere\n"
            "there is no perplexity, NLL difference, accuracy or probability of the target.\n\n") +
        cli::verdict_statuses +
        "Examples: compare_logits metal.npy rocm.npy --targets tokens.npy --json result.json\n"
        "          compare_logits base.kld int4.safetensors --conventions llama.cpp");

    return cli::run(app, argc, argv, [&] {
        logitstat::CompareLogitsOptions options{.compare = flags.options()};
        options.compare.worst = cli::number<std::size_t>("--top", top);
        options.top_k = cli::number<std::size_t>("--top-k", top_k);
        options.vocabulary = cli::number<std::size_t>("--vocabulary", vocabulary);
        options.threads = cli::number<std::size_t>("--threads", threads);
        if (options.top_k < 2) { throw std::invalid_argument("--top-k: at least 2 are needed (see --help)"); }
        conventions.apply(options);
        if (!max_kl.empty()) { options.compare.rules.max_kl = cli::limit("--max-kl", max_kl); }
        std::vector<std::string> inputs;
        for (const auto& paths : {reference.paths(), candidate.paths(), positions.paths()}) {
            inputs.insert(inputs.end(), paths.begin(), paths.end());
        }
        outputs.check(inputs);

        auto ours = reference.open(), theirs = candidate.open();
        const logitstat::LogitsFile* const files[] = {&ours, &theirs};
        const auto where = positions.read(files);
        cli::Progress progress("rows");
        options.progress = [&](std::size_t done, std::size_t total) { progress(done, total); };
        const auto result = logitstat::compare_logits(ours, theirs, where, options);
        progress.clear();
        outputs.write(
            [&] { return logitstat::text_report(result, {.color = outputs.use_color()}); },
            {[&] { return logitstat::json_report(result); }, [&] { return logitstat::markdown_report(result); }});
        return logitstat::exit_code(result.verdict);
    });
}

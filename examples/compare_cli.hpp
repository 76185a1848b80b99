#pragma once

// What the programs that compare share: the options of a comparison, and reports that appear all or not at all.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cli.hpp"
#include "logitstat/compare.hpp"
#include "logitstat/io/read_options.hpp"

namespace cli {

/// What a program that compares one pair says of its exit status, for the end of --help.
inline const std::string verdict_statuses =
    "Exit status:\n"
    "  0  identical (every best token agrees) or pass (no more decided mismatches than allowed), limits kept\n"
    "  1  fail (more mismatches at decided positions than allowed, or a limit exceeded)\n"
    "  2  bad usage, unreadable or incomparable input, or a report that could not be written\n"
    "  3  inconclusive (too little evidence: no decided position, less than the options ask for, or a limit within\n"
    "     the interval of its figure)\n\n";

inline double limit(const std::string& option, std::string_view text) {
    const auto value = number<double>(option, text);
    logitstat::check_limit(option, value);
    return value + 0.0; // -0 is 0
}

inline double gap(const std::string& option, std::string_view text) {
    const double value = number<double>(option, text);
    named(option, [&] { logitstat::check_threshold(value); });
    return value + 0.0; // -0 is 0
}

/// Gaps from lists separated by commas, all given lists joined.
inline std::vector<double> gaps(const std::string& option, const std::vector<std::string>& lists) {
    std::vector<double> values;
    for (const std::string& list : lists) {
        for (std::size_t start = 0, end = 0; end < list.size() || start == 0; start = end + 1) {
            end = std::min(list.find(',', start), list.size());
            values.push_back(gap(option, std::string_view(list).substr(start, end - start)));
        }
    }
    return values;
}

/// The options of a comparison, as text until `options` has looked at them.
class CompareFlags {
  public:
    explicit CompareFlags(CLI::App& app, const std::string& quantiles = "floor-index") : quantiles_(quantiles) {
        const auto option = [&](const char* name, std::string& value, const char* type, const char* help) {
            return app.add_option(name, value, help)->type_name(type)->check(not_empty());
        };
        const auto list = [&](const char* name, std::vector<std::string>& value, const char* type, const char* help) {
            app.add_option(name, value, help)
                ->type_name(type)
                ->allow_extra_args(false) // one list each time: what follows may be a trace
                ->default_str(value.front());
        };
        option("--decided", decided_, "GAP",
               "the verdict looks at positions whose two best reference logits are at least GAP apart")
            ->capture_default_str();
        list("--thresholds", thresholds_, "GAP,...", "gaps of the threshold sweep, separated by commas");
        list("--ulps", ulps_, "N,...",
             "a second sweep, with the gap in steps of the type that the logits are stored in");
        option("--storage", storage_, "TYPE", "that type; auto: the narrowest that holds the reference's logits")
            ->check(CLI::IsMember({"auto", "bfloat16", "float16", "float32"}))
            ->capture_default_str();
        option("--max-mismatches", max_mismatches_, "N", "decided mismatches that a pass may have")
            ->capture_default_str();
        option("--min-decided", min_decided_, "N", "decided positions that a pass needs; with fewer it is inconclusive")
            ->capture_default_str();
        option("--max-rate", max_rate_, "R",
               "a mismatch rate in (0, 1] that a pass must exclude; while it does not, it is inconclusive");
        option("--max-ppl-increase", max_ppl_increase_, "PERCENT",
               "how much the perplexity may rise: fail when the whole interval of its rise is above, inconclusive "
               "when the limit lies within the interval");
        option("--confidence", confidence_, "C", "of every interval and bound, between 0 and 1")->capture_default_str();
        quantiles_option_ = option("--quantiles", quantiles_, "RULE", "rule for quantiles");
        quantiles_option_->check(CLI::IsMember({"floor-index", "linear", "linear-float"}))->capture_default_str();
        option("--lag", lag_, "N",
               "lags of the autocorrelation-consistent error (default: by the number of positions)");
        app.add_flag("--separate-chunks", separate_,
                     "chunks are separate documents: that error stops at their borders");
        option("--bootstrap", replicates_, "N", "replicates of the chunk bootstrap, for 30 to 20,000 chunks; 0: none")
            ->capture_default_str();
        option("--seed", seed_, "N", "of the chunk bootstrap")->capture_default_str();
        app.add_flag("--skip-non-finite", skip_non_finite_,
                     "leave out positions with an infinite or NaN value in either trace, and count them, instead of "
                     "refusing the trace");
        app.add_flag("--strict", strict_, "treat warnings (not like for like, a trace that may be cut) as errors");
    }

    /// Throws std::invalid_argument, naming the option, for a value that makes no sense.
    logitstat::CompareOptions options() const {
        logitstat::CompareOptions o;
        o.decided_gap = gap("--decided", decided_);
        o.thresholds = gaps("--thresholds", thresholds_);
        o.ulps = gaps("--ulps", ulps_);
        for (const auto type :
             {logitstat::storage_type::bfloat16, logitstat::storage_type::float16, logitstat::storage_type::float32}) {
            if (storage_ == to_string(type)) { o.storage = type; }
        }
        o.rules.max_mismatches = number<std::int64_t>("--max-mismatches", max_mismatches_);
        o.rules.min_decided = number<std::int64_t>("--min-decided", min_decided_);
        if (!max_rate_.empty()) { o.rules.max_rate = number<double>("--max-rate", max_rate_); }
        named("--max-rate", [&] { logitstat::check_rules(o.rules); });
        if (!max_ppl_increase_.empty()) {
            o.rules.max_perplexity_increase = limit("--max-ppl-increase", max_ppl_increase_) / 100;
        }
        o.confidence = named("--confidence", [&, value = number<double>("--confidence", confidence_)] {
            return logitstat::confidence_level(value);
        });
        if (quantiles_option_->count() > 0) {
            o.quantiles = quantiles_ == "linear"         ? logitstat::quantile_rule::linear
                          : quantiles_ == "linear-float" ? logitstat::quantile_rule::linear_float
                                                         : logitstat::quantile_rule::floor_index;
        }
        if (!lag_.empty()) { o.hac.lag = number<std::size_t>("--lag", lag_); }
        o.hac.stop_at_chunk_borders = separate_;
        o.bootstrap.replicates = number<std::uint32_t>("--bootstrap", replicates_);
        if (o.bootstrap.replicates > most_replicates) {
            throw std::invalid_argument("--bootstrap: at most " + std::to_string(most_replicates) + " (see --help)");
        }
        o.bootstrap.seed = number<std::uint32_t>("--seed", seed_);
        o.non_finite = skip_non_finite_ ? logitstat::non_finite_policy::skip : logitstat::non_finite_policy::error;
        o.strict = strict_;
        return o;
    }
    /// How the traces are to be read.
    logitstat::ReadOptions read_options() const { return {.keep_non_finite = skip_non_finite_}; }

  private:
    std::string decided_ = "2", storage_ = "auto", max_mismatches_ = "0", min_decided_ = "1", max_rate_,
                max_ppl_increase_, confidence_ = "0.95";
    static constexpr std::uint32_t most_replicates = 1'000'000;
    CLI::Option* quantiles_option_ = nullptr; // CLI11's, as long as the app
    std::string quantiles_, lag_, replicates_ = "2000", seed_ = "1";
    std::vector<std::string> thresholds_ = {"0.5,1,2"}, ulps_ = {"1,2,4"};
    bool separate_ = false, skip_non_finite_ = false, strict_ = false;
};

/// Reports into files or standard output. Nothing appears unless everything could be written: bytes go to the files,
/// then to standard output, and then the files get their names.
class Outputs {
  public:
    using Report = std::function<std::string()>;

    explicit Outputs(CLI::App& app) {
        app.add_flag("-q,--quiet", quiet_, "no text report: only files and the exit status");
        app.add_option("--color", color_, "colour the text report; auto: on a terminal, unless NO_COLOR is set")
            ->type_name("WHEN")
            ->check(CLI::IsMember({"auto", "always", "never"}))
            ->capture_default_str();
    }

    /// An option that also writes a report in another format. Call before parsing.
    void add(CLI::App& app, const std::string& flag, const std::string& what) {
        targets_.push_back(std::make_unique<std::pair<std::string, std::string>>(flag, ""));
        app.add_option(flag, targets_.back()->second, what + "; - is standard output, instead of the text")
            ->type_name("FILE")
            ->check(not_empty());
    }

    /// Throws std::invalid_argument when two reports, or a report and an input, would share a file or standard output.
    void check(const std::vector<std::string>& inputs) const {
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            const auto& [flag, path] = *targets_[i];
            if (path.empty()) { continue; }
            for (std::size_t j = 0; j < i; ++j) {
                const auto& [other_flag, other] = *targets_[j];
                if (path == "-" && other == "-") {
                    throw std::invalid_argument(other_flag + " - and " + flag + " - cannot share standard output");
                }
                if (!other.empty() && same_file(path, other)) {
                    throw std::invalid_argument(other_flag + " and " + flag + " name the same file: " + path);
                }
            }
            for (const std::string& input : inputs) {
                if (same_file(path, input)) {
                    throw std::invalid_argument(path + ": a report would overwrite this input");
                }
            }
        }
    }

    bool use_color() const {
        const char* no_color = std::getenv("NO_COLOR"); // counts unless empty (no-color.org)
        const bool terminal = isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
        return color_ == "always" || (color_ == "auto" && terminal);
    }

    /// `reports` in the order of the `add` calls.
    void write(const Report& text, const std::vector<Report>& reports) const {
        std::vector<std::unique_ptr<logitstat::OutputFile>> files;
        std::string printed;
        bool to_standard_output = false;
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            const std::string& path = targets_[i]->second;
            if (path == "-") {
                printed = reports[i]();
                to_standard_output = true;
            } else if (!path.empty()) {
                files.push_back(std::make_unique<logitstat::OutputFile>(path));
                files.back()->stream() << reports[i]();
                files.back()->flush();
            }
        }
        if (!to_standard_output && !quiet_) { printed = text(); }
        errno = 0;
        std::cout << printed << std::flush;
        if (!std::cout) {
            throw std::runtime_error("cannot write to standard output: " + std::generic_category().message(errno));
        }
        for (const auto& file : files) { file->commit(); }
    }

  private:
    std::vector<std::unique_ptr<std::pair<std::string, std::string>>> targets_; // flag and path; CLI11 keeps addresses
    std::string color_ = "auto";
    bool quiet_ = false;
};

} // namespace cli

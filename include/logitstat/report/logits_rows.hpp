#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/compare_logits.hpp"
#include "logitstat/report/figures.hpp"

/// What the reports of full logits share.
namespace logitstat::report {

struct NamedDistribution {
    std::string key, name; ///< as JSON has it, and for people
    const std::optional<Distribution>* figure;
};

/// The divergences and their kin, in the order of every report. The result lives as long as the comparison.
inline std::vector<NamedDistribution> divergences(const LogitsComparison& c) {
    return {{"kl", "KL(P || Q)", &c.kl},
            {"reverse_kl", "KL(Q || P)", &c.reverse_kl},
            {"js", "Jensen-Shannon", &c.jensen_shannon},
            {"total_variation", "total variation", &c.total_variation},
            {"logit_rms", "logit RMS difference", &c.logit_rms}};
}

/// "0.047041 +- 0.001951", by the preferred error; `plus_minus` as the format writes it.
inline std::string mean_text(double mean, const StandardErrors& se, int decimals, const std::string& plus_minus) {
    return figure(mean, decimals) + (se.value() ? " " + plus_minus + " " + figure(*se.value(), decimals) : "");
}

/// In percentage points.
inline StandardErrors in_percent(StandardErrors se) {
    for (std::optional<double>* one : {&se.iid, &se.clustered, &se.hac}) {
        if (*one) { **one *= 100; }
    }
    return se;
}

/// The conventions that were followed, or an empty string.
inline std::string conventions_text(const LogitsComparison& c) {
    const KlConventions& kl = c.kl_conventions;
    std::string text;
    const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
    if (kl.skip_below) { add("terms with ln P of at most " + shortest(*kl.skip_below) + " left out"); }
    if (kl.as_stored) { add("log-probabilities of .kld files as stored, not normalized"); }
    if (kl.single_precision) { add("figures of a row rounded to float"); }
    return text.empty() ? text : "KL(P || Q) and the NLLs by another tool's conventions: " + text;
}

/// Where a divergence is infinite: sentences.
inline std::vector<std::string> infinite_texts(const LogitsComparison& c) {
    std::vector<std::string> texts;
    const auto add = [&](const std::optional<Distribution>& figure, const std::string& name, const std::string& why) {
        const std::int64_t infinite = figure ? figure->infinite : c.positions; // not one finite value
        if (infinite > 0) {
            texts.push_back(name + " is infinite at " + counted(infinite, "position") + ", left out above: " + why);
        }
    };
    add(c.kl, "KL(P || Q)", "the candidate rules out a token that the reference allows");
    add(c.reverse_kl, "KL(Q || P)", "the reference rules out a token that the candidate allows");
    return texts;
}

/// With and without the censored targets: name, all, without. Precondition: there are some, and others.
inline std::vector<std::vector<std::string>> censored_rows(const LogitsComparison& c, const std::string& plus_minus) {
    std::vector<std::vector<std::string>> rows{
        {"reference perplexity"}, {"candidate perplexity"}, {"perplexity ratio"}, {"NLL difference"},
        {"delta p, points"},      {"delta p RMS"},          {"KL(P || Q)"}};
    for (const LogitsComparison* one : {&c, c.without_censored.get()}) {
        const auto perplexity = [&](const Perplexity& p) {
            return fixed(p.value, 4) + (p.se ? " " + plus_minus + " " + figure(*p.se, 4) : "");
        };
        const NllDifference& d = one->nll_difference;
        rows[0].push_back(perplexity(one->reference_perplexity));
        rows[1].push_back(perplexity(one->candidate_perplexity));
        rows[2].push_back(fixed(d.perplexity_ratio, 6));
        rows[3].push_back(mean_text(d.mean, d.se, 6, plus_minus));
        rows[4].push_back(
            one->delta_p ? mean_text(100 * one->delta_p->mean, in_percent(one->delta_p->se), 4, plus_minus) : "n/a");
        rows[5].push_back(
            one->delta_p_rms ? mean_text(100 * one->delta_p_rms->value, in_percent(one->delta_p_rms->se), 4, plus_minus)
                             : "n/a");
        rows[6].push_back(one->kl ? mean_text(one->kl->mean, one->kl->se, 6, plus_minus) : "n/a");
    }
    return rows;
}

} // namespace logitstat::report

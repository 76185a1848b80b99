// The published figures of llama.cpp's perplexity tool on a real base file and a quantized model's logits: each line of
// its output, to the last printed digit.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "logitstat/compare_logits_files.hpp"

namespace {

namespace fs = std::filesystem;
int passed = 0, failed = 0;

void check(bool ok, const std::string& what) {
    ++(ok ? passed : failed);
    if (!ok) { std::cout << "FAILED: " << what << '\n'; }
}

/// The figure with as many decimals as the text; "-0.000" when it is below zero, as printf has it.
std::string as_printed(double figure, const std::string& like) {
    const std::size_t point = like.find('.');
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*f", point == like.npos ? 0 : static_cast<int>(like.size() - point - 1),
                  figure);
    return buffer;
}

/// The numbers of a line, as text.
std::vector<std::string> numbers(const std::string& line) {
    std::vector<std::string> found;
    for (std::size_t i = 0; (i = line.find_first_of("-0123456789", i)) != line.npos;) {
        const std::size_t end = std::min(line.find_first_not_of("-.0123456789", i), line.size());
        found.push_back(line.substr(i, end - i));
        i = end;
    }
    return found;
}

struct Figures {
    double value;
    double se = -1; ///< -1: none is printed
};

void check_file(const fs::path& expected, const logitstat::LogitsComparison& c) {
    const auto& d = c.nll_difference;
    const auto &kl = *c.kl, &dp = *c.delta_p;
    const double same = 1 - c.disagreement_rate(), n = static_cast<double>(c.positions);
    const auto percent = [](double x) { return 100 * x; };
    std::vector<std::pair<std::string, Figures>> lines{
        {"Mean PPL(Q) ", {c.candidate_perplexity.value, *c.candidate_perplexity.se}},
        {"Mean PPL(base)", {c.reference_perplexity.value, *c.reference_perplexity.se}},
        {"Cor(", {percent(*d.correlation)}},
        {"Mean ln(", {d.mean, *d.se.iid}},
        {"Mean PPL(Q)/PPL(base)", {d.perplexity_ratio, d.perplexity_ratio * *d.se.iid}},
        {"Mean PPL(Q)-PPL(base)", {c.perplexity_difference->value, *c.perplexity_difference->se.iid}},
        {"Mean    KLD", {kl.mean, *kl.se.iid}},
        {"Maximum KLD", {kl.max}},
        {"Median  KLD", {kl.quantile(0.5)}},
        {"Minimum KLD", {kl.min}},
        {"Mean    Δp", {percent(dp.mean), percent(*dp.se.iid)}},
        {"Maximum Δp", {percent(dp.max)}},
        {"Median  Δp", {percent(dp.quantile(0.5))}},
        {"Minimum Δp", {percent(dp.min)}},
        {"RMS Δp", {percent(c.delta_p_rms->value), percent(*c.delta_p_rms->se.iid)}},
        {"Same top p", {percent(same), percent(std::sqrt(same * (1 - same) / (n - 1)))}}};
    for (const double p : logitstat::Distribution::probabilities) {
        char label[16];
        std::snprintf(label, sizeof label, "%4.1f%%", percent(p));
        lines.push_back({label + std::string("   KLD"), {kl.quantile(p)}});
        lines.push_back({label + std::string("   Δp"), {percent(dp.quantile(p))}});
    }
    std::ifstream file(expected);
    int matched = 0;
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == line.npos) { continue; }
        const std::string label = line.substr(0, colon), figures = line.substr(colon);
        const auto squeezed = [](std::string text) {
            std::erase(text, ' ');
            return text;
        };
        const Figures* ours = nullptr;
        for (const auto& [name, value] : lines) {
            if (squeezed(label) == squeezed(name) || (name.ends_with('(') && label.starts_with(name))) {
                ours = &value;
            }
        }
        check(ours != nullptr, "no figure of ours for the line: " + line);
        if (ours == nullptr) { continue; }
        const auto printed = numbers(figures);
        check(printed.size() == (ours->se < 0 ? 1u : 2u), "numbers in the line: " + line);
        check(as_printed(ours->value, printed[0]) == printed[0],
              label + ": expected " + printed[0] + ", got " + as_printed(ours->value, printed[0]));
        if (printed.size() > 1) {
            check(as_printed(ours->se, printed[1]) == printed[1],
                  label + ": expected an error of " + printed[1] + ", got " + as_printed(ours->se, printed[1]));
        }
        ++matched;
    }
    check(matched == 32, std::to_string(matched) + " lines with figures, expected 32");
}

} // namespace

int main(int argc, char** argv) {
    const fs::path folder = argc > 1 ? argv[1] : "";
    if (!fs::exists(folder / "base.kld")) {
        std::cout << "SKIPPED: no base.kld in " << folder << '\n';
        return 77;
    }
    auto base = logitstat::read_logits(folder / "base.kld"), candidate = logitstat::read_logits(folder / "s_int8.npy");
    const logitstat::CompareLogitsOptions tool{.compare = {.quantiles = logitstat::quantile_rule::linear_float},
                                               .kl = logitstat::KlConventions::llama_cpp()};
    check_file(folder / "int8_expected.txt", logitstat::compare_logits(base, candidate, tool));

    // By our own definitions: censored targets counted, figures with and without them.
    const auto ours = logitstat::compare_logits(base, candidate);
    check(ours.censored_targets == 15, "15 censored targets");
    check(ours.without_censored != nullptr && ours.without_censored->positions == 2016 - 15, "2001 others");
    check(ours.without_censored->reference_perplexity.value < ours.reference_perplexity.value, "the hardest left out");
    check(std::abs(ours.kl->mean - 0.047033) < 2e-5 && ours.kl->min > 0, "KL near the tool's, never below zero");
    // What that tool gets wrong: a model against itself.
    const auto itself = logitstat::compare_logits(base, base);
    check(itself.identical_data && itself.kl->max == 0 && itself.nll_difference.perplexity_ratio == 1, "base itself");
    std::cout << passed << " checks passed, " << failed << " failed\n";
    return failed == 0 ? 0 : 1;
}

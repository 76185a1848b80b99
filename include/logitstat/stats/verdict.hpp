#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "logitstat/stats/proportion.hpp"
#include "logitstat/stats/sweep.hpp"

namespace logitstat {

/// What a comparison concludes: of the top-1 tokens at the decided threshold, and of limits where there are any.
enum class Verdict {
    identical,   ///< every top-1 token agrees (the logits may still differ)
    pass,        ///< tokens differ, but no more than allowed of the decided ones
    fail,        ///< more decided mismatches than allowed, or a limit exceeded
    inconclusive ///< too little evidence to judge; never counted as a pass
};

/// The enumerator's name.
constexpr std::string_view to_string(Verdict verdict) {
    switch (verdict) {
    case Verdict::identical: return "identical";
    case Verdict::pass: return "pass";
    case Verdict::fail: return "fail";
    case Verdict::inconclusive: return "inconclusive";
    }
    return "unknown";
}

/// The exit status of a program that gates on a verdict: 0 identical or pass, 1 fail, 3 inconclusive. 2 is left for bad
/// usage and unreadable or incomparable input, so that a broken run is never mistaken for a verdict.
constexpr int exit_code(Verdict verdict) {
    switch (verdict) {
    case Verdict::identical:
    case Verdict::pass: return 0;
    case Verdict::fail: return 1;
    case Verdict::inconclusive: return 3;
    }
    return 2;
}

/// What a pass asks for. `min_decided` and `max_rate` are demands on the evidence: without it, inconclusive.
struct VerdictRules {
    std::int64_t max_mismatches = 0;     ///< decided mismatches that are allowed; more is a fail
    std::int64_t min_decided = 1;        ///< decided positions that are needed
    std::optional<double> max_rate = {}; ///< a mismatch rate that the upper bound must exclude: bound < max_rate
    /// By how much the perplexity may rise, as a fraction: 0.01 is 1 %. A limit, see stats/limit.hpp.
    std::optional<double> max_perplexity_increase = {};
    std::optional<double> max_kl = {}; ///< nats: a limit of mean KL(P || Q); of full logits only
};

/// Throws std::invalid_argument, beginning with `name`, unless a limit is finite and >= 0.
inline void check_limit(const std::string& name, double limit) {
    if (!simd::is_finite(limit) || limit < 0) {
        throw std::invalid_argument(name + ": a limit must be finite and at least 0");
    }
}

/// Throws std::invalid_argument unless the counts are >= 0, the rate in (0, 1] and the limits finite and >= 0.
inline void check_rules(const VerdictRules& rules) {
    if (rules.max_mismatches < 0 || rules.min_decided < 0) {
        throw std::invalid_argument("max_mismatches and min_decided must be at least 0");
    }
    if (rules.max_rate && !(simd::is_finite(*rules.max_rate) && *rules.max_rate > 0 && *rules.max_rate <= 1)) {
        throw std::invalid_argument("max_rate must be above 0 and at most 1");
    }
    if (rules.max_perplexity_increase) { check_limit("max_perplexity_increase", *rules.max_perplexity_increase); }
    if (rules.max_kl) { check_limit("max_kl", *rules.max_kl); }
}

/// Is the evidence of a decided count what the rules ask for? The bound is the one-sided Clopper-Pearson one.
inline bool enough_evidence(const DecidedCount& decided, const VerdictRules& rules, confidence_level level) {
    if (decided.positions == 0 || decided.positions < rules.min_decided) { return false; }
    return !rules.max_rate || proportion_upper_bound(decided.mismatches, decided.positions, level) < *rules.max_rate;
}

/// The verdict on `disagreements` top-1 differences, of which `decided` counts those at the threshold. Equal data are
/// identical whatever the rules. Arms that only agree on every token are identical too, except where the rules ask for
/// evidence beyond the default and it is missing. O(1). Throws std::invalid_argument for rules that make no sense.
inline Verdict verdict_of(std::int64_t disagreements, const DecidedCount& decided, bool identical_data,
                          const VerdictRules& rules = {}, confidence_level level = confidence_level(0.95)) {
    check_rules(rules);
    const bool asks_for_evidence = rules.max_rate.has_value() || rules.min_decided > 1;
    if (identical_data) { return Verdict::identical; }
    if (decided.mismatches > rules.max_mismatches) { return Verdict::fail; }
    if (disagreements == 0 && !asks_for_evidence) { return Verdict::identical; }
    if (!enough_evidence(decided, rules, level)) { return Verdict::inconclusive; }
    return disagreements == 0 ? Verdict::identical : Verdict::pass;
}

} // namespace logitstat

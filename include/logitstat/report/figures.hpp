#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logitstat/compare.hpp"
#include "logitstat/report/format.hpp"

/// Figures of a comparison as all reports word them.
namespace logitstat::report {

/// "rank 2", or "beyond top-8".
inline std::string rank_name(std::optional<std::size_t> rank, std::size_t k) {
    return rank ? "rank " + std::to_string(*rank) : "beyond top-" + std::to_string(k);
}

/// The rows of a table of ranks, name and count. Ranks among a whole vocabulary can be any: beyond 8 they are put
/// together in bands that double, "rank 9 to 16", "rank 17 to 32".
inline std::vector<std::pair<std::string, std::int64_t>> rank_rows(const Comparison& c) {
    std::vector<std::pair<std::string, std::int64_t>> rows;
    for (const RankCount& r : c.ranks) { // ascending
        std::string name = rank_name(r.rank, c.candidate_k);
        if (c.vocabulary > 0 && r.rank && *r.rank > 8) {
            const std::size_t last = std::bit_ceil(*r.rank);
            name = "rank " + std::to_string(last / 2 + 1) + " to " + std::to_string((std::min)(last, c.vocabulary));
        }
        if (rows.empty() || rows.back().first != name) { rows.push_back({std::move(name), 0}); }
        rows.back().second += r.count;
    }
    return rows;
}

/// "position 17 (chunk 17, pos 0)".
inline std::string place(const Disagreement& at) {
    return "position " + std::to_string(at.index) + " (chunk " + std::to_string(at.chunk) + ", pos " +
           std::to_string(at.pos) + ")";
}

/// The model and device that a trace says it came from, or an empty string.
inline std::string arm_name(const TraceSource& source) {
    const auto model = source.metadata.find("model");
    const auto device = source.metadata.find("device");
    if (!model && !device) { return {}; }
    return printable(model.value_or("unnamed model")) + (device ? " on " + printable(*device) : "");
}

/// "95 %".
inline std::string level(confidence_level confidence) {
    std::array<char, 32> buffer; // six digits: 100 * 0.57 is not 57 in binary
    return std::string(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                                    100 * confidence.value(), std::chars_format::general, 6)
                                          .ptr) +
           " %";
}

/// "1.04 to 13.92 %", for an interval of rates.
inline std::string percent_range(const Interval& rates, int decimals = 2) {
    return fixed(100 * rates.lo, decimals) + " to " + percent(rates.hi, decimals);
}

/// "-0.0188 to +0.0588", for an interval of differences.
inline std::string signed_range(const Interval& range, int decimals) {
    return with_sign(range.lo, decimals) + " to " + with_sign(range.hi, decimals);
}
inline std::string range(const Interval& range, int decimals) {
    return figure(range.lo, decimals) + " to " + figure(range.hi, decimals);
}

/// "0.309", or "<0.0001".
inline std::string p_value(std::optional<double> p) {
    if (!p) { return "n/a"; }
    return *p < 0.0001 ? "<0.0001" : fixed(*p, *p < 0.01 ? 4 : 3);
}
/// "p = 0.309", or "p < 0.0001".
inline std::string p_equals(std::optional<double> p) { return p && *p < 0.0001 ? "p < 0.0001" : "p = " + p_value(p); }

/// What a count of mismatches says of the rate: the largest rate not excluded, and for some mismatches the two-sided
/// interval: "below 1.09 %", "below 1.80 % (0.15 to 2.04 %)".
inline std::string bounds(const Proportion& rate) {
    if (rate.k == rate.n) { return "nothing is excluded"; }
    return "below " + percent_up(rate.upper_bound) + (rate.k == 0 ? "" : " (" + percent_range(rate.interval) + ")");
}

inline std::string_view describe(dependence kind) {
    switch (kind) {
    case dependence::iid: return "iid";
    case dependence::clustered: return "clustered by chunk";
    case dependence::hac: return "autocorrelation-consistent";
    }
    return "unknown";
}

/// Which standard error is used for intervals and tests, and why.
inline std::string which_error(const StandardErrors& se) {
    const std::string chunks = counted(static_cast<std::int64_t>(se.clusters), "chunk");
    const std::string name(describe(se.preferred()));
    if (se.preferred() == dependence::iid) {
        return name + ": " + chunks + (se.clusters == 1 ? " is" : " are") +
               " too few to cluster by, and the autocorrelation-consistent error is smaller";
    }
    if (se.preferred() == dependence::hac) {
        return name + ": " + chunks + (se.clusters == 1 ? " is" : " are") +
               " too few to cluster by; dependence is taken to fade along the text";
    }
    return name + (se.clusters == se.n ? ", here the same as iid: every chunk is one position"
                                       : ": with " + chunks + " nothing need be assumed of dependence within one");
}

/// A value of a limit's figure as people read it: fractions in per cent.
inline std::string in_unit_of(const Limit& limit, double value, const std::string& percent_sign = " %") {
    return limit.fraction ? figure(100 * value, 3) + percent_sign : figure(value, 6);
}

/// How a limit came out, in words.
inline std::string limit_text(const Limit& limit) {
    const bool infinite = limit.estimate && simd::is_infinite(*limit.estimate);
    const std::string interval = limit.interval && !infinite ? " (" + in_unit_of(limit, limit.interval->lo, "") +
                                                                   " to " + in_unit_of(limit, limit.interval->hi) + ")"
                                                             : "";
    const std::string value = !limit.estimate ? "unknown" : infinite ? "infinite" : in_unit_of(limit, *limit.estimate);
    return limit.figure + " " + value + interval +
           (limit.verdict == Verdict::pass   ? " is within"
            : limit.verdict == Verdict::fail ? " is above"
                                             : " is not shown to be above or within") +
           " the limit of " + in_unit_of(limit, limit.most) + (limit.caveat.empty() ? "" : " (" + limit.caveat + ")");
}

/// What the verdict on the tokens rests on, in one sentence.
inline std::string token_verdict_reason(const Comparison& c) {
    const std::string gap = "(gap >= " + shortest(c.decided.threshold) + ")";
    const std::string decided = counted(c.decided.positions, "position") + " that the reference had decided " + gap;
    const std::string mismatches = c.decided.mismatches == 0   ? "no mismatch"
                                   : c.decided.mismatches == 1 ? "1 mismatch"
                                                               : std::to_string(c.decided.mismatches) + " mismatches";
    const double bound = c.rate(c.decided).upper_bound;
    const std::string at_level = " at " + level(c.confidence) + " confidence";
    const std::string excluded = bound >= 1 ? "no mismatch rate is excluded" + at_level
                                 : bound > 0.1
                                     ? "only mismatch rates above " + percent_up(bound, 1) + " are excluded" + at_level
                                     : "mismatch rates above " + percent_up(bound) + " are excluded" + at_level;
    switch (c.token_verdict) {
    case Verdict::identical:
        return "every top-1 token agrees; " +
               std::string(c.identical_data                 ? "all data are equal"
                           : c.skipped_non_finite > 0       ? "positions were left out, see below"
                           : c.reference_k != c.candidate_k ? "the other data are not all equal, see below"
                                                            : "the numbers differ, see below");
    case Verdict::pass: return mismatches + " at the " + decided + "; " + excluded;
    case Verdict::fail:
        return mismatches + " at the " + decided + " (" + percent(c.decided.rate()) + ")" +
               (c.rules.max_mismatches > 0 ? ", more than the " + std::to_string(c.rules.max_mismatches) + " allowed"
                                           : "");
    case Verdict::inconclusive:
        if (c.decided.positions == 0) {
            return "the reference had decided no position " + gap + ": there is nothing to judge by";
        }
        if (c.decided.positions < c.rules.min_decided) {
            return mismatches + " at the " + decided + ", fewer than the " + std::to_string(c.rules.min_decided) +
                   " asked for";
        }
        return mismatches + " at the " + decided + " do" + (c.decided.mismatches < 2 ? "es" : "") +
               " not exclude a mismatch rate of " + percent(c.rules.max_rate.value_or(0)) + " at " +
               level(c.confidence) + " confidence (bound " + percent_up(bound) + ")";
    }
    return {};
}

/// What the verdict rests on, in clauses that "; " joins: tokens and limits, first those that decided it.
inline std::string verdict_reason(const Comparison& c) {
    std::string deciding, others;
    const auto add = [&](Verdict verdict, const std::string& clause) {
        std::string& to = verdict == c.verdict ? deciding : others;
        to += (to.empty() ? "" : "; ") + clause;
    };
    add(c.token_verdict, token_verdict_reason(c));
    for (const Limit& limit : c.limits) { add(limit.verdict, limit_text(limit)); }
    return deciding + (deciding.empty() || others.empty() ? "" : "; ") + others;
}

} // namespace logitstat::report

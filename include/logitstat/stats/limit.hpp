#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/verdict.hpp"

/// A limit on a figure that is estimated, such as the mean KL divergence. It is the interval that is held against the
/// limit and not the estimate: a text too short to tell gives neither a pass nor a fail.
namespace logitstat {

/// A limit, and what came out.
struct Limit {
    std::string figure;               ///< what is limited, in words
    double most = 0;                  ///< the largest value that passes, in the unit of the figure
    std::optional<double> estimate;   ///< of the figure, maybe infinite; nothing where it does not exist
    std::optional<Interval> interval; ///< of the figure; nothing where it does not exist
    bool fraction = false;            ///< a share of 1, which reports for people show in per cent
    /// pass: the whole interval is at most `most`; fail: the whole interval is above; else inconclusive. `compare` sets
    /// pass where all data are equal, since nothing has moved.
    Verdict verdict = Verdict::inconclusive;
    std::string caveat = {}; ///< why the interval does not decide where it seems to; see `doubt`
};

/// Holds the interval of an estimate against a limit; without an interval it is inconclusive, unless the estimate is
/// infinite: +infinity fails, -infinity passes. `most`, estimate and interval are in one unit, whatever it is; with
/// `fraction` that is a share of 1. O(1). Throws std::invalid_argument unless `most` is finite. Precondition: no NaN in
/// estimate and interval.
inline Limit limit_of(std::string figure, double most, std::optional<double> estimate, std::optional<Interval> interval,
                      bool fraction = false) {
    if (!simd::is_finite(most)) { throw std::invalid_argument("the limit of " + figure + " is not finite"); }
    Limit limit{std::move(figure), most, estimate, interval, fraction};
    if (interval) {
        if (interval->lo > most) { limit.verdict = Verdict::fail; }
        if (interval->hi <= most) { limit.verdict = Verdict::pass; }
    } else if (estimate && simd::is_infinite(*estimate)) {
        limit.verdict = *estimate > 0 ? Verdict::fail : Verdict::pass;
    }
    return limit;
}

/// Takes back a verdict that the interval gave, where something known of the data says that it proves nothing: the
/// limit is then inconclusive, and the caveat tells why. Another verdict stays. O(1).
inline void doubt(Limit& limit, Verdict verdict, std::string why) {
    if (limit.verdict != verdict) { return; }
    limit.verdict = Verdict::inconclusive;
    limit.caveat = std::move(why);
}

/// The verdict on tokens and limits together: fail if any of them is, else inconclusive if any is, else that of the
/// tokens. Equal data are identical whatever the limits. O(limits).
inline Verdict with_limits(Verdict tokens, std::span<const Limit> limits, bool identical_data) {
    if (identical_data) { return tokens; }
    for (const Verdict worse : {Verdict::fail, Verdict::inconclusive}) {
        if (tokens == worse || std::ranges::find(limits, worse, &Limit::verdict) != limits.end()) { return worse; }
    }
    return tokens;
}

} // namespace logitstat

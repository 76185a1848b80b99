#pragma once

#include <cstdint>
#include <string_view>

#include "logitstat/stats/sweep.hpp"

namespace logitstat {

/// What a comparison concludes at the decided threshold.
enum class Verdict {
    identical,   ///< every top-1 token agrees (the logits may still differ)
    pass,        ///< tokens differ, but no more than allowed of the decided ones
    fail,        ///< more decided mismatches than allowed
    inconclusive ///< too few decided positions to judge; never counted as a pass
};

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

/// The verdict for `disagreements` top-1 differences of which `decided` counts those at the threshold.
constexpr Verdict verdict_of(std::int64_t disagreements, const DecidedCount& decided) {
    if (disagreements == 0) { return Verdict::identical; }
    if (decided.mismatches > 0) { return Verdict::fail; }
    return decided.positions == 0 ? Verdict::inconclusive : Verdict::pass;
}

} // namespace logitstat

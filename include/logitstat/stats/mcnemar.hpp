#pragma once

#include <cstddef>
#include <cstdint>

#include "logitstat/stats/agreement.hpp"
#include "logitstat/stats/sign_test.hpp"
#include "logitstat/trace/trace.hpp"

namespace logitstat {

/// Which arm's best token is the corpus token: the 2 x 2 table behind the two accuracies, and whether they differ.
struct McNemar {
    std::int64_t both = 0,  ///< positions where both arms are right
        only_reference = 0, ///< positions where the reference alone is right
        only_candidate = 0, ///< positions where the candidate alone is right
        neither = 0;        ///< positions where both are wrong
    double p = 1; ///< exact two-sided p-value of "both arms are right equally often"; 1 without discordant positions
};

/// The table and McNemar's exact test (1947, doi:10.1007/BF02295996): given the discordant positions, each is equally
/// likely to favour either arm, which is a sign test. O(n). Throws std::invalid_argument when the shapes do not fit.
template <trace_like R, trace_like C> McNemar mcnemar(const R& reference, const C& candidate) {
    detail::check_pair(reference, candidate);
    const auto r = reference.view().ids(0), target = reference.view().target;
    const auto q = candidate.view().ids(0);
    McNemar table;
    for (std::size_t i = 0; i < r.size(); ++i) {
        const bool reference_right = r[i] == target[i], candidate_right = q[i] == target[i];
        table.both += reference_right && candidate_right ? 1 : 0;
        table.only_reference += reference_right && !candidate_right ? 1 : 0;
        table.only_candidate += !reference_right && candidate_right ? 1 : 0;
    }
    table.neither = static_cast<std::int64_t>(r.size()) - table.both - table.only_reference - table.only_candidate;
    table.p = sign_test_p(table.only_reference, table.only_candidate);
    return table;
}

} // namespace logitstat

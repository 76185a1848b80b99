#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "logitstat/compare.hpp"
#include "stats/oracle.hpp"
#include "stats/random_pair.hpp"

/// Pairs that say the same as another pair, or the same but for something that is known.
namespace properties {

using oracle::Pair;
using oracle::Random;
using oracle::Row;
using oracle::Rows;

template <class Real> struct Traces {
    logitstat::Trace<Real> reference, candidate;
    explicit Traces(const Pair& pair)
        : reference(oracle::to_trace<Real>(pair.reference, pair.reference_k)),
          candidate(oracle::to_trace<Real>(pair.candidate, pair.candidate_k)) {}
    logitstat::Comparison compared(const logitstat::CompareOptions& options = {}) const {
        return logitstat::compare(reference, candidate, options);
    }
};

template <class Real> logitstat::Comparison compared(const Pair& pair, const logitstat::CompareOptions& options = {}) {
    return Traces<Real>(pair).compared(options);
}

/// The values of `random_pair`, in chunks of every kind: one, one a position, few and unlike, more than 30.
inline Pair pair_of_any_shape(Random& random, bool to_float) {
    const std::size_t n = random.pick<std::size_t>({1, 2, 3, 5, 31, 64, 65, 120, 257});
    Pair pair = oracle::random_pair(random, {.reference_float = to_float, .candidate_float = to_float, .n = n});
    const double change = random.pick({0.0, 1.0, 0.05, 0.3, 0.5});
    std::int32_t chunk = 0, pos = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && random.chance(change)) {
            chunk += 1 + static_cast<std::int32_t>(random.below(3)); // numbers may be left out
            pos = 0;
        }
        pair.reference[i].chunk = pair.candidate[i].chunk = chunk;
        pair.reference[i].pos = pair.candidate[i].pos = pos++;
    }
    return pair;
}

inline void for_both(Pair& pair, auto change) {
    for (Rows* rows : {&pair.reference, &pair.candidate}) { change(*rows); }
}

inline Pair swapped(Pair pair) {
    std::swap(pair.reference, pair.candidate);
    std::swap(pair.reference_k, pair.candidate_k);
    return pair;
}

/// [first, last) of each chunk.
inline std::vector<std::pair<std::size_t, std::size_t>> chunk_runs(const Pair& pair) {
    std::vector<std::pair<std::size_t, std::size_t>> runs;
    for (std::size_t i = 0; i < pair.size(); ++i) {
        if (i == 0 || pair.reference[i].chunk != pair.reference[i - 1].chunk) { runs.push_back({i, i}); }
        runs.back().second = i + 1;
    }
    return runs;
}

/// The positions at `order`, which may repeat some; the c-th run of them is chunk number `chunk[c]`, numbered from 0.
inline Pair taken(const Pair& pair, const std::vector<std::size_t>& order, const std::vector<std::int32_t>& chunk) {
    Pair result = pair;
    result.reference.clear();
    result.candidate.clear();
    std::int32_t pos = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        pos = i > 0 && chunk[i] == chunk[i - 1] ? pos + 1 : 0;
        result.reference.push_back(pair.reference[order[i]]);
        result.candidate.push_back(pair.candidate[order[i]]);
        for_both(result, [&](Rows& rows) {
            rows.back().chunk = chunk[i];
            rows.back().pos = pos;
        });
    }
    return result;
}

/// The positions of every chunk in another order, and the chunks too.
inline Pair shuffled_in_chunks(Random& random, const Pair& pair) {
    const auto shuffle = [&](auto& list) {
        for (std::size_t i = list.size(); i > 1; --i) { std::swap(list[i - 1], list[random.below(i)]); }
    };
    auto runs = chunk_runs(pair);
    shuffle(runs);
    std::vector<std::size_t> order;
    std::vector<std::int32_t> chunk;
    for (std::size_t c = 0; c < runs.size(); ++c) {
        std::vector<std::size_t> run(runs[c].second - runs[c].first);
        std::iota(run.begin(), run.end(), runs[c].first);
        shuffle(run);
        order.insert(order.end(), run.begin(), run.end());
        chunk.insert(chunk.end(), run.size(), static_cast<std::int32_t>(c));
    }
    return taken(pair, order, chunk);
}

/// The whole pair `times` times, the copies being further chunks.
inline Pair repeated(const Pair& pair, std::size_t times) {
    std::vector<std::size_t> order;
    std::vector<std::int32_t> chunk;
    const std::int32_t last = pair.reference.back().chunk;
    for (std::size_t t = 0; t < times; ++t) {
        for (std::size_t i = 0; i < pair.size(); ++i) {
            order.push_back(i);
            chunk.push_back(static_cast<std::int32_t>(t) * (last + 1) + pair.reference[i].chunk);
        }
    }
    return taken(pair, order, chunk);
}

/// Every position twice, in its own chunk.
inline Pair doubled_in_chunks(const Pair& pair) {
    std::vector<std::size_t> order;
    std::vector<std::int32_t> chunk;
    for (std::size_t i = 0; i < pair.size(); ++i) {
        order.insert(order.end(), 2, i);
        chunk.insert(chunk.end(), 2, pair.reference[i].chunk);
    }
    return taken(pair, order, chunk);
}

/// Every token under another number, targets too.
inline Pair renamed(Random& random, Pair pair) {
    std::map<std::int32_t, std::int32_t> names;
    const auto rename = [&](std::int32_t& token) {
        const auto fresh = static_cast<std::int32_t>(names.size() * 65536 + random.below(65536));
        token = names.emplace(token, fresh).first->second;
    };
    for_both(pair, [&](Rows& rows) {
        for (Row& row : rows) {
            rename(row.target);
            for (auto& id : row.ids) { rename(id); }
        }
    });
    return pair;
}

/// A comparison without the names of positions and tokens: what is left are figures. `in_order`: equal gaps keep their
/// order, and so do the ranks that belong to them.
inline logitstat::Comparison without_names(logitstat::Comparison c, bool in_order = true) {
    const auto forget = [&](logitstat::Disagreement& at) {
        logitstat::Disagreement figures;
        figures.gap = at.gap;
        if (in_order) { figures.rank = at.rank; }
        at = figures;
    };
    if (c.largest_gap) { forget(*c.largest_gap); }
    for (auto& at : c.worst) { forget(at); }
    c.nll_difference.largest_index = 0;
    return c;
}

inline bool close(const logitstat::Interval& a, const logitstat::Interval& b, long double tolerance) {
    const auto ends = [&](double x, double y) {
        return x == y || oracle::close(x, y, tolerance);
    }; // infinite ends, too
    return ends(a.lo, b.lo) && ends(a.hi, b.hi);
}
inline bool close(const std::optional<logitstat::Interval>& a, const std::optional<logitstat::Interval>& b,
                  long double tolerance) {
    return a && b ? close(*a, *b, tolerance) : !a && !b;
}
inline bool close(const logitstat::ClusteredProportion& a, const logitstat::ClusteredProportion& b,
                  long double tolerance) {
    return oracle::close(a.design_effect, b.design_effect, tolerance) &&
           oracle::close(a.effective_size, b.effective_size, tolerance) && close(a.interval, b.interval, tolerance) &&
           oracle::close(a.upper_bound, b.upper_bound, tolerance);
}

} // namespace properties

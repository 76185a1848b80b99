#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "logitstat/stats/quantile.hpp"
#include "logitstat/stats/verdict.hpp"
#include "logitstat/trace/trace.hpp"

/// The statistics of a pair once more: plain loops over rows, in long double, written from their definitions and not
/// from the library. Slow and obvious on purpose.
namespace oracle {

/// |a - b| within `tolerance`, relative where b is large. False when either is NaN or only one is infinite.
inline bool close(long double a, long double b, long double tolerance) {
    return std::fabs(a - b) <= tolerance * std::max(1.0L, std::fabs(b));
}

template <class A, class B> bool close(const std::optional<A>& a, const std::optional<B>& b, long double tolerance) {
    return a && b ? close(static_cast<long double>(*a), static_cast<long double>(*b), tolerance) : !a && !b;
}

/// One position of one arm. The values must fit the real type that the trace is to have.
struct Row {
    std::int32_t chunk = 0, pos = 0, target = 0;
    double nll = 0;
    std::vector<std::int32_t> ids;
    std::vector<double> logits;
};
using Rows = std::vector<Row>;

template <class Real> logitstat::Trace<Real> to_trace(const Rows& rows, std::size_t k) {
    logitstat::Trace<Real> trace;
    trace.k = k;
    for (const Row& row : rows) {
        trace.chunk.push_back(row.chunk);
        trace.pos.push_back(row.pos);
        trace.target.push_back(row.target);
        trace.nll.push_back(static_cast<Real>(row.nll));
    }
    for (std::size_t j = 0; j < k; ++j) {
        for (const Row& row : rows) {
            trace.top_ids.push_back(row.ids[j]);
            trace.top_logits.push_back(static_cast<Real>(row.logits[j]));
        }
    }
    return trace;
}

/// Mean and n-1 variance by two passes.
struct MeanVariance {
    long double mean = 0, variance = 0;
    explicit MeanVariance(const std::vector<long double>& values) {
        const auto n = static_cast<long double>(values.size());
        for (const long double x : values) { mean += x / n; }
        for (const long double x : values) { variance += (x - mean) * (x - mean) / (n - 1); }
    }
};

/// sqrt(variance / n); does not exist for one value.
inline std::optional<long double> standard_error(const std::vector<long double>& values) {
    if (values.size() < 2) { return std::nullopt; }
    return std::sqrt(MeanVariance(values).variance / static_cast<long double>(values.size()));
}

inline long double quantile(std::vector<long double> values, double p, logitstat::quantile_rule rule) {
    std::sort(values.begin(), values.end());
    const std::size_t last = values.size() - 1;
    if (rule == logitstat::quantile_rule::floor_index) { // p n is a double in the definition: 0.99 * 100 is 99 there
        return values[std::min(static_cast<std::size_t>(std::floor(p * static_cast<double>(values.size()))), last)];
    }
    const long double place = static_cast<long double>(p) * static_cast<long double>(last);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const long double part = place - std::floor(place);
    return (1 - part) * values[below] + part * values[std::min(below + 1, last)];
}

/// Both arms, position by position.
struct Pair {
    Rows reference, candidate;
    std::size_t reference_k = 0, candidate_k = 0;

    std::size_t size() const { return reference.size(); }
    bool differs(std::size_t i) const { return reference[i].ids[0] != candidate[i].ids[0]; }
    double gap(std::size_t i) const { return reference[i].logits[0] - reference[i].logits[1]; }

    /// Of the reference's choice in the candidate, from 1; 0 beyond top-k.
    std::size_t rank(std::size_t i) const {
        for (std::size_t j = 0; j < candidate_k; ++j) {
            if (candidate[i].ids[j] == reference[i].ids[0]) { return j + 1; }
        }
        return 0;
    }

    std::int64_t count(auto condition) const {
        std::int64_t total = 0;
        for (std::size_t i = 0; i < size(); ++i) { total += condition(i) ? 1 : 0; }
        return total;
    }
    std::int64_t disagreements() const {
        return count([&](std::size_t i) { return differs(i); });
    }
    std::int64_t decided(double t) const {
        return count([&](std::size_t i) { return gap(i) >= t; });
    }
    std::int64_t mismatches(double t) const {
        return count([&](std::size_t i) { return gap(i) >= t && differs(i); });
    }
    std::int64_t hard_ties() const {
        return count([&](std::size_t i) { return reference[i].logits[0] == reference[i].logits[1]; });
    }
    std::int64_t candidate_ties() const {
        return count([&](std::size_t i) {
            return differs(i) && rank(i) != 0 && candidate[i].logits[rank(i) - 1] == candidate[i].logits[0];
        });
    }

    std::map<std::size_t, std::int64_t> ranks() const {
        std::map<std::size_t, std::int64_t> counts;
        for (std::size_t i = 0; i < size(); ++i) {
            if (differs(i)) { ++counts[rank(i)]; }
        }
        return counts;
    }

    /// All disagreements, largest gap first, equal gaps in trace order.
    std::vector<std::size_t> worst() const {
        std::vector<std::size_t> list;
        for (std::size_t i = 0; i < size(); ++i) {
            if (differs(i)) { list.push_back(i); }
        }
        std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) { return gap(a) > gap(b); });
        return list;
    }

    /// candidate - reference on the reference's choice, where the candidate lists it.
    std::vector<long double> deltas() const {
        std::vector<long double> list;
        for (std::size_t i = 0; i < size(); ++i) {
            if (const std::size_t r = rank(i); r != 0) {
                list.push_back(static_cast<long double>(candidate[i].logits[r - 1]) - reference[i].logits[0]);
            }
        }
        return list;
    }

    std::vector<long double> nll_differences() const {
        std::vector<long double> list;
        for (std::size_t i = 0; i < size(); ++i) {
            list.push_back(static_cast<long double>(candidate[i].nll) - reference[i].nll);
        }
        return list;
    }

    std::int64_t correct(const Rows& arm) const {
        return count([&](std::size_t i) { return arm[i].ids[0] == arm[i].target; });
    }

    std::size_t chunks() const {
        std::size_t changes = 1;
        for (std::size_t i = 1; i < size(); ++i) { changes += reference[i].chunk != reference[i - 1].chunk; }
        return changes;
    }

    bool identical_data() const {
        bool same = reference_k == candidate_k;
        for (std::size_t i = 0; same && i < size(); ++i) {
            same = reference[i].nll == candidate[i].nll && reference[i].ids == candidate[i].ids &&
                   reference[i].logits == candidate[i].logits;
        }
        return same;
    }

    logitstat::Verdict verdict(double t) const {
        if (disagreements() == 0) { return logitstat::Verdict::identical; }
        if (mismatches(t) > 0) { return logitstat::Verdict::fail; }
        return decided(t) == 0 ? logitstat::Verdict::inconclusive : logitstat::Verdict::pass;
    }
};

inline std::vector<long double> nlls(const Rows& rows) {
    std::vector<long double> list;
    for (const Row& row : rows) { list.push_back(row.nll); }
    return list;
}

} // namespace oracle

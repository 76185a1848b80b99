#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "logitstat/trace/trace.hpp"

/// What a reader of traces promises, checked without the library's own checks.
namespace testing {

/// Equal bit by bit: unlike ==, false for NaN against a number, and tells -0 from 0.
template <class Real> bool same_bits(std::span<const Real> a, std::span<const Real> b) {
    using bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](Real x, Real y) { return std::bit_cast<bits>(x) == std::bit_cast<bits>(y); });
}
template <class Real> bool same_bits(const logitstat::Column<Real>& a, const logitstat::Column<Real>& b) {
    return same_bits(std::span<const Real>(a), std::span<const Real>(b));
}

/// Of traces of any kind, as long as their values have the same type.
template <logitstat::trace_like A, logitstat::trace_like B> bool same_data(const A& left, const B& right) {
    const auto a = left.view();
    const auto b = right.view();
    return a.k == b.k && std::ranges::equal(a.chunk, b.chunk) && std::ranges::equal(a.pos, b.pos) &&
           std::ranges::equal(a.target, b.target) && std::ranges::equal(a.top_ids, b.top_ids) &&
           same_bits(a.nll, b.nll) && same_bits(a.top_logits, b.top_logits);
}

/// The reason why a trace is none that a reader may return, or "". Written without the library's own checks.
template <logitstat::trace_like T> std::string broken_invariant(const T& of) {
    using Real = typename T::real_type;
    const auto trace = of.view();
    const std::size_t n = trace.nll.size(), k = trace.k;
    if (n == 0 || k < 2) { return "empty, or k below 2"; }
    if (trace.chunk.size() != n || trace.pos.size() != n || trace.target.size() != n || trace.top_ids.size() != n * k ||
        trace.top_logits.size() != n * k) {
        return "columns of unequal length";
    }
    // Written so that NaN is refused: no comparison with NaN is true.
    const auto finite = [](Real x) {
        return x >= std::numeric_limits<Real>::lowest() && x <= std::numeric_limits<Real>::max();
    };
    for (std::size_t i = 0; i < n; ++i) {
        if (trace.chunk[i] < 0 || trace.pos[i] < 0 || trace.target[i] < 0) { return "negative chunk, pos or target"; }
        if (i > 0 && !(trace.chunk[i] > trace.chunk[i - 1] ||
                       (trace.chunk[i] == trace.chunk[i - 1] && trace.pos[i] > trace.pos[i - 1]))) {
            return "chunk and pos do not increase";
        }
        if (!finite(trace.nll[i])) { return "nll not finite"; }
        std::set<std::int32_t> ids;
        for (std::size_t j = 0; j < k; ++j) {
            if (trace.top_ids[j * n + i] < 0 || !ids.insert(trace.top_ids[j * n + i]).second) {
                return "token id negative or repeated";
            }
            if (!finite(trace.top_logits[j * n + i])) { return "logit not finite"; }
            if (j > 0 && !(trace.top_logits[j * n + i] <= trace.top_logits[(j - 1) * n + i])) {
                return "logits not descending";
            }
        }
    }
    return "";
}

} // namespace testing

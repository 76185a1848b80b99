#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "logitstat/compare.hpp"
#include "stats/oracle.hpp"

/// Random pairs with many exact ties, and a way to say that two results are the same in every figure.
namespace oracle {

using Sizes = std::initializer_list<std::size_t>;

/// Without the standard's distributions, so that a seed means the same everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
    double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
    bool chance(double p) { return unit() < p; }
    template <class T> T pick(std::initializer_list<T> from) { return from.begin()[below(from.size())]; }

  private:
    std::mt19937_64 engine_;
};

struct Shape {
    bool reference_float = false, candidate_float = false;
    std::size_t n = 0; ///< 0: random
    std::size_t k = 0; ///< of both arms; 0: random, often different
};

/// Each position has logits for a small vocabulary on a coarse grid; the candidate's are a copy, a perturbation or
/// drawn afresh; either arm lists its own best k, equal logits in its own order. So ids are shared or pushed to any
/// rank or out of the list, and equal gaps, hard ties and candidate ties are common.
inline Pair random_pair(Random& random, const Shape& shape = {}) {
    const auto rounded = [](double x, bool to_float) { return to_float ? static_cast<float>(x) : x; };
    std::size_t n = 1 + random.below(300);
    if (random.chance(0.1)) { n = 1 + random.below(3); }
    if (random.chance(0.03)) { n = 1000 + random.below(1100); }
    if (shape.n != 0) { n = shape.n; }
    Pair pair;
    pair.reference_k = shape.k != 0 ? shape.k : 2 + random.below(19);
    pair.candidate_k = shape.k == 0 && random.chance(0.5) ? 2 + random.below(19) : pair.reference_k;
    const std::size_t vocabulary = std::max(pair.reference_k, pair.candidate_k) + random.below(20);
    const std::size_t stride = random.pick<std::size_t>({1, 3, 4099});
    const double step = random.pick({0.0625, 0.0625, 0.5, 0.1, 0.0}); // 0: no grid
    const std::size_t levels = 2 + random.below(60);
    const double offset = random.pick({0.0, -2.0, 12.0, 40.0});
    enum { copy, near, far, fresh } const closeness = random.pick({copy, near, near, far, fresh});
    const bool shared_tie_order = closeness == copy || random.chance(0.5);
    const bool nll_on_grid = random.chance(0.5);
    const std::size_t chunk_length = 1 + random.below(n);

    const auto draw = [&] {
        return offset + (step > 0 ? step * static_cast<double>(random.below(levels))
                                  : random.unit() * static_cast<double>(levels));
    };
    const auto best = [&](const std::vector<double>& logits, const std::vector<double>& tie_order, std::size_t k,
                          Row& row) {
        std::vector<std::size_t> order(logits.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return logits[a] != logits[b] ? logits[a] > logits[b] : tie_order[a] < tie_order[b];
        });
        for (std::size_t j = 0; j < k; ++j) {
            row.ids.push_back(static_cast<std::int32_t>(order[j] * stride));
            row.logits.push_back(logits[order[j]]);
        }
    };

    for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> a(vocabulary), b(vocabulary), tie_order(vocabulary);
        for (double& x : a) { x = draw(); }
        for (double& x : tie_order) { x = random.unit(); }
        if (random.chance(0.4)) { a[random.below(vocabulary)] += step * static_cast<double>(random.below(80)); }
        const std::size_t reach = closeness == near ? 2 : 12;
        for (std::size_t v = 0; v < vocabulary; ++v) {
            const double noise = step > 0 ? step * static_cast<double>(random.below(2 * reach + 1)) : random.unit();
            b[v] = closeness == fresh ? draw() : closeness == copy ? a[v] : a[v] + noise;
            a[v] = rounded(a[v], shape.reference_float);
            b[v] = rounded(b[v], shape.candidate_float);
        }
        Row r, c;
        best(a, tie_order, pair.reference_k, r);
        if (!shared_tie_order) {
            for (double& x : tie_order) { x = random.unit(); }
        }
        best(b, tie_order, pair.candidate_k, c);
        r.chunk = c.chunk = static_cast<std::int32_t>(i / chunk_length);
        r.pos = c.pos = static_cast<std::int32_t>(i % chunk_length + 3);
        r.target = c.target =
            random.chance(0.5) ? r.ids[0] : static_cast<std::int32_t>(random.below(vocabulary) * stride);
        const auto nll = [&] {
            return nll_on_grid ? static_cast<double>(random.below(4000)) / 1024 : random.unit() * 12;
        };
        const double shared = nll();
        r.nll = rounded(shared, shape.reference_float);
        c.nll = rounded(closeness == copy || random.chance(0.2) ? shared : nll(), shape.candidate_float);
        pair.reference.push_back(std::move(r));
        pair.candidate.push_back(std::move(c));
    }
    return pair;
}

/// A few thresholds, or none: usual ones, repeated, unsorted, not dyadic, and at or beside gaps that occur.
inline std::vector<double> random_thresholds(Random& random, const Pair& pair) {
    std::vector<double> thresholds;
    for (std::size_t j = random.below(14); j > 0; --j) {
        const double gap = pair.gap(random.below(pair.size()));
        thresholds.push_back(random.pick(
            {0.0, -0.0, 0.5, 1.0, 2.0, 0.1, 0.3, gap, gap, std::nextafter(gap, 1e9), std::nextafter(gap, 0.0), 1e9}));
    }
    return thresholds;
}

/// Every figure of a comparison, exactly.
inline std::string describe(const logitstat::Comparison& c) {
    std::ostringstream out;
    out << std::hexfloat;
    const auto number = [&](const auto& x) {
        if (x) {
            out << ' ' << *x;
        } else {
            out << " -";
        }
    };
    const auto disagreement = [&](const logitstat::Disagreement& d) {
        out << "\n  index " << d.index << " chunk " << d.chunk << " pos " << d.pos << " target " << d.target
            << " tokens " << d.reference_token << ' ' << d.candidate_token << " gap " << d.gap << " rank";
        number(d.rank);
    };
    const auto counts = [&](const logitstat::DecidedCount& d) {
        out << ' ' << d.threshold << ':' << d.mismatches << '/' << d.positions;
    };
    out << "positions " << c.positions << " chunks " << c.chunks << " k " << c.reference_k << ' ' << c.candidate_k
        << " disagreements " << c.disagreements << " decided";
    counts(c.decided);
    out << "\nsweep";
    for (const auto& d : c.sweep) { counts(d); }
    out << "\nlargest";
    if (c.largest_gap) { disagreement(*c.largest_gap); }
    out << "\nworst";
    for (const auto& d : c.worst) { disagreement(d); }
    out << "\nranks";
    for (const auto& r : c.ranks) {
        number(r.rank);
        out << ':' << r.count;
    }
    out << "\nties " << c.hard_ties << ' ' << c.candidate_ties << "\ndelta " << c.logit_delta.count;
    for (const auto& x :
         {c.logit_delta.p50, c.logit_delta.p90, c.logit_delta.p99, c.logit_delta.max, c.logit_delta.mean_signed}) {
        number(x);
    }
    for (const auto* p : {&c.reference_perplexity, &c.candidate_perplexity}) {
        out << "\nperplexity " << p->value << ' ' << p->nll_se.n << ' ' << p->mean_nll;
        number(p->se);
    }
    const auto& d = c.nll_difference;
    out << "\nnll " << d.se.n << ' ' << d.higher << ' ' << d.lower << ' ' << d.equal << ' ' << d.largest_index;
    for (const double x : {d.mean, std::abs(d.largest), d.perplexity_ratio, d.perplexity_percent}) { number(std::optional(x)); }
    number(d.se.iid);
    number(d.t_iid());
    for (const auto* a : {&c.reference_accuracy, &c.candidate_accuracy}) {
        out << "\naccuracy " << a->correct << '/' << a->positions;
    }
    out << "\ncurve";
    if (c.curve) {
        for (const auto& s : c.curve->steps) { counts(s); }
    }
    out << "\nverdict " << to_string(c.verdict) << " identical " << c.identical_data;
    return out.str();
}

} // namespace oracle

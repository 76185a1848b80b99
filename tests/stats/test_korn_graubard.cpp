#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/korn_graubard.hpp"
#include "stats/close.hpp"

namespace test_korn_graubard {

using namespace logitstat;
using expected::close;

namespace {
using Counts = std::vector<std::int64_t>;
const confidence_level usual(0.95);

std::int64_t sum(const Counts& counts) {
    std::int64_t total = 0;
    for (const std::int64_t c : counts) { total += c; }
    return total;
}

bool same(const ClusteredProportion& a, const ClusteredProportion& b) {
    return a.design_effect == b.design_effect && a.effective_size == b.effective_size && a.interval == b.interval &&
           a.upper_bound == b.upper_bound;
}

// Thirty chunks: k = (5 c^2) mod 7 of n = 8 + (3 c) mod 11.
Counts thirty(bool sizes) {
    Counts counts;
    for (std::int64_t c = 0; c < 30; ++c) { counts.push_back(sizes ? 8 + 3 * c % 11 : 5 * c * c % 7); }
    return counts;
}
Counts every_third(std::size_t n) {
    Counts counts(n);
    for (std::size_t i = 0; i < n; i += 3) { counts[i] = 1; }
    return counts;
}
} // namespace

TEST_CASE("Korn-Graubard against R's survey package") {
    // R 4.2, survey 4.1, with k and n the counts of each chunk and l the level:
    //   d <- data.frame(chunk=rep(seq_along(k), n), y=unlist(mapply(function(a,b) rep(1:0, c(a,b-a)), k, n,
    //   SIMPLIFY=F))) s <- svydesign(ids=~chunk, weights=~1, data=d); m <- svymean(~y, s); p <- coef(m)[[1]] deff <-
    //   vcov(m)[1] / (p*(1-p)/sum(n)) m <- sum(n)/deff * (qt((1-l)/2, nrow(s)-1) / qt((1-l)/2, degf(s)))^2
    //   confint(svyciprop(~I(y==1), s, method="beta", level=l))
    //   qbeta(l, m*p+1, m*(1-p))       # the one-sided bound at the same m, which svyciprop does not have
    // svyciprop has the same t correction, but leaves m above n where chunks are more alike than chance; ours stops at
    // n, so those cases are tested apart.
    struct Row {
        Counts k, n;
        double level, design_effect, effective_size, lo, hi, bound;
    };
    const Counts five{10, 10, 10, 10, 10}, uneven{4, 20, 7, 3};
    const Row rows[] = {
        {{1, 5, 0, 2, 8},
         five,
         0.95,
         4.9172794117647065,
         5.3269114357012759,
         0.031246126976559457,
         0.79134815638729616,
         0.74166983122418439},
        {{1, 9, 0, 2},
         uneven,
         0.95,
         1.87641117052882,
         7.4054364065178744,
         0.067671599420755735,
         0.75201277052117799,
         0.70574417549270652},
        {thirty(false), thirty(true), 0.95, 2.5638499431602888, 140.56936650830269, 0.22566526543497445,
         0.38297833421115279, 0.36993100671882362},
        // Every position its own chunk: deff is G / (G - 1), what n / (n - 1) makes of p (1 - p) / n.
        {every_third(30), Counts(30, 1), 0.95, 1.0344827586206902, 28.999999999999982, 0.17042886711639391,
         0.53174684438401298, 0.50260454517547482},
        {{1, 5, 0, 2, 8},
         five,
         0.9,
         4.9172794117647065,
         6.2887831807733541,
         0.060665427529944693,
         0.70886537007334061,
         0.64666582602580802},
        {{1, 9, 0, 2},
         uneven,
         0.9,
         1.87641117052882,
         9.3704094261511734,
         0.11312203757751435,
         0.66576823112496597,
         0.61174756325743429},
        // One chunk of two holds them all: n* is below one position, and so says next to nothing.
        {{3, 0},
         {5, 7},
         0.9,
         5.4444444444444438,
         0.17832394464490811,
         5.3928342153542837e-30,
         0.99999999982463661,
         0.9999999687572626},
        {{3, 0}, {5, 7}, 0.95, 5.4444444444444438, 0.066134824659378658, 1.173777991669177e-97, 1, 1},
        {{1, 5, 0, 2, 8},
         five,
         0.999,
         4.9172794117647065,
         1.680561401773494,
         3.0272418351141497e-07,
         0.99914424249058176,
         0.99843018950763018},
        {{1, 9, 0, 2},
         uneven,
         0.999,
         1.87641117052882,
         1.414465945548214,
         1.1390186412953481e-07,
         0.99983681823059345,
         0.99965198347618889},
        {thirty(false), thirty(true), 0.999, 2.5638499431602888, 124.88341827633892, 0.17635719296480776,
         0.44807573310428905, 0.43902883500167977},
    };
    for (const Row& row : rows) {
        CAPTURE(row.k.size());
        CAPTURE(row.level);
        const auto result = korn_graubard(row.k, row.n, confidence_level(row.level));
        CHECK(close(result.design_effect, row.design_effect, 1e-12));
        CHECK(close(result.effective_size, row.effective_size, 1e-12));
        CHECK(close(result.interval.lo, row.lo, 1e-10));
        CHECK(close(result.interval.hi, row.hi, 1e-10));
        CHECK(close(result.upper_bound, row.bound, 1e-10));
    }
}

TEST_CASE("chunks more alike than chance give the interval of independent positions, not a narrower one") {
    // As above, R gives deff = 0.16447368421052638 for the first and 0 for the second.
    const Counts k{2, 3, 2, 3, 2}, alike{2, 2, 2, 2};
    const auto nearly = korn_graubard(k, Counts(5, 10), usual), all = korn_graubard(alike, Counts(4, 8), usual);
    CHECK(close(nearly.design_effect, 0.16447368421052638, 1e-12));
    CHECK(nearly.effective_size == 50);
    CHECK(close(nearly.interval.lo, clopper_pearson(12, 50, usual).lo, 1e-13));
    CHECK(close(nearly.interval.hi, clopper_pearson(12, 50, usual).hi, 1e-13));
    CHECK(close(nearly.upper_bound, proportion_upper_bound(12, 50, usual), 1e-13));
    CHECK(all.design_effect == 0);
    CHECK(all.effective_size == 32);
    CHECK(close(all.interval.lo, clopper_pearson(8, 32, usual).lo, 1e-13));
    CHECK(close(all.interval.hi, clopper_pearson(8, 32, usual).hi, 1e-13));
}

TEST_CASE("where clustering cannot show, Korn-Graubard is Clopper-Pearson with design effect 1") {
    struct Row {
        Counts k, n;
    };
    const Row rows[] = {{{}, {}},                 // no chunks
                        {{0}, {0}},               // 0 of 0
                        {{0, 0, 0}, {0, 0, 0}},   // 0 of 0 in three chunks
                        {{0, 0, 0}, {4, 20, 7}},  // k = 0
                        {{4, 20, 7}, {4, 20, 7}}, // k = n
                        {{3}, {7}},               // one chunk
                        {{0, 3, 0}, {0, 7, 0}}};  // one chunk with counted positions
    for (const Row& row : rows) {
        CAPTURE(row.k.size());
        const auto result = korn_graubard(row.k, row.n, usual);
        const std::int64_t k = sum(row.k), n = sum(row.n);
        CHECK(result.design_effect == 1);
        CHECK(result.effective_size == static_cast<double>(n));
        const Interval exact = clopper_pearson(k, n, usual);
        CHECK(close(result.interval.lo, exact.lo, 1e-13));
        CHECK(close(result.interval.hi, exact.hi, 1e-13));
        CHECK(close(result.upper_bound, proportion_upper_bound(k, n, usual), 1e-13));
    }
}

TEST_CASE("chunks without counted positions change nothing") {
    const auto with = korn_graubard(Counts{0, 1, 9, 0, 0, 2, 0}, Counts{0, 4, 20, 0, 7, 3, 0}, usual);
    CHECK(same(with, korn_graubard(Counts{1, 9, 0, 2}, Counts{4, 20, 7, 3}, usual)));
}

TEST_CASE("wrong counts throw") {
    CHECK_THROWS_AS(korn_graubard(Counts{1}, Counts{1, 2}, usual), std::invalid_argument);
    CHECK_THROWS_AS(korn_graubard(Counts{}, Counts{1}, usual), std::invalid_argument);
    CHECK_THROWS_AS(korn_graubard(Counts{2, 0}, Counts{1, 2}, usual), std::invalid_argument); // fits in the sum only
    CHECK_THROWS_AS(korn_graubard(Counts{-1, 2}, Counts{1, 2}, usual), std::invalid_argument);
    CHECK_THROWS_AS(korn_graubard(Counts{0, 0}, Counts{-1, 2}, usual), std::invalid_argument);
}

TEST_CASE("never narrower than Clopper-Pearson, and holds the rate") {
    for (std::int64_t a = 0; a <= 6; ++a) {
        for (std::int64_t b = 0; b <= 9; ++b) {
            for (std::int64_t c = 0; c <= 4; ++c) {
                for (const double level : {0.5, 0.95, 0.9999}) {
                    CAPTURE(a);
                    CAPTURE(b);
                    CAPTURE(c);
                    CAPTURE(level);
                    const confidence_level at(level);
                    const auto clustered = korn_graubard(Counts{a, b, c}, Counts{6, 9, 4}, at);
                    const std::int64_t k = a + b + c;
                    const Interval exact = clopper_pearson(k, 19, at);
                    const double rate = static_cast<double>(k) / 19;
                    CHECK(clustered.interval.lo <= exact.lo * (1 + 1e-13));
                    CHECK(clustered.interval.hi >= exact.hi * (1 - 1e-13));
                    CHECK(clustered.upper_bound >= proportion_upper_bound(k, 19, at) * (1 - 1e-13));
                    CHECK(clustered.upper_bound <= clustered.interval.hi);
                    CHECK(clustered.interval.lo <= rate);
                    CHECK(clustered.interval.hi >= rate);
                    CHECK(clustered.effective_size <= 19);
                    CHECK(clustered.effective_size > 0);
                }
            }
        }
    }
}

TEST_CASE("a billion positions") {
    const Counts k{0, 1'000'000, 0, 2'000'000}, n{250'000'000, 250'000'000, 250'000'000, 250'000'000};
    const auto result = korn_graubard(k, n, usual);
    // Python: p=0.003; (4/3*(2*750000**2+250000**2+1250000**2)/1e18) / (p*(1-p)/1e9)
    CHECK(close(result.design_effect, 1225899.9219881867, 1e-12));
    CHECK(result.interval.lo <= clopper_pearson(3'000'000, 1'000'000'000, usual).lo);
    CHECK(result.interval.hi >= clopper_pearson(3'000'000, 1'000'000'000, usual).hi);
}

TEST_CASE("a single mismatch shows its design effect") {
    // Python: p=1/20; (2/1*((1-p*10)**2+(0-p*10)**2)/400) / (p*(1-p)/20)
    const auto result = korn_graubard(Counts{1, 0}, Counts{10, 10}, usual);
    CHECK(close(result.design_effect, 1.0526315789473684, 1e-13));
    CHECK(result.effective_size < 20);
}

} // namespace test_korn_graubard

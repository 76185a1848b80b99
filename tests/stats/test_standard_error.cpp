#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/clusters.hpp"
#include "logitstat/stats/moments.hpp"
#include "logitstat/stats/standard_error.hpp"
#include "stats/close.hpp"
#include "stats/series.hpp"

namespace test_standard_error {

using namespace logitstat;
using namespace series;
using expected::close;

namespace {

using Boundaries = std::vector<std::size_t>;

Boundaries singles(std::size_t n) {
    return take(n + 1, [](std::int64_t i) { return static_cast<std::size_t>(i); });
}

/// All pairs (i, j) of one run, in long double: n / (n - 1) sum over |i - j| <= lag of (1 - |i - j| / (lag + 1)) e_i
/// e_j.
double plain_hac(const std::vector<double>& x, std::size_t lag, const Boundaries& boundaries) {
    const auto n = static_cast<long double>(x.size());
    long double mean = 0, sum = 0;
    for (const double value : x) { mean += value / n; }
    const auto run_of = [&](std::size_t i) {
        return std::upper_bound(boundaries.begin(), boundaries.end(), i) - boundaries.begin();
    };
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t j = 0; j < x.size(); ++j) {
            const std::size_t distance = i < j ? j - i : i - j;
            if (distance > lag || run_of(i) != run_of(j)) { continue; }
            const long double weight = 1 - static_cast<long double>(distance) / static_cast<long double>(lag + 1);
            sum += weight * (x[i] - mean) * (x[j] - mean);
        }
    }
    return static_cast<double>(std::sqrt(std::max(0.0L, sum) * n / (n - 1)) / n);
}

} // namespace

TEST_CASE("cluster boundaries are where the chunk number changes") {
    const auto of = [](std::vector<std::int32_t> chunk) { return cluster_boundaries(chunk); };
    CHECK(of({}) == Boundaries{0});
    CHECK(of({7}) == Boundaries{0, 1});
    CHECK(of({0, 0, 0}) == Boundaries{0, 3});
    CHECK(of({0, 1, 2}) == Boundaries{0, 1, 2, 3});
    CHECK(of({3, 3, 1, 1, 1, 3}) == Boundaries{0, 2, 5, 6}); // runs, not numbers
    CHECK(of({-1, -1, 5}) == Boundaries{0, 2, 3});
}

TEST_CASE("the three standard errors against R's sandwich package") {
    // R 4.2, sandwich 3.0, the series of series.hpp, -1 where there is none:
    //   i <- 0:(n-1); x <- spread(i); m <- lm(x ~ 1)
    //   sqrt(vcovHC(m, type="HC1"))
    //   sqrt(vcovCL(m, cluster=eights(i), type="HC0", cadjust=TRUE)); the same with roots(i)
    //   sqrt(NeweyWest(m, lag=l, prewhite=FALSE, adjust=TRUE)) for l of 1, 4, n - 1
    struct Row {
        Formula formula;
        std::size_t n;
        double iid, eights, roots, lag_1, lag_4, lag_last;
    };
    const Row rows[] = {
        {spread, 2, 0.62499999999999978, -1, 0.62499999999999978, 0.441941738241592, -1, 0.441941738241592},
        {spread, 3, 0.43898557303553087, -1, 0.58333333333333348, 0.4114253678777397, -1, 0.33592740617910632},
        {spread, 7, 0.26446261775622681, -1, 0.24743582965269664, 0.22658174179374135, 0.18540496217739147,
         0.17946206466287296},
        {spread, 128, 0.071222512267477181, 0.059378426436220627, 0.05548255934119721, 0.073499307746780096,
         0.074311249277051017, 0.017162738239838587},
        {spread, 1000, 0.02562068312474864, 0.020530256487721065, 0.009853476714076036, 0.026258555624364653,
         0.026220798515201166, 0.0025355830154076219},
        {stepped, 2, 0.078124999999999986, -1, 0.078124999999999972, 0.055242717280199007, -1, 0.055242717280199007},
        {stepped, 3, 0.090210979560879034, -1, 0.10416666666666667, 0.090210979560879034, -1, 0.073656956373598717},
        {stepped, 7, 0.34440645420386484, -1, 0.47882243632250832, 0.41120501775905349, 0.39914071751516761,
         0.34542451496931731},
        {stepped, 128, 0.072588585146307394, 0.09005895079149881, 0.090249055488893559, 0.094259554976120638,
         0.11775385159193882, 0.031748951308852823},
        {stepped, 1000, 0.025363873058452162, 0.038459393147122836, 0.023683207460411759, 0.033022377770257086,
         0.041718210884464466, 0.0041317689550943925},
        {growing, 2, 0.21093749999999997, -1, 0.21093749999999997, 0.14915533665653735, -1, 0.14915533665653735},
        {growing, 3, 0.15857643070456595, -1, 0.20833333333333334, 0.15216001206241189, -1, 0.12423812960288086},
        {growing, 7, 0.082729931722993408, -1, 0.10720689822594551, 0.092727687470503126, 0.09223832881245031,
         0.080092451912630716},
        {growing, 128, 0.20743175521356116, 0.40853482752121378, 0.14581983725862499, 0.26829709448948946,
         0.33458887592227105, 0.070060892110663603},
        {growing, 1000, 0.079117786653422104, 0.12688770828553639, 0.054587303793201661, 0.10257842337981865,
         0.13071813647140948, 0.014314892511961302},
    };
    for (const Row& row : rows) {
        CAPTURE(row.n);
        const std::vector<double> x = take(row.n, row.formula);
        const auto with = [&](std::int32_t (*chunk)(std::int64_t), std::optional<std::size_t> lag) {
            return standard_errors(x, chunks(row.n, chunk), {.lag = lag, .stop_at_chunk_borders = false});
        };
        const StandardErrors se = with(eights, 0);
        CHECK(se.n == row.n);
        CHECK(se.lag == 0);
        CHECK(se.clusters == (row.n + 7) / 8);
        CHECK(close(se.iid, row.iid, 1e-12));
        CHECK(close(se.hac, row.iid, 1e-12)); // lag 0 is the iid error
        if (row.eights < 0) {
            CHECK_FALSE(se.clustered.has_value());
        } else {
            CHECK(close(se.clustered, row.eights, 1e-12));
        }
        CHECK(close(with(roots, 0).clustered, row.roots, 1e-12));
        CHECK(close(with(roots, 1).hac, row.lag_1, 1e-12));
        if (row.lag_4 >= 0) { CHECK(close(with(eights, 4).hac, row.lag_4, 1e-12)); }
        CHECK(close(with(eights, row.n - 1).hac, row.lag_last, 1e-11));
        // More than n - 1 is n - 1, and says so.
        CHECK(with(eights, row.n - 1).lag == row.n - 1);
        CHECK_THROWS_AS(with(eights, row.n), std::invalid_argument);
        CHECK(with(eights, std::nullopt).lag == default_lag(row.n));
        CHECK(with(eights, std::nullopt).hac == with(eights, default_lag(row.n)).hac);
    }
}

TEST_CASE("autocorrelation that stops at chunk borders, against R") {
    // i <- 0:(n-1); x <- stepped(i); e <- x - mean(x); g <- roots(i)
    // K <- outer(i, i, function(a,b) pmax(0, 1-abs(a-b)/(l+1))) * outer(g, g, "==")
    // sqrt(n/(n-1) * sum(e*(K%*%e))) / n
    struct Row {
        std::size_t n, lag;
        double se;
    };
    const Row rows[] = {
        {7, 1, 0.39230838683855312},     {7, 4, 0.4105550471401665},      {7, 20, 0.41951936949969076},
        {128, 1, 0.092293783375108962},  {128, 4, 0.11536154595043592},   {128, 20, 0.097426200907482469},
        {1000, 1, 0.032744770082157523}, {1000, 4, 0.041333986526563296}, {1000, 20, 0.034220255802776087},
    };
    for (const Row& row : rows) {
        CAPTURE(row.n);
        CAPTURE(row.lag);
        CHECK(close(hac_se(take(row.n, stepped), row.lag, chunks(row.n, roots)), row.se, 1e-12));
    }
    CHECK(close(standard_errors(take(128, stepped), chunks(128, roots), {.lag = 4, .stop_at_chunk_borders = true}).hac,
                rows[4].se, 1e-12));
}

TEST_CASE("autocorrelation-consistent error against all pairs in long double") {
    for (const Formula formula : {spread, stepped, growing}) {
        for (const std::size_t n : {2u, 3u, 7u, 128u, 300u}) {
            const std::vector<double> x = take(n, formula);
            for (const std::size_t lag : {std::size_t{0}, std::size_t{1}, std::size_t{4}, n - 1, n, n + 9}) {
                for (const Boundaries& runs : {Boundaries{0, n}, chunks(n, eights), chunks(n, roots), singles(n)}) {
                    CAPTURE(n);
                    CAPTURE(lag);
                    CAPTURE(runs.size());
                    CHECK(close(hac_se(x, lag, runs), plain_hac(x, lag, runs), 1e-10));
                }
            }
        }
    }
}

TEST_CASE("every position its own chunk: clustered and bordered errors are the iid error") {
    for (const Formula formula : {spread, stepped, growing}) {
        for (const std::size_t n : {2u, 3u, 7u, 128u, 1000u}) {
            CAPTURE(n);
            const auto se = standard_errors(take(n, formula), singles(n),
                                            {.lag = std::min<std::size_t>(4, n - 1), .stop_at_chunk_borders = true});
            REQUIRE(se.iid.has_value());
            CHECK(close(se.clustered, *se.iid, 1e-13));
            CHECK(close(se.hac, *se.iid, 1e-13));
        }
    }
}

TEST_CASE("too few values or chunks have no error, equal values the error 0") {
    const auto none = standard_errors({}, Boundaries{0});
    CHECK(none.n == 0);
    CHECK(none.clusters == 0);
    CHECK(none.lag == 0);
    const auto one = standard_errors(std::array{2.5}, Boundaries{0, 1});
    CHECK(one.n == 1);
    CHECK(one.clusters == 1);
    CHECK(one.lag == 0);
    for (const StandardErrors& se : {none, one}) {
        CHECK_FALSE(se.iid.has_value());
        CHECK_FALSE(se.clustered.has_value());
        CHECK_FALSE(se.hac.has_value());
        CHECK_FALSE(se.value().has_value());
        CHECK(se.df() <= 0);
    }
    const auto one_chunk = standard_errors(take(9, spread), Boundaries{0, 9});
    CHECK(one_chunk.iid.has_value());
    CHECK_FALSE(one_chunk.clustered.has_value());
    CHECK(one_chunk.hac.has_value());
    for (const double value : {0.0, 0.1, -3.7, 1e9 / 3}) {
        for (const std::size_t n : {2u, 7u, 255u, 256u, 257u, 1000u}) {
            CAPTURE(value);
            CAPTURE(n);
            const auto se = standard_errors(std::vector<double>(n, value), chunks(n, roots));
            CHECK(se.iid == 0.0);
            CHECK(se.clustered == 0.0);
            CHECK(se.hac == 0.0);
        }
    }
}

TEST_CASE("clusters that do not cover the values throw") {
    const std::vector<double> x{1, 2, 3};
    CHECK_THROWS_AS(standard_errors(x, Boundaries{}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(x, Boundaries{0}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(x, Boundaries{0, 2}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(x, Boundaries{0, 2, 4}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors({}, Boundaries{0, 1}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(x, Boundaries{1, 3}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(x, Boundaries{0, 2000000, 3}), std::invalid_argument);
    CHECK_THROWS_AS(logitstat::clustered_se(x, Boundaries{0, 1, 9}), std::invalid_argument);
    CHECK_THROWS_AS(hac_se(x, 1, Boundaries{}), std::invalid_argument);
}

TEST_CASE("squares beyond double's range leave no error, not an error of 0") {
    const std::vector<double> x{1e200, -1e200, 1e200, -1e200};
    const auto se = standard_errors(x, Boundaries{0, 2, 4});
    CHECK_FALSE(se.iid.has_value());
    CHECK_FALSE(se.hac.has_value());
    CHECK_FALSE(se.value().has_value());
}

TEST_CASE("an error that leaves double's range beside one that does not") {
    // 100 values of +-a with 100 a^2 = 1.44e308: their products with neighbours add the same again, and so do those
    // within either half as a cluster.
    std::vector<double> x(100, 1.2e153);
    std::fill(x.begin(), x.begin() + 50, -1.2e153);
    const auto se = standard_errors(x, Boundaries{0, 50, 100}, {.lag = 4});
    CHECK(close(se.iid, 1.2e153 / std::sqrt(99.0), 1e-13)); // all squares are a^2
    CHECK_FALSE(se.hac.has_value());
    CHECK_FALSE(se.clustered.has_value());
    CHECK(se.preferred() == dependence::hac);
    CHECK_FALSE(se.value().has_value());
}

TEST_CASE("iid is preferred only where it is the larger") {
    const auto equal = standard_errors(std::vector<double>{0, 2}, Boundaries{0, 2}, {.lag = 0});
    CHECK(equal.iid == 1.0);
    CHECK(equal.hac == 1.0);
    CHECK(equal.preferred() == dependence::hac);
}

TEST_CASE("a lag needs more positions than it has, 0 needs none") {
    CHECK(standard_errors({}, Boundaries{0}, {.lag = 0}).n == 0);
    CHECK(standard_errors(std::vector<double>{1}, Boundaries{0, 1}, {.lag = 0}).n == 1);
    CHECK_THROWS_AS(standard_errors(std::vector<double>{1}, Boundaries{0, 1}, {.lag = 1}), std::invalid_argument);
    CHECK_THROWS_AS(standard_errors(std::vector<double>{1, 2}, Boundaries{0, 2}, {.lag = 2}), std::invalid_argument);
    CHECK(standard_errors(std::vector<double>{1, 2}, Boundaries{0, 2}, {.lag = 1}).lag == 1);
}

TEST_CASE("the default lag is floor(4 (n / 100)^(2/9)), below n") {
    // R: floor(4*(n/100)^(2/9)); 0 and 1 by definition
    const std::pair<std::size_t, std::size_t> rows[] = {{0, 0},   {1, 0},     {2, 1},      {3, 1},      {5, 2},
                                                        {10, 2},  {99, 3},    {100, 4},    {123, 4},    {300, 5},
                                                        {512, 5}, {6720, 10}, {51199, 15}, {51201, 16}, {1000000, 30}};
    for (const auto& row : rows) {
        CAPTURE(row.first);
        CHECK(default_lag(row.first) == row.second);
    }
}

TEST_CASE(
    "many chunks: clustered is preferred, with chunks - 1 degrees of freedom; else hac or the larger iid, n - 1") {
    for (const std::size_t groups : {1u, 2u, 29u, 30u, 31u}) {
        CAPTURE(groups);
        const std::size_t n = 3 * groups;
        Boundaries boundaries;
        for (std::size_t c = 0; c <= groups; ++c) { boundaries.push_back(3 * c); }
        const auto se = standard_errors(take(n, spread), boundaries);
        const bool many = groups >= 30;
        const bool falls = *se.hac < *se.iid;
        CHECK(se.preferred() == (many ? dependence::clustered : falls ? dependence::iid : dependence::hac));
        CHECK(se.value() == (many ? se.clustered : falls ? se.iid : se.hac));
        CHECK(se.df() == static_cast<double>(many ? groups - 1 : n - 1));
    }
    CHECK(to_string(dependence::iid) == "iid");
    CHECK(to_string(dependence::clustered) == "clustered");
    CHECK(to_string(dependence::hac) == "hac");
}

TEST_CASE("moments merged from any split are those of the whole") {
    const auto same = [](const Moments& a, const Moments& b) {
        return a.n == b.n && close(a.mean, b.mean, 1e-12) && close(a.m2, b.m2, 1e-12);
    };
    for (const Formula formula : {spread, stepped, growing}) {
        const std::vector<double> x = take(1000, formula);
        const std::span<const double> all(x);
        const Moments whole = moments_of(all);
        for (std::size_t cut = 0; cut <= x.size(); cut += 1 + cut % 37) {
            CAPTURE(cut);
            Moments left = moments_of(all.first(cut)), right = moments_of(all.subspan(cut));
            const Moments copy = left;
            CHECK(same(left.merge(right), whole));
            CHECK(same(right.merge(copy), whole));
        }
        Moments one_by_one;
        for (std::size_t i = 0; i < x.size(); ++i) { one_by_one.merge(moments_of(all.subspan(i, 1))); }
        CHECK(same(one_by_one, whole));
    }
    CHECK_FALSE(Moments{}.variance().has_value());
    CHECK_FALSE(Moments{1, 3.0, 0.0}.standard_error().has_value());
    // R: c(var(c(1, 2, 4)), sd(c(1, 2, 4)) / sqrt(3))
    const std::vector<double> three{1, 2, 4};
    CHECK(close(moments_of(std::span<const double>(three)).variance(), 2.3333333333333335, 1e-15));
    CHECK(close(moments_of(std::span<const double>(three)).standard_error(), 0.88191710368819698, 1e-15));
}

} // namespace test_standard_error

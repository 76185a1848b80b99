#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <doctest/doctest.h>

#include "logitstat/stats/confidence.hpp"
#include "logitstat/stats/proportion.hpp"
#include "stats/close.hpp"

namespace test_proportion {

using namespace logitstat;
using expected::close;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
const confidence_level usual(0.95);
} // namespace

TEST_CASE("the comparison with expected values is false for NaN, infinity and the absent") {
    CHECK(close(1.0, 1.0, 0));
    CHECK(close(0.0, 0.0, 0));
    CHECK(close(-1.0, -1.0000001, 1e-6));
    CHECK_FALSE(close(1.0, 1.0001, 1e-6));
    CHECK_FALSE(close(1e-300, 0.0, 1e-6));
    CHECK_FALSE(close(1.0, -1.0, 1e-6));
    CHECK_FALSE(close(not_a_number, 1.0, 1));
    CHECK_FALSE(close(1.0, not_a_number, 1));
    CHECK_FALSE(close(not_a_number, not_a_number, 1));
    CHECK_FALSE(close(infinity, infinity, 1));
    CHECK_FALSE(close(1.0, infinity, 1));
    CHECK_FALSE(close(std::nullopt, 0.0, 1));
}

TEST_CASE("a confidence level lies strictly between 0 and 1") {
    for (const double bad : {0.0, -0.0, 1.0, -0.5, 1.5, 95.0, not_a_number, infinity, -infinity}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(confidence_level{bad}, std::invalid_argument);
    }
    CHECK(confidence_level(0.95).value() == 0.95);
    CHECK(confidence_level(0.75).alpha() == 0.25);
    CHECK(confidence_level(std::nextafter(1.0, 0.0)).alpha() > 0);
    CHECK(confidence_level(std::numeric_limits<double>::denorm_min()).alpha() == 1);
}

TEST_CASE("Clopper-Pearson, one-sided bound and Wilson against R") {
    // R 4.2, with l the level; 0 where k = 0, 1 where k = n:
    //   qbeta((1-l)/2, k, n-k+1)                      lo, as binom.test(k, n, conf.level=l)$conf.int
    //   qbeta((1-l)/2, k+1, n-k, lower.tail=FALSE)    hi
    //   qbeta(1-l, k+1, n-k, lower.tail=FALSE)        bound, as binom.test(..., alternative="less")
    //   prop.test(k, n, correct=FALSE, conf.level=l)$conf.int
    struct Row {
        std::int64_t k, n;
        double level, lo, hi, bound, wilson_lo, wilson_hi;
    };
    const Row rows[] = {
        {0, 1, 0.95, 0, 0.97499999999999998, 0.94999999999999996, 0, 0.79345068562276255},
        {1, 1, 0.95, 0.025000000000000022, 1, 1, 0.2065493143772375, 1},
        {1, 2, 0.95, 0.012579117093425058, 0.98742088290657493, 0.97467943448089633, 0.094531205734230739,
         0.90546879426576921},
        {0, 274, 0.95, 0, 0.013372841999716334, 0.010873777849002231, 0, 0.013826082100919367},
        {1, 3, 0.95, 0.0084037586596126413, 0.9057006759497539, 0.8646496378284162, 0.061491944720396291,
         0.79234039919795229},
        {3, 7, 0.95, 0.09898827844250789, 0.81594843235991699, 0.77467841596755216, 0.1582198552514697,
         0.74954163547234265},
        {7, 128, 0.95, 0.022267145809923394, 0.10943205156825686, 0.10026174195373894, 0.026740201381346345,
         0.10858490029974707},
        {155, 6720, 0.95, 0.019610174985544862, 0.026942683180676497, 0.026310169338503275, 0.019739619243813181,
         0.026936296710299654},
        {127, 128, 0.95, 0.95724096808577963, 0.99980222418533826, 0.99959935141868383, 0.95707374056113936,
         0.99861956810712571},
        {500, 1000, 0.95, 0.46854917297179194, 0.53145082702820812, 0.52648226876430881, 0.46906960036810419,
         0.53093039963189581},
        {0, 1000000000, 0.95, 0, 3.6888794473100178e-09, 2.9957322690667847e-09, 0, 3.8414588059373173e-09},
        {1, 1000000000, 0.95, 2.5317807983969421e-11, 5.5716433782031108e-09, 4.7438645095103825e-09,
         1.7652455495696337e-10, 5.6649342432974352e-09},
        {123456, 1000000000, 0.95, 0.00012276833085301321, 0.00012414656552568756, 0.00012403547515916509,
         0.00012276930114666216, 0.00012414653936364148},
        {500000000, 1000000000, 0.95, 0.49996900974842229, 0.50003099025157771, 0.50002600791936969,
         0.49996901024844431, 0.50003098975155569},
        {999999999, 1000000000, 0.95, 0.99999999442835663, 0.99999999997468214, 0.9999999999487067, 0.9999999943350657,
         0.99999999982347543},
        {3, 7, 0.5, 0.25307397577397678, 0.6211515593582928, 0.50000000000000011, 0.31060347774975139,
         0.55525721599154509},
        {7, 128, 0.5, 0.039853853160781404, 0.074863469856228382, 0.059759635722308954, 0.04264196319995571,
         0.069887277214023019},
        {127, 128, 0.5, 0.97910243432859267, 0.99775500758239033, 0.99459942348363317, 0.98492249015613498,
         0.99596624412315182},
        {0, 1000000000, 0.5, 0, 1.3862943601589843e-09, 6.9314718031971976e-10, 0, 4.5493642291260552e-10},
        {1, 1000000000, 0.5, 2.8768207241040069e-10, 2.692634526610872e-09, 1.6783469894474158e-09,
         5.1565488612339577e-10, 1.9392815358793367e-09},
        {123456, 1000000000, 0.5, 0.00012321884242951254, 0.00012369379499746345, 0.00012345666662567443,
         0.00012321925114977008, 0.00012369320367432355},
        {500000000, 1000000000, 0.5, 0.49998933488065855, 0.50001066511934145, 0.50000000050000004, 0.4999893353806571,
         0.50001066461934285},
        {999999999, 1000000000, 0.5, 0.99999999730736544, 0.9999999997123179, 0.99999999930685279, 0.99999999806071849,
         0.99999999948434504},
        {3, 7, 0.999999, 0.0024323409050847366, 0.98899462458824416, 0.98689568973609598, 0.045058138034411666,
         0.92260883382086878},
        {7, 128, 0.999999, 0.0035932252139067159, 0.21464098449632607, 0.20895691758432899, 0.010537926048381224,
         0.23910726955447784},
        {127, 128, 0.999999, 0.87227374578325112, 0.99999999609374901, 0.99999999218749613, 0.82964136823287071,
         0.99969815241660076},
        {0, 1000000000, 0.999999, 0, 1.4508657633244908e-08, 1.3815510462501371e-08, 0, 2.392812640411048e-08},
        {1, 1000000000, 0.999999, 5.000001250144197e-16, 1.7422214869444619e-08, 1.6688420659921938e-08,
         3.8625695767013184e-11, 2.5889500660487214e-08},
        {123456, 1000000000, 0.999999, 0.00012174499918168019, 0.00012518328913736955, 0.00012513428365139697,
         0.00012174928454161891, 0.00012518663767664367},
        {500000000, 1000000000, 0.999999, 0.49992265590511553, 0.50007734409488447, 0.50007515873706199,
         0.49992265640555916, 0.50007734359444078},
        {999999999, 1000000000, 0.999999, 0.99999998257778511, 0.99999999999999944, 0.999999999999999,
         0.99999997411049935, 0.99999999996137423},
    };
    for (const Row& row : rows) {
        CAPTURE(row.k);
        CAPTURE(row.n);
        CAPTURE(row.level);
        const confidence_level level(row.level);
        // Boost 1.74: 2e-11 off for 1 of 1e9, where R agrees with 50-digit arithmetic.
        const double accuracy = row.n > 1'000'000 ? 1e-10 : 1e-12;
        const Interval exact = clopper_pearson(row.k, row.n, level), score = wilson(row.k, row.n, level);
        CHECK(close(exact.lo, row.lo, accuracy));
        CHECK(close(exact.hi, row.hi, accuracy));
        CHECK(close(proportion_upper_bound(row.k, row.n, level), row.bound, accuracy));
        CHECK(close(score.lo, row.wilson_lo, 1e-11));
        CHECK(close(score.hi, row.wilson_hi, 1e-11));
        const Proportion all = proportion(row.k, row.n, level);
        CHECK(all.k == row.k);
        CHECK(all.n == row.n);
        CHECK(all.rate == static_cast<double>(row.k) / static_cast<double>(row.n));
        CHECK(all.interval == exact);
        CHECK(all.upper_bound == proportion_upper_bound(row.k, row.n, level));
    }
}

TEST_CASE("a proportion's level is 95 % unless stated") {
    CHECK(proportion(3, 7).interval == clopper_pearson(3, 7, usual));
    CHECK(proportion(3, 7).upper_bound == proportion_upper_bound(3, 7, usual));
}

TEST_CASE("zero of n excludes rates above 1 - alpha^(1/n)") {
    for (const std::int64_t n : {1, 2, 3, 274, 1'000'000'000}) {
        for (const double level : {0.5, 0.95, 0.999999}) {
            CAPTURE(n);
            CAPTURE(level);
            const confidence_level at(level);
            CHECK(close(proportion_upper_bound(0, n, at), -std::expm1(std::log(at.alpha()) / static_cast<double>(n)),
                        1e-12));
        }
    }
}

TEST_CASE("0 of 0 says nothing: [0, 1]") {
    CHECK(clopper_pearson(0, 0, usual) == Interval{0, 1});
    CHECK(wilson(0, 0, usual) == Interval{0, 1});
    CHECK(proportion_upper_bound(0, 0, usual) == 1);
    CHECK_FALSE(proportion(0, 0).rate.has_value());
    CHECK(proportion(0, 0).interval == Interval{0, 1});
    CHECK(proportion(0, 0).upper_bound == 1);
}

TEST_CASE("impossible counts throw") {
    const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    for (const auto& bad : {std::pair<std::int64_t, std::int64_t>{-1, 5}, {6, 5}, {0, -1}, {-1, -1}, {lowest, 0}}) {
        const std::int64_t k = bad.first, n = bad.second;
        CAPTURE(k);
        CAPTURE(n);
        CHECK_THROWS_AS(clopper_pearson(k, n, usual), std::invalid_argument);
        CHECK_THROWS_AS(proportion_upper_bound(k, n, usual), std::invalid_argument);
        CHECK_THROWS_AS(wilson(k, n, usual), std::invalid_argument);
        CHECK_THROWS_AS(proportion(k, n), std::invalid_argument);
    }
}

TEST_CASE("every interval holds k / n, mirrors under k -> n - k, and widens with the level") {
    for (const std::int64_t n : {1, 2, 3, 10, 97, 1000}) {
        for (std::int64_t k = 0; k <= n; k += n < 100 ? 1 : 37) {
            for (const double level : {0.01, 0.5, 0.95, 0.999999}) {
                CAPTURE(k);
                CAPTURE(n);
                CAPTURE(level);
                const confidence_level at(level);
                const double rate = static_cast<double>(k) / static_cast<double>(n);
                for (const auto interval : {&clopper_pearson, &wilson}) {
                    const Interval here = interval(k, n, at), mirrored = interval(n - k, n, at);
                    // Wilson's is centred away from the rate, but never past it.
                    CHECK(here.lo <= rate + 1e-15);
                    CHECK(here.hi >= rate - 1e-15);
                    CHECK(here.lo >= 0);
                    CHECK(here.hi <= 1);
                    CHECK(std::fabs(here.lo - (1 - mirrored.hi)) <= 1e-13);
                    CHECK(std::fabs(here.hi - (1 - mirrored.lo)) <= 1e-13);
                    const Interval wider = interval(k, n, confidence_level(0.9999999));
                    CHECK(wider.lo <= here.lo);
                    CHECK(wider.hi >= here.hi);
                }
                CHECK(proportion_upper_bound(k, n, at) <= clopper_pearson(k, n, at).hi);
                CHECK((clopper_pearson(k, n, at).hi == 1) == (k == n));
                CHECK((clopper_pearson(k, n, at).lo == 0) == (k == 0));
                CHECK((wilson(k, n, at).hi == 1) == (k == n));
                CHECK((wilson(k, n, at).lo == 0) == (k == 0));
            }
        }
    }
}

} // namespace test_proportion

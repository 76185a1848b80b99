#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/correlation.hpp"
#include "stats/close.hpp"
#include "stats/series.hpp"

namespace test_correlation {

using namespace logitstat;
using namespace series;
using expected::close;

namespace {
template <class A, class B> auto cor(const std::vector<A>& a, const std::vector<B>& b) {
    return correlation(std::span<const A>(a), std::span<const B>(b));
}
} // namespace

TEST_CASE("Pearson's correlation against R") {
    // R, the series of series.hpp, i <- 0:(n-1):
    //   cor(spread(i), stepped(i)); cor(spread(i), growing(i))
    //   cor(1e6 + spread(i)/1024, 1e6 + growing(i)/1024); cor(spread(i), spread(i)/4 + stepped(i)/64)
    struct Row {
        std::size_t n;
        double independent, heteroskedastic, far_from_zero, shared;
    };
    const Row rows[] = {
        {3, 0.90419443017946521, 0.99602331840189107, 0.99602331840189107, 0.99998529680025949},
        {7, 0.45031224829950922, 0.55687161514665062, 0.55687161514664862, 0.99755173620154269},
        {128, -0.0094382277431989386, 0.014067691914460738, 0.014067691914460738, 0.99797513929435255},
        {1000, 0.004101180952204248, -0.0063988156944126511, -0.0063988156944129355, 0.99809230934932702},
    };
    for (const Row& row : rows) {
        CAPTURE(row.n);
        const auto x = take(row.n, spread);
        const auto far = [&](Formula formula) {
            return take(row.n, [&](std::int64_t i) { return 1e6 + formula(i) / 1024; });
        };
        CHECK(close(cor(x, take(row.n, stepped)), row.independent, 1e-11));
        CHECK(close(cor(take(row.n, stepped), x), row.independent, 1e-11));
        CHECK(close(cor(x, take(row.n, growing)), row.heteroskedastic, 1e-11));
        CHECK(close(cor(far(spread), far(growing)), row.far_from_zero, 1e-11));
        CHECK(close(cor(x, take(row.n, [](std::int64_t i) { return spread(i) / 4 + stepped(i) / 64; })), row.shared,
                    1e-13));
        CHECK(close(cor(x, x), 1, 1e-15));
        CHECK(close(cor(x, take(row.n, [](std::int64_t i) { return 3 - spread(i) / 3; })), -1, 1e-15));
        const std::vector<float> single(x.begin(), x.end()); // exact
        CHECK(cor(single, take(row.n, stepped)) == cor(x, take(row.n, stepped)));
    }
}

TEST_CASE("never beyond -1 and 1, and nothing where it is not defined") {
    for (std::size_t n = 2; n < 200; ++n) {
        const auto x = take(n, [](std::int64_t i) { return static_cast<double>(i) / 10 + spread(i) / 7; });
        const auto y = take(n, [](std::int64_t i) { return -(static_cast<double>(i) / 10 + spread(i) / 7) * 1.1; });
        CAPTURE(n);
        REQUIRE(cor(x, x).has_value());
        CHECK(*cor(x, x) <= 1);
        CHECK(*cor(x, y) >= -1);
    }
    const std::vector<double> none, one{3}, two{1, 2}, three{1, 2, 4}, constant(3, 0.1);
    CHECK_FALSE(cor(none, none).has_value());
    CHECK_FALSE(cor(one, one).has_value());
    CHECK_FALSE(cor(three, constant).has_value());
    CHECK_FALSE(cor(constant, three).has_value());
    CHECK_FALSE(cor(constant, constant).has_value());
    CHECK_FALSE(cor(std::vector<double>(1000, 0.1), take(1000, spread)).has_value());
    CHECK(close(cor(two, std::vector<double>{5, 3}), -1, 1e-15));
    CHECK_THROWS_AS(cor(two, three), std::invalid_argument);
    CHECK_THROWS_AS(cor(none, one), std::invalid_argument);
}

} // namespace test_correlation

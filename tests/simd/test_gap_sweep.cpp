#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/simd/gap_sweep.hpp"
#include "simd/padded.hpp"

namespace test_gap_sweep {

namespace simd = logitstat::simd;
using padded::bits;
using padded::for_each_placement;
using padded::Padded;
using padded::Random;
using padded::Sizes;
using padded::Special;

using Ints = std::vector<std::int32_t>;
using Counts = std::vector<std::int64_t>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Real> struct Columns {
    Ints ids_a, ids_b;
    std::vector<Real> best, second;
};

/// Gaps on a grid with many ties, some exactly 0; `different` in a thousand ids differ.
template <class Real> Columns<Real> random_columns(Random& random, std::size_t n, std::size_t different) {
    Columns<Real> c;
    for (std::size_t i = 0; i < n; ++i) {
        c.ids_a.push_back(static_cast<std::int32_t>(random.below(200'000)));
        c.ids_b.push_back(c.ids_a.back() ^ (random.below(1000) < different ? 1 << random.below(20) : 0));
        const double second = 0.0625 * static_cast<double>(random.below(400)) - 12;
        const double step = random.below(2) != 0 ? 0.0625 : 0.1;
        c.best.push_back(static_cast<Real>(second + step * static_cast<double>(random.below(60))));
        c.second.push_back(static_cast<Real>(second));
    }
    return c;
}

template <class Real> double gap(const Columns<Real>& c, std::size_t i) {
    return static_cast<double>(c.best[i]) - static_cast<double>(c.second[i]);
}

template <class T> std::int64_t at_least(const std::vector<T>& values, T level) {
    return std::count_if(values.begin(), values.end(), [&](T x) { return x >= level; });
}

template <class Real> Real from_bits(std::size_t kind) {
    return std::bit_cast<Real>(padded::bits_of<Real>(Special<Real>::non_finite[kind % 6]));
}

} // namespace

TEST_CASE_TEMPLATE("fill_gaps: every length and misalignment, exactly, and nothing else written", Real, float, double) {
    Random random(1);
    for_each_placement([&](std::size_t n, std::size_t shift) {
        const auto c = random_columns<Real>(random, n, 0);
        const Padded best(c.best, shift, 1), second(c.second, (shift + 5) % 16, 2);
        Padded gaps(std::vector<double>(n, -1), (shift + 11) % 16, 3);
        const bool fine = simd::fill_gaps(best.span(), second.span(), gaps.span());
        bool same = true;
        for (std::size_t i = 0; i < n; ++i) { same = same && bits(gaps.span()[i]) == bits(gap(c, i)); }
        if (!fine || !same || !gaps.intact()) {
            CAPTURE(n);
            CAPTURE(shift);
            CHECK(fine);
            CHECK(same);
            CHECK(gaps.intact());
        }
    });
}

TEST_CASE_TEMPLATE("fill_gaps refuses a negative or non-finite gap at every place", Real, float, double) {
    Random random(2);
    for (std::size_t n = 1; n <= 70; ++n) {
        auto c = random_columns<Real>(random, n, 0);
        const auto refused = [&] {
            std::vector<double> gaps(n);
            return !simd::fill_gaps(std::span<const Real>(c.best), std::span<const Real>(c.second), std::span(gaps));
        };
        for (std::size_t at = 0; at < n; ++at) {
            CAPTURE(n);
            CAPTURE(at);
            const Real best = c.best[at], second = c.second[at];
            c.second[at] = best + Real(0.0625);
            CHECK(refused());
            if (best != 0 || !padded::denormals_are_zero()) { // negative by one last digit
                c.second[at] = std::nextafter(best, std::numeric_limits<Real>::max());
                CHECK(refused());
            }
            c.second[at] = second;
            for (std::size_t kind = 0; kind < 6; ++kind) {
                c.best[at] = from_bits<Real>(kind);
                CHECK(refused());
                c.second[at] = from_bits<Real>(kind);
                CHECK(refused()); // infinity less infinity
                c.best[at] = best;
                CHECK(refused());
                c.second[at] = second;
            }
            CHECK(!refused());
        }
    }
}

TEST_CASE("fill_gaps: the widest gaps") {
    for (const std::size_t n : Sizes{1, 9, 40}) {
        std::vector<double> gaps(n);
        constexpr double largest = std::numeric_limits<double>::max();
        constexpr float largest_float = std::numeric_limits<float>::max();
        const std::vector<double> high(n, largest), low(n, -largest), zero(n, 0.0);
        CHECK(!simd::fill_gaps<xsimd::default_arch, double>(high, low, gaps)); // overflows
        CHECK(simd::fill_gaps<xsimd::default_arch, double>(high, zero, gaps));
        CHECK(gaps.back() == largest);
        const std::vector<float> float_high(n, largest_float), float_low(n, -largest_float);
        CHECK(simd::fill_gaps<xsimd::default_arch, float>(float_high, float_low, gaps)); // widened before subtracting
        CHECK(gaps.back() == 2.0 * largest_float);
    }
}

TEST_CASE_TEMPLATE("the gap of zeros is +0.0, whatever their signs", Real, float, double) {
    const Real plus = std::bit_cast<Real>(padded::bits_of<Real>(Special<Real>::finite[0]));
    const Real minus = std::bit_cast<Real>(padded::bits_of<Real>(Special<Real>::finite[1]));
    for (const std::size_t n : Sizes{1, 3, 8, 33, 1025}) {
        for (std::size_t at = 0; at < std::min<std::size_t>(n, 40); ++at) {
            std::vector<Real> best(n, plus), second(n, plus);
            best[at] = minus; // -0.0 - 0.0 is -0.0
            std::vector<double> gaps(n, -1);
            REQUIRE(simd::fill_gaps(std::span<const Real>(best), std::span<const Real>(second), std::span(gaps)));
            for (const double g : gaps) {
                if (bits(g) != 0) { CHECK(bits(g) == 0); }
            }
            const Ints a(n, 1), b(n, 2);
            for (const double t : {0.0, -0.0, 0.5, 0.1}) { // and so it is decided at 0, and not above
                Counts decided(1), mismatches(1);
                CHECK(simd::gap_sweep(std::span<const std::int32_t>(a), std::span<const std::int32_t>(b),
                                      std::span<const Real>(best), std::span<const Real>(second),
                                      std::span<const double>(&t, 1), std::span(decided), std::span(mismatches)) == n);
                CHECK(decided[0] == (t > 0 ? 0 : static_cast<std::int64_t>(n)));
                CHECK(mismatches[0] == decided[0]);
            }
        }
    }
}

TEST_CASE_TEMPLATE("count_at_least: any number of levels, slots in any order, added to what is there", T, std::int8_t,
                   double) {
    Random random(3);
    constexpr std::size_t lanes = simd::batch<T, xsimd::default_arch>::size;
    for (const std::size_t registers : Sizes{0, 1, 2, 3, 128, 255}) {
        for (std::size_t levels = 0; levels <= 10; ++levels) {
            std::vector<T> values(registers * lanes), level(levels);
            for (T& x : values) { x = static_cast<T>(static_cast<int>(random.below(20)) - 3); }
            for (T& x : level) { x = static_cast<T>(static_cast<int>(random.below(22)) - 4); }
            std::vector<std::size_t> slots(levels);
            std::iota(slots.begin(), slots.end(), std::size_t{0});
            for (std::size_t j = levels; j > 1; --j) { std::swap(slots[j - 1], slots[random.below(j)]); }
            Counts counts(levels + 1, 1000);
            simd::count_at_least<xsimd::default_arch, T>(values, level, slots, counts);
            for (std::size_t j = 0; j < levels; ++j) { CHECK(counts[slots[j]] == 1000 + at_least(values, level[j])); }
            CHECK(counts.back() == 1000); // a slot that was not named
        }
    }
}

TEST_CASE("count_at_least: bytes at the ends of their range, full counters, and slots that repeat") {
    using Bytes = std::vector<std::int8_t>;
    constexpr std::size_t most = 255 * simd::batch<std::int8_t, xsimd::default_arch>::size;
    Bytes values;
    for (const int x : {-128, -127, -1, 0, 1, 126, 127}) {
        values.insert(values.end(), 20, static_cast<std::int8_t>(x));
    }
    values.resize(256, -128);
    const Bytes levels{-127, -1, 0, 1, 126, 127};
    Counts counts(6);
    simd::count_at_least<xsimd::default_arch, std::int8_t>(values, levels, Sizes{0, 1, 2, 3, 4, 5}, counts);
    CHECK(counts == Counts{120, 100, 80, 60, 40, 20});
    Counts sum(1);
    simd::count_at_least<xsimd::default_arch, std::int8_t>(values, levels, std::vector<std::size_t>(6, 0), sum);
    CHECK(sum[0] == 420);
    Counts full(2);
    simd::count_at_least<xsimd::default_arch, std::int8_t>(Bytes(most, 127), Bytes{127, -127}, Sizes{0, 1}, full);
    CHECK(full == Counts(2, most));
}

TEST_CASE("keys order as doubles, and are exact for thresholds with four fraction bits") {
    for (const double t : {0.0, 0.5, 2.25, 1.9375, 10.0, 0x1p1023}) { CHECK(simd::has_exact_key(t)); }
    for (const double t : {0.1, 0.3, 1.03125, 0x1.000001p0}) { CHECK(!simd::has_exact_key(t)); }
    CHECK(simd::gap_key(0.0) == 0);
    CHECK(simd::gap_key(1.0) == 0x3ff0);
    CHECK(simd::gap_key(1.0625) == simd::gap_key(1.0) + 1);
    CHECK(simd::gap_key(std::nextafter(1.0625, 0.0)) == simd::gap_key(1.0));
    CHECK(simd::gap_key(-1.0) < 0);
}

TEST_CASE("key thresholds: every key, with thresholds anywhere in a window") {
    constexpr int infinite = 0x7ff0;
    std::vector<std::vector<int>> cases{{infinite - 1}, {0, infinite - 60, infinite - 1}};
    for (const int step : {51, 127, 128, 1000}) { // among them a window's last key, and the one after it
        cases.emplace_back();
        for (int key = 0; key < infinite; key += step) { cases.back().insert(cases.back().begin(), key); }
    }
    for (const std::vector<int>& levels : cases) {
        std::vector<double> thresholds;
        for (const int key : levels) {
            thresholds.push_back(std::bit_cast<double>(static_cast<std::uint64_t>(key) << 48));
        }
        std::vector<std::size_t> slots(thresholds.size());
        std::iota(slots.begin(), slots.end(), std::size_t{0});
        const simd::KeyThresholds counter(thresholds, slots);
        Counts counts(levels.size()), expected;
        for (const int level : levels) { expected.push_back(infinite - level); }
        for (int first = simd::no_key; first < infinite; first += static_cast<int>(simd::gap_block)) {
            std::vector<std::int16_t> keys;
            for (int key = first; key < infinite && keys.size() < simd::gap_block; ++key) {
                keys.push_back(static_cast<std::int16_t>(key));
            }
            const std::size_t n = keys.size();
            keys.resize(n + simd::padding, simd::no_key);
            counter.count<xsimd::default_arch>(keys.data(), n, counts);
        }
        CHECK(counts == expected);
    }
}

TEST_CASE("thresholds of every kind, against gaps at them and one step to either side") {
    std::vector<double> thresholds{0.0, -0.0, 0.1, 0.3, 0.5, 1.0, 2.25, 1e9, 0x1p1023, 0x1.00001p0, 7, 7};
    for (const double t : {0.5, 1.0, 2.0, 12.0}) {
        thresholds.push_back(std::nextafter(t, 0.0));
        thresholds.push_back(std::nextafter(t, 1e9));
    }
    thresholds.push_back(std::numeric_limits<double>::max());
    thresholds.push_back(std::numeric_limits<double>::min());
    if (!padded::denormals_are_zero()) { // the smallest, one whose lower half is zero, the largest
        for (const std::uint64_t b : {std::uint64_t{1}, std::uint64_t{1} << 32, (std::uint64_t{1} << 52) - 1}) {
            thresholds.push_back(std::bit_cast<double>(b));
        }
    }
    std::vector<double> gaps;
    for (const double t : thresholds) {
        const auto b = bits(t + 0.0) & ~(std::uint64_t{1} << 63);
        if (b != 0) { gaps.push_back(std::bit_cast<double>(b - 1)); }
        gaps.push_back(std::bit_cast<double>(b));
        if (t < std::numeric_limits<double>::max()) { gaps.push_back(std::bit_cast<double>(b + 1)); }
    }
    if (padded::denormals_are_zero()) {
        std::erase_if(gaps, [](double g) { return bits(g) != 0 && bits(g) >> 52 == 0; });
    }
    for (std::size_t n = 0; n <= gaps.size(); ++n) {
        const std::vector<double> some(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(n));
        const Padded best(some, n % 16, 0), second(std::vector<double>(n), n % 7, 1);
        const Padded ids(Ints(n, 5), n % 16, 2), others(Ints(n, 6), n % 11, 3);
        for (const bool differ : {false, true}) {
            Counts decided(thresholds.size()), mismatches(thresholds.size()), expected;
            for (const double t : thresholds) { expected.push_back(at_least(some, t)); }
            REQUIRE(simd::gap_sweep(ids.span(), differ ? others.span() : ids.span(), best.span(), second.span(),
                                    std::span<const double>(thresholds), std::span(decided),
                                    std::span(mismatches)) == n);
            CAPTURE(n);
            CHECK(decided == expected);
            CHECK(mismatches == (differ ? expected : Counts(thresholds.size())));
        }
    }
}

TEST_CASE_TEMPLATE("gap_sweep against plain loops", Real, float, double) {
    Random random(4);
    for_each_placement([&](std::size_t n, std::size_t shift) {
        const std::size_t different = std::vector<std::size_t>{0, 20, 500, 1000}[(n + shift) % 4];
        const auto c = random_columns<Real>(random, n, different);
        std::vector<double> thresholds;
        for (std::size_t j = (n * 3 + shift) % 9; j > 0; --j) {
            const double some = n > 0 ? gap(c, random.below(n)) : 1.0;
            const double choices[] = {0.0, 0.5, 1.0, 2.0, 0.1, 0.3, some, std::nextafter(some, infinity), 1e9};
            thresholds.push_back(choices[random.below(std::size(choices))]);
        }
        Counts decided(thresholds.size(), 5), mismatches(thresholds.size(), 7); // counts are added
        const Padded a(c.ids_a, shift, 1), b(c.ids_b, (shift + 3) % 16, 2);
        const Padded best(c.best, (shift + 6) % 16, 3), second(c.second, (shift + 9) % 16, 4);
        const std::size_t done =
            simd::gap_sweep(a.span(), b.span(), best.span(), second.span(), std::span<const double>(thresholds),
                            std::span(decided), std::span(mismatches));
        Counts expected_decided(thresholds.size(), 5), expected_mismatches(thresholds.size(), 7);
        for (std::size_t j = 0; j < thresholds.size(); ++j) {
            for (std::size_t i = 0; i < n; ++i) {
                const bool is_decided = gap(c, i) >= thresholds[j];
                expected_decided[j] += is_decided ? 1 : 0;
                expected_mismatches[j] += is_decided && c.ids_a[i] != c.ids_b[i] ? 1 : 0;
            }
        }
        if (done != n || decided != expected_decided || mismatches != expected_mismatches) {
            CAPTURE(n);
            CAPTURE(shift);
            CHECK(done == n);
            CHECK(decided == expected_decided);
            CHECK(mismatches == expected_mismatches);
        }
    });
}

TEST_CASE("gap_sweep: sparse differences over many blocks") {
    Random random(6);
    for (const std::size_t per_mille : Sizes{1, 5, 20, 60}) {
        const auto c = random_columns<double>(random, 9 * simd::gap_block + 77, per_mille);
        const std::vector<double> thresholds{0.0, 0.5, 2.0, 0.1};
        Counts decided(4), mismatches(4), expected(4);
        REQUIRE(simd::gap_sweep(std::span<const std::int32_t>(c.ids_a), std::span<const std::int32_t>(c.ids_b),
                                std::span<const double>(c.best), std::span<const double>(c.second),
                                std::span<const double>(thresholds), std::span(decided),
                                std::span(mismatches)) == c.best.size());
        for (std::size_t i = 0; i < c.best.size(); ++i) {
            for (std::size_t j = 0; j < 4; ++j) {
                expected[j] += c.ids_a[i] != c.ids_b[i] && gap(c, i) >= thresholds[j] ? 1 : 0;
            }
        }
        CHECK(mismatches == expected);
    }
}

TEST_CASE_TEMPLATE("gap_sweep stops at the block of the first bad gap", Real, float, double) {
    Random random(5);
    constexpr std::size_t n = 3 * simd::gap_block + 10;
    auto c = random_columns<Real>(random, n, 100);
    const std::vector<std::vector<double>> choices{{}, {0.5}, {0.1}, {0.5, 0.1}};
    for (const std::size_t at : Sizes{0, 1, 1023, 2046, 2047, 2048, 2049, 4095, 4096, 6143, 6144, 6153}) {
        for (std::size_t kind = 0; kind < 7; ++kind) {
            CAPTURE(at);
            CAPTURE(kind);
            const Real kept = c.best[at];
            c.best[at] = kind < 6 ? from_bits<Real>(kind) : c.second[at] - Real(0.5);
            for (const auto& thresholds : choices) {
                Counts decided(2), mismatches(2);
                const auto done =
                    simd::gap_sweep(std::span<const std::int32_t>(c.ids_a), std::span<const std::int32_t>(c.ids_b),
                                    std::span<const Real>(c.best), std::span<const Real>(c.second),
                                    std::span<const double>(thresholds), std::span(decided), std::span(mismatches));
                CHECK(done == at / simd::gap_block * simd::gap_block);
            }
            c.best[at] = kept;
        }
    }
}

} // namespace test_gap_sweep

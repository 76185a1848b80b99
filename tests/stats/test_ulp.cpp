#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "logitstat/stats/ulp.hpp"
#include "logitstat/trace/trace.hpp"

namespace test_ulp {

using namespace logitstat;
using enum storage_type;

namespace {

double printed(double x) {
    char text[64];
    std::snprintf(text, sizeof text, "%.6f", x);
    return std::atof(text);
}

template <class Real> auto infer(const std::vector<Real>& values) {
    std::vector<Real> enough; // eight times over: fewer than eight telling values decide nothing
    for (int i = 0; i < 8; ++i) { enough.insert(enough.end(), values.begin(), values.end()); }
    return infer_storage(std::span<const Real>(enough));
}

} // namespace

TEST_CASE("spacing against numpy") {
    // Python, numpy 1.24, at |x|: np.spacing(np.float16(x)); np.spacing(np.float32(x)). bfloat16 has float32's
    // exponents and 16 bits fewer, so its spacing is 2**16 times float32's; 65504's neighbour in float16 is 2**5 below.
    struct Row {
        double x, half, single;
    };
    const Row rows[] = {
        {0, 5.960464477539063e-08, 1.401298464324817e-45},
        {1, 0.0009765625, 1.1920928955078125e-07},
        {1.5, 0.0009765625, 1.1920928955078125e-07},
        {2, 0.001953125, 2.384185791015625e-07},
        {1.9990234375, 0.0009765625, 1.1920928955078125e-07},
        {40, 0.03125, 3.814697265625e-06},
        {12, 0.0078125, 9.5367431640625e-07},
        {0.0078125, 7.62939453125e-06, 9.313225746154785e-10},
        {65504, 32, 0.00390625},
        {6.1e-05, 5.960464477539063e-08, 3.637978807091713e-12},
        {6.103515625e-05, 5.960464477539063e-08, 7.275957614183426e-12},
        {0.0001220703125, 1.1920928955078125e-07, 1.4551915228366852e-11},
        {3.0517578125e-05, 5.960464477539063e-08, 3.637978807091713e-12},
        {5.960464477539063e-08, 5.960464477539063e-08, 7.105427357601002e-15},
        {1023.5, 0.5, 6.103515625e-05},
        {1024, 1.0, 0.0001220703125},
        {0.1, 6.103515625e-05, 7.450580596923828e-09},
        {3.75, 0.001953125, 2.384185791015625e-07},
    };
    for (const Row& row : rows) {
        for (const double x : {row.x, -row.x}) {
            CAPTURE(x);
            CHECK(spacing(float16, x) == row.half);
            CHECK(spacing(float32, x) == row.single);
            CHECK(spacing(bfloat16, x) == row.single * 0x1p16);
        }
    }
    CHECK(spacing(bfloat16, 12) == 0.0625); // as documented
    CHECK(spacing(bfloat16, 40) == 0.25);
    for (const double tiny : {0.0, 0x1p-149, 0x1p-127, 0x1.fffffep-127, 0x1p-126, 5e-324}) {
        CHECK(spacing(float32, tiny) == 0x1p-149);
        CHECK(spacing(bfloat16, tiny) == 0x1p-133);
    }
    CHECK(spacing(float32, 0x1p-125) == 0x1p-148);
    CHECK(spacing(bfloat16, 0x1p-125) == 0x1p-132);
}

TEST_CASE("spacing of float32 is the distance to the next float, rounding that of the conversion") {
    for (float x = 1e-42f; x < 1e38f; x *= 1.37f) {
        CAPTURE(x);
        CHECK(spacing(float32, x) == static_cast<double>(std::nextafter(x, INFINITY)) - static_cast<double>(x));
        CHECK(rounded_to(float32, x) == x);
        const double third = static_cast<double>(x) / 3;
        CHECK(rounded_to(float32, third) == static_cast<float>(third));
        CHECK(rounded_to(float32, -third) == static_cast<float>(-third));
    }
}

TEST_CASE("rounding goes to nearest, ties to even") {
    // Python: float(np.float16(x)); for bfloat16
    //   b = int(np.float32(x).view(np.uint32)); b = (b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000
    //   float(np.uint32(b).view(np.float32))
    CHECK(rounded_to(float16, 0.1) == 0.0999755859375);
    CHECK(rounded_to(float16, 1.00048828125) == 1);           // half a step above 1: to even
    CHECK(rounded_to(float16, 1.00146484375) == 1.001953125); // one and a half: to even
    CHECK(rounded_to(float16, 1.9999) == 2);
    CHECK(rounded_to(float16, -3.1416) == -3.140625);
    CHECK(rounded_to(float16, 3e-8) == 5.960464477539063e-08);
    CHECK(rounded_to(float16, 2.9e-8) == 0);
    CHECK(rounded_to(bfloat16, 0.1) == 0.10009765625);
    CHECK(rounded_to(bfloat16, 1.00390625) == 1);
    CHECK(rounded_to(bfloat16, 1.01171875) == 1.015625);
    CHECK(rounded_to(bfloat16, 40.1) == 40);
    CHECK(rounded_to(bfloat16, 40.2) == 40.25);
    CHECK(rounded_to(bfloat16, -12.04) == -12.0625);
    CHECK(rounded_to(bfloat16, 255.9) == 256);
    CHECK(rounded_to(bfloat16, 0) == 0);
}

TEST_CASE("beyond the largest number of a type nothing is rounded, below or above zero") {
    for (const double sign : {1.0, -1.0}) {
        for (const double x : {65504.5, 65519.9, 70001.25}) { CHECK(rounded_to(float16, sign * x) == sign * x); }
        CHECK(rounded_to(float16, sign * 65503.5) == sign * 65504);
        CHECK(rounded_to(bfloat16, sign * 0x1.ffp127) == sign * 0x1.ffp127);
        CHECK(rounded_to(bfloat16, sign * 0x1.fdfp127) == sign * 0x1.fep127);
        CHECK(rounded_to(float32, sign * 0x1.ffffffp127) == sign * 0x1.ffffffp127);
        CHECK(rounded_to(float32, sign * 0x1.fffffdfp127) == sign * 0x1.fffffep127);
    }
}

TEST_CASE("the storage type is the narrowest that holds every value, printed or not") {
    CHECK_FALSE(infer(std::vector<double>{}).has_value());
    CHECK_FALSE(infer(std::vector<float>{}).has_value());
    CHECK(infer<double>({0}) == float32);          // holds in any type, so it tells of none
    CHECK(infer<double>({1e-4, 2e-4}) == float32); // below what six decimals show
    CHECK(infer_storage(std::span<const double>(std::vector<double>(7, 2.5))) == float32);
    CHECK(infer_storage(std::span<const double>(std::vector<double>(8, 2.5))) == bfloat16);
    CHECK(infer<double>({1, -2, 0.5, 40.25, 1e30}) == float32); // 1e30 is no bfloat16
    CHECK(infer<double>({1, -2, 0.5, 40.25, 0x1p100}) == bfloat16);
    CHECK(infer<double>({1, 2, 0.007813}) == bfloat16); // 0.0078125 printed, rounded up or to even
    CHECK(infer<double>({1, 2, 0.007812}) == bfloat16);
    CHECK(infer<double>({1, 2, 0.007814}) == float32); // of no 16-bit type within half a decimal
    CHECK(infer<double>({1, 2, 0.00782}) == float16);  // 2^-7 + 2^-17 printed
    CHECK(infer<double>({1.001953}) == float16);       // 1 + 2^-9
    CHECK(infer<double>({1.001954}) == float32);
    CHECK(infer<double>({40.28125}) == float16); // between two bfloat16, at float16's step of 2^-5
    CHECK(infer<double>({40.25, 40.265625}) == float32);
    CHECK(infer<double>({0.1}) == float32);
    CHECK(infer<float>({1.5f, -0.25f, 40.25f}) == bfloat16);
    CHECK(infer<float>({1.5f, -0.25f, 40.28125f}) == float16);
    CHECK(infer<float>({1.5f, 0.1f}) == float32);
    // The largest numbers of each type, and beyond.
    CHECK(infer<double>({65504}) == float16);
    CHECK(infer<double>({65504, 0x1p16}) == float32);
    CHECK(infer<double>({-65504}) == float16);
    CHECK(infer<double>({-65504, -70001.25}) == float32);
    CHECK(infer<double>({0x1p16}) == bfloat16);
    CHECK(infer<double>({0x1.fep127}) == bfloat16);
    CHECK(infer<double>({0x1.fffffep127}) == float32);
    // One odd value decides, first or last.
    std::vector<double> many(1000, 2.5);
    many.back() = 0.1;
    CHECK(infer(many) == float32);
    many.back() = 2.5;
    many.front() = 1.001953125;
    CHECK(infer(many) == float16);
}

TEST_CASE("every bfloat16 and float16 between 1/64 and 64 is recognised through six printed decimals") {
    for (const auto& [type, digits] : {std::pair{bfloat16, 8}, std::pair{float16, 11}}) {
        std::vector<double> exact, text;
        for (int exponent = -6; exponent < 6; ++exponent) {
            for (int m = 1 << (digits - 1); m < 1 << digits; ++m) {
                const double x = std::ldexp(m, exponent - digits + 1);
                for (const double value : {x, -x}) {
                    exact.push_back(value);
                    text.push_back(printed(value));
                    CHECK(rounded_to(type, printed(value)) == value);
                }
            }
        }
        CHECK(infer(exact) == type);
        CHECK(infer(text) == type);
        text.push_back(printed(5.0 / 3)); // between the numbers of either type
        CHECK(infer(text) == float32);
        text.back() = 1.5 + 2e-6; // off by more than printing can explain
        CHECK(infer(text) == float32);
    }
}

TEST_CASE("a gap in ulps is in steps at the best's magnitude") {
    CHECK(gap_in_ulps(bfloat16, 40.25, 40) == 1);
    CHECK(gap_in_ulps(bfloat16, 12.25, 12) == 4);
    CHECK(gap_in_ulps(float16, 40.25, 40) == 8);
    CHECK(gap_in_ulps(float32, 40.25, 40) == 65536);
    CHECK(gap_in_ulps(bfloat16, 2, 2) == 0);
    CHECK(gap_in_ulps(bfloat16, 0, 0) == 0);
    CHECK(gap_in_ulps(bfloat16, 2, 1.9921875) == 0.5);     // one step below a power of two is half of one above
    CHECK(gap_in_ulps(bfloat16, -2, -2.015625) == 1);      // negative logits
    CHECK(gap_in_ulps(bfloat16, -1.9921875, -2) == 1);     // the best decides
    CHECK(gap_in_ulps(bfloat16, 0.25, -0.25) == 256);      // across zero
    CHECK(gap_in_ulps(bfloat16, 0.007813, 0.007751) == 1); // 0.0078125 and 0.00775146484375, printed
    CHECK(gap_in_ulps(bfloat16, 1.9999, 1) == 64);         // rounded to 2 first, whose step is 2^-6
    CHECK(gap_in_ulps(float16, 0x1p-24, 0) == 1);          // subnormal
    CHECK(gap_in_ulps(bfloat16, 40.2, 40.1) == 1);         // both rounded: 40.25 and 40
}

TEST_CASE("gaps of a trace in ulps") {
    auto trace = Trace<double>::with_shape(3, 2);
    trace.top_logits = {40.25, 12.25, -2, 40, 12, -2.015625};
    CHECK(gaps_in_ulps(trace, bfloat16) == std::vector<double>{1, 4, 1});
    CHECK(gaps_in_ulps(trace, float16) == std::vector<double>{8, 32, 8});
    auto single = Trace<float>::with_shape(1, 3);
    single.top_logits = {40.25f, 40, 3};
    CHECK(gaps_in_ulps(single, bfloat16) == std::vector<double>{1});
    CHECK(gaps_in_ulps(Trace<double>::with_shape(0, 2), bfloat16).empty());
    trace.top_logits[3] = 41; // not descending
    CHECK_THROWS_AS(gaps_in_ulps(trace, bfloat16), std::invalid_argument);
    trace.top_logits[3] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(gaps_in_ulps(trace, bfloat16), std::invalid_argument);
    trace.top_logits.pop_back();
    CHECK_THROWS_AS(gaps_in_ulps(trace, bfloat16), std::invalid_argument);
}

TEST_CASE("storage types have names") {
    CHECK(to_string(bfloat16) == "bfloat16");
    CHECK(to_string(float16) == "float16");
    CHECK(to_string(float32) == "float32");
}

} // namespace test_ulp

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "logitstat/simd/columns.hpp"
#include "logitstat/stats/gap.hpp"
#include "logitstat/trace/trace.hpp"

/// Gaps in units of the storage type's spacing. One bfloat16 step is 0.0625 at 12 and 0.25 at 40, so that a fixed
/// threshold means different things at different magnitudes; a gap of one step is a near-tie at any.
namespace logitstat {

/// The type that the harness kept its logits in.
enum class storage_type {
    bfloat16, ///< 8 significant bits
    float16,  ///< 11 significant bits
    float32   ///< 24 significant bits
};

/// The enumerator's name.
constexpr std::string_view to_string(storage_type type) {
    switch (type) {
    case storage_type::bfloat16: return "bfloat16";
    case storage_type::float16: return "float16";
    case storage_type::float32: return "float32";
    }
    return "unknown";
}

namespace detail {
struct StorageFormat {
    int digits, min_exponent; ///< significand bits with the hidden one; exponent of the smallest normal number
    double max;
};
constexpr StorageFormat format_of(storage_type type) {
    switch (type) {
    case storage_type::bfloat16: return {8, -126, 0x1.fep127};
    case storage_type::float16: return {11, -14, 65504};
    case storage_type::float32: break;
    }
    return {24, -126, 0x1.fffffep127};
}
} // namespace detail

/// Distance between neighbouring numbers of the type at magnitude |x|: 2^(floor(log2 |x|) - digits + 1), and the
/// spacing of subnormal numbers below the smallest normal one (0 included). Precondition: finite. O(1).
inline double spacing(storage_type type, double x) {
    const detail::StorageFormat format = detail::format_of(type);
    const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023; // -1023: 0 or tiny
    return std::ldexp(1.0, (std::max)(exponent, format.min_exponent) - format.digits + 1);
}

/// x rounded to the type, to nearest, ties to even: undoes the six printed decimals of a text trace. Precondition:
/// finite. O(1): on the bits, for values above the type's subnormal range.
inline double rounded_to(storage_type type, double x) {
    const detail::StorageFormat format = detail::format_of(type);
    if (std::abs(x) > format.max) { return x; }
    if (std::abs(x) < std::ldexp(1.0, format.min_exponent)) {
        const double step = spacing(type, x);
        return std::nearbyint(x / step) * step;
    }
    const int dropped = 53 - format.digits;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const std::uint64_t half = (std::uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
    return std::bit_cast<double>((bits + half) >> dropped << dropped);
}

/// The narrowest type that holds every value, up to the rounding of six printed decimals; float32 when neither 16-bit
/// type does, and when too few values could have told: at least 8 must be so large that the type's spacing shows in six
/// decimals. Nothing for no values. O(values), stops early for float32. Precondition: finite.
template <class Real> std::optional<storage_type> infer_storage(std::span<const Real> values) {
    if (values.empty()) { return std::nullopt; }
    constexpr double printed = 0.5000001e-6;
    for (const storage_type type : {storage_type::bfloat16, storage_type::float16}) {
        std::size_t telling = 0;
        const bool holds_all = std::all_of(values.begin(), values.end(), [&](Real value) {
            const auto x = static_cast<double>(value);
            telling += spacing(type, x) > 10 * printed ? 1 : 0;
            return std::abs(x) <= detail::format_of(type).max && std::abs(x - rounded_to(type, x)) <= printed;
        });
        if (holds_all && telling >= 8) { return type; }
    }
    return storage_type::float32;
}

/// The gap between best and second in steps of the type at the best's magnitude, both first rounded to the type. O(1).
/// Precondition: finite.
inline double gap_in_ulps(storage_type type, double best, double second) {
    const double top = rounded_to(type, best);
    return (top - rounded_to(type, second)) / spacing(type, top);
}

/// [n] the gaps of a trace in ulps. O(n). Throws as `gaps`.
template <trace_like T> std::vector<double> gaps_in_ulps(const T& trace, storage_type type) {
    std::vector<double> ulps = gaps(trace);
    const auto view = trace.view();
    for (std::size_t i = 0; i < ulps.size(); ++i) {
        ulps[i] = gap_in_ulps(type, static_cast<double>(view.logits(0)[i]), static_cast<double>(view.logits(1)[i]));
    }
    return ulps;
}

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include <Eigen/Core>

/// Rows of logits for the tests, and what is true of them, by other means than the library's. Special values are made
/// and recognised by their bits: these tests are also built with -ffast-math.
namespace rows {

using Eigen::bfloat16;
using Eigen::half;

template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

template <class T> T from_bits(std::uint64_t bits) {
    const auto narrow = static_cast<bits_of<T>>(bits);
    T x;
    std::memcpy(static_cast<void*>(&x), &narrow, sizeof(T));
    return x;
}
template <class T> bits_of<T> to_bits(T x) {
    bits_of<T> bits;
    std::memcpy(&bits, static_cast<const void*>(&x), sizeof(T));
    return bits;
}

/// Explicit bits of the fraction.
template <class T>
constexpr int fraction = std::is_same_v<T, half>       ? 10
                         : std::is_same_v<T, bfloat16> ? 7
                         : sizeof(T) == 4              ? 23
                                                       : 52;
template <class T> constexpr std::uint64_t sign_bit = std::uint64_t{1} << (8 * sizeof(T) - 1);
template <class T> constexpr std::uint64_t infinity_bits = (sign_bit<T> - 1) & ~((std::uint64_t{1} << fraction<T>)-1);

template <class T> T minus_infinity() { return from_bits<T>(infinity_bits<T> | sign_bit<T>); }
template <class T> bool is_minus_infinity(T x) { return to_bits(x) == (infinity_bits<T> | sign_bit<T>); }

/// What no row may hold: +infinity, quiet, signalling and negative NaN, NaN with all bits set.
template <class T> std::vector<T> forbidden() {
    const std::uint64_t quiet = std::uint64_t{1} << (fraction<T> - 1);
    std::vector<T> values;
    for (const std::uint64_t bits :
         {infinity_bits<T>, infinity_bits<T> | quiet, infinity_bits<T> | 1, infinity_bits<T> | sign_bit<T> | quiet,
          infinity_bits<T> | sign_bit<T> | 1, ~std::uint64_t{0}}) {
        values.push_back(from_bits<T>(bits));
    }
    return values;
}

/// The value by the definition of the format, NaN excepted; -infinity must be asked for first.
template <class T> long double value(T x) {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
        return static_cast<long double>(x);
    } else {
        const std::uint64_t bits = to_bits(x);
        const auto magnitude = static_cast<long double>(bits & ((std::uint64_t{1} << fraction<T>)-1));
        const int exponent = static_cast<int>((bits & (sign_bit<T> - 1)) >> fraction<T>);
        const int bias = std::is_same_v<T, half> ? 15 : 127;
        const long double one = static_cast<long double>(std::uint64_t{1} << fraction<T>);
        const long double size = exponent == 0 ? std::ldexp(magnitude, 1 - bias - fraction<T>)
                                               : std::ldexp(one + magnitude, exponent - bias - fraction<T>);
        return (bits & sign_bit<T>) != 0 ? -size : size;
    }
}

/// -log softmax(row)[target] in long double. Preconditions: no NaN, no +infinity, a finite target.
template <class T> long double nll(std::span<const T> row, std::size_t target) {
    bool any = false;
    long double max = 0;
    for (const T x : row) {
        if (!is_minus_infinity(x) && (!any || value(x) > max)) { max = value(x); }
        any = any || !is_minus_infinity(x);
    }
    long double sum = 0;
    for (const T x : row) {
        if (!is_minus_infinity(x)) { sum += std::exp(value(x) - max); }
    }
    return (max - value(row[target])) + std::log(sum);
}

/// All ids, best first, equal logits by id.
template <class T> std::vector<std::int32_t> ranking(std::span<const T> row) {
    std::vector<std::int32_t> ids(row.size());
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<long double> values;
    for (const T x : row) { values.push_back(is_minus_infinity(x) ? -1e4000L : value(x)); }
    std::stable_sort(ids.begin(), ids.end(), [&](std::int32_t a, std::int32_t b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    return ids;
}

/// A copy that begins `shift` elements into memory of its own, with NaN before and after it.
template <class T> class Surrounded {
  public:
    Surrounded(const std::vector<T>& values, std::size_t shift)
        : memory_(margin + shift, forbidden<T>()[1]), begin_(margin + shift), size_(values.size()) {
        memory_.insert(memory_.end(), values.begin(), values.end());
        memory_.insert(memory_.end(), margin, forbidden<T>()[1]);
    }
    std::span<const T> span() const { return std::span(memory_).subspan(begin_, size_); }
    std::span<T> span() { return std::span(memory_).subspan(begin_, size_); }

  private:
    static constexpr std::size_t margin = 200;
    std::vector<T> memory_;
    std::size_t begin_, size_;
};

/// Logits as models give them: a bell of width 3 with a few high ones; rounded to T, so that ties are common where T is
/// narrow. The engine alone, since the standard's distributions differ between libraries.
template <class T> std::vector<T> like_a_model(std::size_t n, std::uint64_t seed, double scale = 1, double offset = 0) {
    std::mt19937_64 random(seed);
    std::vector<T> row(n);
    for (T& x : row) {
        double sum = 0;
        for (int i = 0; i < 4; ++i) { sum += static_cast<double>(random() >> 11) * 0x1p-53; }
        const double high = random() % 1000 == 0 ? 12 : 0;
        x = static_cast<T>(static_cast<float>(offset + scale * ((sum - 2) * 5 + high)));
        if constexpr (std::is_same_v<T, double>) { x = offset + scale * ((sum - 2) * 5 + high); }
    }
    return row;
}

} // namespace rows

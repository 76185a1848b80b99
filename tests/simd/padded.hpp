#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

/// What the tests of the kernels share. They are also built with -ffast-math, where the compiler may assume that there
/// is no NaN: special values are made from bits, and compared as bits.
namespace padded {

using Sizes = std::initializer_list<std::size_t>;

template <class T> using bits_of = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T> bits_of<T> bits(T x) { return std::bit_cast<bits_of<T>>(x); }

template <class Real> struct Special;
template <> struct Special<float> {
    /// +-infinity; quiet, signalling and negative NaN; NaN with all bits set.
    static constexpr std::uint32_t non_finite[] = {0x7f800000u, 0xff800000u, 0x7fc00000u,
                                                   0x7f800001u, 0xffc00123u, 0xffffffffu};
    /// Zeros, smallest and largest denormals and normals of either sign, one.
    static constexpr std::uint32_t finite[] = {0x00000000u, 0x80000000u, 0x00000001u, 0x807fffffu, 0x00800000u,
                                               0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0x7f000000u};
};
template <> struct Special<double> {
    static constexpr std::uint64_t non_finite[] = {0x7ff0000000000000u, 0xfff0000000000000u, 0x7ff8000000000000u,
                                                   0x7ff0000000000001u, 0xfff8000000000123u, 0xffffffffffffffffu};
    static constexpr std::uint64_t finite[] = {0x0000000000000000u, 0x8000000000000000u, 0x0000000000000001u,
                                               0x800fffffffffffffu, 0x0010000000000000u, 0x7fefffffffffffffu,
                                               0xffefffffffffffffu, 0x3ff0000000000000u, 0x7fe0000000000000u};
};

/// A quiet NaN for floating types, a number of its own for each `salt` for integers: what stands around a span must not
/// reach a result, so it is chosen to spoil one, and differently in each operand.
template <class T> T poison(int salt) {
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(0x5a5a5a00 + salt);
    } else {
        return std::bit_cast<T>(static_cast<bits_of<T>>(Special<T>::non_finite[2] + static_cast<unsigned>(salt)));
    }
}

/// A copy of `values` that begins `shift` elements into memory of its own and is surrounded by poison.
template <class T> class Padded {
  public:
    static constexpr std::size_t margin = 80; // more than a block of the widest registers

    Padded(const std::vector<T>& values, std::size_t shift, int salt)
        : memory_(margin + shift + values.size() + margin, poison<T>(salt)), begin_(margin + shift),
          size_(values.size()), salt_(salt) {
        std::copy(values.begin(), values.end(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_));
    }
    std::span<const T> span() const { return std::span(memory_).subspan(begin_, size_); }
    std::span<T> span() { return std::span(memory_).subspan(begin_, size_); }

    /// Nothing outside the span has been written.
    bool intact() const {
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            const bool outside = i < begin_ || i >= begin_ + size_;
            if (outside && std::bit_cast<bits_of<T>>(memory_[i]) != bits(poison<T>(salt_))) { return false; }
        }
        return true;
    }

  private:
    std::vector<T> memory_;
    std::size_t begin_, size_;
    int salt_;
};

/// f(length, shift): every length of a few registers at every misalignment, and lengths around the blocks of a kernel.
void for_each_placement(auto f) {
    for (std::size_t n = 0; n <= 300; ++n) {
        for (std::size_t shift = 0; shift < 16; ++shift) { f(n, shift); }
    }
    for (const std::size_t n : Sizes{511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 4096, 5000}) {
        for (const std::size_t shift : Sizes{0, 1, 7, 8, 15}) { f(n, shift); }
    }
}

/// Small random numbers; the standard's distributions differ between libraries.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }

  private:
    std::mt19937_64 engine_;
};

/// Under -ffast-math the startup code may have told the processor to take denormal numbers for zero: a program's choice
/// that no kernel can undo, so tests of denormals ask first.
inline bool denormals_are_zero() {
    volatile double tiny = std::bit_cast<double>(std::uint64_t{1});
    return !(tiny > 0);
}

} // namespace padded

#pragma once

#include <vector>

// What the generator of mutants must find and what it must leave alone: see sample.txt. a < b in a comment is no code.
namespace sample {

inline constexpr int limit = 10;

template <class T, int N = 3> struct Box {
    std::vector<std::vector<T>> rows;
    double scale = 0.5;
    friend bool operator==(const Box&, const Box&) = default;
};

inline double compute(const std::vector<double>& x, bool flag) {
    if (x.empty()) { return 0; }
    if (x.size() < 2 && !flag) { throw std::invalid_argument("size " + std::to_string(x.size() - 1)); }
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] == 1) { continue; }
        sum += x[i] * 2;
    }
    check(sum, "1 + 1");
    if constexpr (sizeof(double) > 4) { sum -= (std::min)(sum, 1.5); }
    const auto pick = [&](int k) { return k > limit || flag ? -1 : k; };
    return std::sqrt(sum / static_cast<double>(x.size())) + pick(0x10) - std::max<double>(sum, 1e3);
}

} // namespace sample

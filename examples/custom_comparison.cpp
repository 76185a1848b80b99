// custom_comparison REFERENCE CANDIDATE: a statistic of one's own. Does the top-1 token change more often early in a
// chunk, where there is little context? The rate of disagreements by position in the chunk, with exact 95 % intervals.

#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>

#include "logitstat/logitstat.hpp"

int main(int argc, char** argv) try {
    if (argc != 3) { throw std::invalid_argument("usage: custom_comparison REFERENCE CANDIDATE"); }
    const auto reference = logitstat::read_trace(argv[1]); // text or binary
    const auto candidate = logitstat::read_trace(argv[2]);
    logitstat::require_comparable(reference, candidate); // the same tokens, or an exception that names the difference

    struct Count {
        std::int64_t positions = 0, disagreements = 0;
    };
    std::map<std::int64_t, Count> by_depth; // first position of a range: 0, 1, 2, 4, 8, ...
    const auto differs = logitstat::disagreements(reference, candidate); // one byte a position
    for (std::size_t i = 0; i < differs.size(); ++i) {
        std::int64_t first = reference.pos[i] == 0 ? 0 : 1;
        while (first > 0 && 2 * first <= reference.pos[i]) { first *= 2; }
        ++by_depth[first].positions;
        by_depth[first].disagreements += differs[i];
    }
    std::puts("position in chunk   disagreements       rate   95 % interval");
    for (const auto& [first, count] : by_depth) {
        const auto p = logitstat::proportion(count.disagreements, count.positions);
        std::printf("%8lld to %-8lld %6lld / %-7lld %6.2f %%   %.2f to %.2f %%\n", static_cast<long long>(first),
                    static_cast<long long>(first == 0 ? 0 : 2 * first - 1), static_cast<long long>(p.k),
                    static_cast<long long>(p.n), 100 * p.rate.value(), 100 * p.interval.lo, 100 * p.interval.hi);
    }
    return 0;
} catch (const std::exception& error) { // a file with an error, other tokens: no figure at all
    std::fprintf(stderr, "custom_comparison: %s\n", error.what());
    return 2;
}

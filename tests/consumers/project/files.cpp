// files TRACE: the component io, here a trace against itself.
#include <cstdio>

#include "logitstat/compare.hpp"
#include "logitstat/io/read_trace.hpp"

int main(int argc, char** argv) {
    if (argc != 2) { return 2; }
    const auto trace = logitstat::read_trace(argv[1]);
    const auto result = logitstat::compare(trace, trace);
    std::printf("%lld positions\n", static_cast<long long>(result.positions));
    return logitstat::exit_code(result.verdict);
}

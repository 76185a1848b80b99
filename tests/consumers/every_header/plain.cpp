// every_header TRACE: every header in two translation units, of which each compares the trace with itself.
#include "every_header/backwards.hpp"

#include <cstdio>

std::string report_of(const std::string& path);

int main(int argc, char** argv) {
    if (argc != 2) { return 2; }
    const auto trace = logitstat::read_trace(argv[1]);
    const std::string report = logitstat::text_report(logitstat::compare(trace, trace));
    if (report.empty() || report != report_of(argv[1])) {
        std::puts("the two translation units do not agree");
        return 1;
    }
    return 0;
}

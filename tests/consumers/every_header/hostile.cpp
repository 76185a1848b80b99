// Every header after macros named min and max, as some system headers define them; built without run-time type
// information and without optimisation. plain.cpp includes the same in reverse order, and both are linked into one program.
#include "every_header/foreign.hpp" // all that they include

#define min(a, b) a macro named min
#define max(a, b) a macro named max

#include "every_header/headers.hpp"

std::string report_of(const std::string& path) {
    const auto trace = logitstat::read_trace(path);
    return logitstat::text_report(logitstat::compare(trace, trace));
}

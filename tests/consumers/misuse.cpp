// What must not compile. Each line marked "error:" is one, and no other line; the text is what the compiler must say.
#include <cstdint>
#include <span>
#include <vector>

#include "logitstat/compare.hpp"
#include "logitstat/logits/logits_view.hpp"

// A number is no confidence level: it could be a threshold, a rate or an alpha.
auto level = logitstat::clopper_pearson(1, 10, 0.95);                       // error: confidence_level
auto threshold = logitstat::student_interval(0, 1, 9, 2.0);                 // error: confidence_level
logitstat::CompareOptions options{.decided_gap = 2.0, .confidence = 0.95};  // error: confidence_level

// A trace holds floating-point numbers; logits are float, double, half or bfloat16.
logitstat::Trace<int> of_integers;                                          // error: constraint
logitstat::LogitsView<std::int8_t>* quantized = nullptr;                    // error: constraint

// What is compared are traces, and a Comparison is no verdict.
auto no_traces = logitstat::compare(std::vector<float>(), std::vector<float>()); // error: no matching function
int status(const logitstat::Comparison& result) {
    return logitstat::exit_code(result); // error: (cannot convert|no matching function|no viable conversion)
}

// A view's columns are read-only.
void write(logitstat::TraceView<float> view) {
    view.nll[0] = 0; // error: (read-only|not assignable)
}

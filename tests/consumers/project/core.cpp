// What the core offers, compiled where nlohmann-json, Boost.Interprocess and <execution> are errors.
#include <cstdio>

#include "logitstat/compare.hpp"
#include "logitstat/report/text.hpp"
#include "logitstat/version.hpp"

int main() {
    logitstat::Trace<float> reference;
    reference.k = 2;
    reference.chunk = {0, 0};
    reference.pos = {0, 1};
    reference.target = {7, 8};
    reference.nll = {0.5F, 0.25F};
    reference.top_ids = {7, 8, 1, 2};
    reference.top_logits = {9, 8, 5, 7.5F};
    auto candidate = reference;
    candidate.top_ids = {1, 8, 7, 2}; // another best token where the reference had decided
    const auto result = logitstat::compare(reference, candidate);
    std::puts(logitstat::text_report(result).c_str());
    return logitstat::exit_code(result.verdict) == 1 ? 0 : 1;
}

// The component dispatch: a row of logits by the kernels that were chosen when the program began.
#include <array>
#include <cstdio>

#include "logitstat/capture/score_row.hpp"
#include "logitstat/simd/dispatch.hpp"

int main() {
    std::array<float, 1000> logits{};
    logits[7] = 100;
    const auto score = logitstat::score_row(logits, 7, 1);
    std::puts(logitstat::simd::dispatched_arch_name());
    return score.ids[0] == 7 && score.nll < 1e-6 ? 0 : 1;
}

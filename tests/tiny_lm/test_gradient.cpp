#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include "tiny_lm/backward.hpp"
#include "tiny_lm/random_model.hpp"

namespace test_gradient {

using namespace tiny_lm;

// Backpropagation in double against central differences of the loss, at every weight of a small model.

TEST_CASE("tiny_lm: the gradient is the slope of the loss, at every weight") {
    const Shape shape = test::small_shape;
    auto weights = test::random_weights<double>(shape, 1);
    const auto text = test::random_tokens(shape, 9, 2);
    const std::span tokens(text.data(), 8), targets(text.data() + 1, 8);
    const Arithmetic<double> plain;
    Activations<double> activations;
    const auto loss = [&] {
        Matrix<double> logits = forward(shape, weights, plain, tokens, activations);
        return cross_entropy<double>(logits, targets);
    };

    Weights<double> gradient(shape);
    Matrix<double> logits = forward(shape, weights, plain, tokens, activations);
    cross_entropy<double>(logits, targets); // logits are now its gradient
    backward(shape, weights, tokens, activations, logits, gradient);

    constexpr double step = 1e-5; // error of the difference about step^2, of rounding about 1e-16 * loss / step
    const auto parameters = weights.all(), slopes = gradient.all();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        CAPTURE(parameters[i].name);
        Matrix<double>& values = *parameters[i].matrix;
        double worst = 0, largest = 0;
        for (Index j = 0; j < values.size(); ++j) {
            const double value = values.data()[j];
            values.data()[j] = value + step;
            const double above = loss();
            values.data()[j] = value - step;
            const double below = loss();
            values.data()[j] = value;
            const double slope = (above - below) / (2 * step);
            const double error = std::abs(slopes[i].matrix->data()[j] - slope);
            worst = error <= worst ? worst : error; // a NaN stays
            largest = std::max(largest, std::abs(slope));
        }
        CHECK(worst < 2e-8);
        CHECK(largest > 0.01); // every matrix has a say
    }
}

TEST_CASE("tiny_lm: cross entropy of logits worked out by hand") {
    Matrix<double> logits(2, 3);
    logits << 0, 0, 0, std::log(1.0), std::log(2.0), std::log(5.0);
    const std::uint8_t targets[] = {1, 2};
    CHECK(cross_entropy<double>(logits, targets) == doctest::Approx(std::log(3.0) + std::log(8.0 / 5)).epsilon(1e-14));
    const double expected[] = {1.0 / 3, 1.0 / 3 - 1, 1.0 / 3, 1.0 / 8, 2.0 / 8, 5.0 / 8 - 1};
    for (Index i = 0; i < 6; ++i) { CHECK(logits.data()[i] == doctest::Approx(expected[i]).epsilon(1e-14)); }
}

} // namespace test_gradient

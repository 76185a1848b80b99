#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model.hpp"

namespace tiny_lm {

/// Adds to `gain_gradient` and returns the gradient by x, given that by y = rms_norm(x).
template <class Scalar>
Matrix<Scalar> rms_norm_backward(const Matrix<Scalar>& x, const Matrix<Scalar>& gain, const Matrix<Scalar>& y_gradient,
                                 Matrix<Scalar>& gain_gradient) {
    Matrix<Scalar> x_gradient(x.rows(), x.cols());
    for (Index t = 0; t < x.rows(); ++t) {
        const Scalar width = static_cast<Scalar>(x.cols());
        const Scalar inverse = 1 / std::sqrt(x.row(t).squaredNorm() / width + static_cast<Scalar>(norm_epsilon));
        gain_gradient.row(0) += y_gradient.row(t).cwiseProduct(x.row(t)) * inverse;
        const Matrix<Scalar> through_gain = y_gradient.row(t).cwiseProduct(gain.row(0));
        const Scalar along = through_gain.row(0).dot(x.row(t)) * inverse * inverse / width;
        x_gradient.row(t) = (through_gain.row(0) - x.row(t) * along) * inverse;
    }
    return x_gradient;
}

/// d gelu(x) / dx, the tanh form.
template <class Scalar> Matrix<Scalar> gelu_slope(const Matrix<Scalar>& x) {
    constexpr Scalar c = Scalar(0.7978845608028654), cubic = Scalar(0.044715);
    const auto a = x.array();
    const Matrix<Scalar> tanh = (c * (a + cubic * a.cube())).tanh();
    const auto t = tanh.array();
    return Scalar(0.5) * (1 + t) + Scalar(0.5) * a * (1 - t.square()) * c * (1 + 3 * cubic * a.square());
}

/// Sum over the tokens of -log softmax(logits)[target], in nats. `logits` become its gradient by the logits.
template <class Scalar> Scalar cross_entropy(Matrix<Scalar>& logits, std::span<const std::uint8_t> targets) {
    Scalar loss = 0;
    for (Index t = 0; t < logits.rows(); ++t) {
        auto row = logits.row(t);
        const Index target = targets[static_cast<std::size_t>(t)];
        const Scalar highest = row.maxCoeff(), above = row(target) - highest;
        row.array() = (row.array() - highest).exp();
        const Scalar sum = row.sum();
        loss += std::log(sum) - above;
        row /= sum;
        row(target) -= 1;
    }
    return loss;
}

/// Backpropagation through a forward pass in plain arithmetic: adds to `gradient` what `logit_gradient` [tokens]
/// [vocabulary] makes of every parameter. `a` holds that pass. Each block below is a block of `forward`, read upwards.
template <class Scalar>
void backward(const Shape& shape, const Weights<Scalar>& weights, std::span<const std::uint8_t> tokens,
              const Activations<Scalar>& a, const Matrix<Scalar>& logit_gradient, Weights<Scalar>& gradient) {
    const Index n = static_cast<Index>(tokens.size()), width = shape.width, head_width = shape.head_width();
    // y = x W^T: the gradient by W is dy^T x, that by x is dy W.
    const auto product = [](const Matrix<Scalar>& y_gradient, const Matrix<Scalar>& x, const Matrix<Scalar>& w,
                            Matrix<Scalar>& w_gradient) -> Matrix<Scalar> {
        w_gradient.noalias() += y_gradient.transpose() * x;
        return y_gradient * w;
    };

    const Matrix<Scalar> normed = product(logit_gradient, a.normed, weights.embedding, gradient.embedding);
    Matrix<Scalar> x = rms_norm_backward(a.output, weights.final_norm, normed, gradient.final_norm);

    for (std::size_t l = weights.layers.size(); l-- > 0;) {
        const auto& w = weights.layers[l];
        const auto& s = a.layers[l];
        auto& g = gradient.layers[l];

        Matrix<Scalar> up = product(x, s.gelu, w.down, g.down);
        up = up.cwiseProduct(gelu_slope(s.up)).eval();
        x += rms_norm_backward(s.middle, w.mlp_norm, product(up, s.mlp_normed, w.up, g.up), g.mlp_norm);

        const Matrix<Scalar> attended = product(x, s.attended, w.attention_out, g.attention_out);
        Matrix<Scalar> qkv(n, 3 * width);
        const Scalar scale = 1 / std::sqrt(static_cast<Scalar>(head_width));
        for (Index h = 0; h < shape.heads; ++h) {
            const auto part = [&](auto& m, Index i) { return m.middleCols(i * width + h * head_width, head_width); };
            const Matrix<Scalar>& attention = s.attention[static_cast<std::size_t>(h)];
            const Matrix<Scalar> out = attended.middleCols(h * head_width, head_width);
            part(qkv, 2) = attention.transpose() * out;
            Matrix<Scalar> scores = out * part(s.qkv, 2).transpose(); // by the attention; then, by the scores:
            const Eigen::Matrix<Scalar, Eigen::Dynamic, 1> mean = scores.cwiseProduct(attention).rowwise().sum();
            scores = ((scores.colwise() - mean).cwiseProduct(attention) * scale).eval();
            part(qkv, 0) = scores * part(s.qkv, 1);
            part(qkv, 1) = scores.transpose() * part(s.qkv, 0);
            rotate(part(qkv, 0), Scalar(-1));
            rotate(part(qkv, 1), Scalar(-1));
        }
        const Matrix<Scalar> normed_input = product(qkv, s.attention_normed, w.qkv, g.qkv);
        x += rms_norm_backward(s.input, w.attention_norm, normed_input, g.attention_norm);
    }
    for (Index t = 0; t < n; ++t) { gradient.embedding.row(tokens[static_cast<std::size_t>(t)]) += x.row(t); }
}

} // namespace tiny_lm

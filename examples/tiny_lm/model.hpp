#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "arithmetic.hpp"

/// A small language model over bytes: a causal transformer with RMS norms ahead of each block, rotary positions, GELU,
/// and an output matrix that is the embedding. Real in every respect but size, so that what users do to models (another
/// backend, narrow types, quantization, a bug) can be done to it in a second.
namespace tiny_lm {

struct Shape {
    Index vocabulary = 256; ///< tokens are bytes
    Index context = 128;    ///< tokens that it was trained to look at
    Index width = 64;
    Index heads = 4; ///< divides the width into heads of an even width
    Index layers = 4;
    Index hidden = 256; ///< of the MLP

    Index head_width() const { return width / heads; }
};

/// All parameters. A matrix maps its columns to its rows: y = x W^T for tokens in rows; a norm's gain is one row.
template <class Scalar> struct Weights {
    struct Layer {
        Matrix<Scalar> attention_norm, qkv, attention_out, mlp_norm, up, down;
    };
    Matrix<Scalar> embedding, final_norm;
    std::vector<Layer> layers;

    explicit Weights(const Shape& s)
        : embedding(Matrix<Scalar>::Zero(s.vocabulary, s.width)), final_norm(Matrix<Scalar>::Zero(1, s.width)),
          layers(static_cast<std::size_t>(s.layers)) {
        for (Layer& layer : layers) {
            layer.attention_norm.setZero(1, s.width);
            layer.qkv.setZero(3 * s.width, s.width);
            layer.attention_out.setZero(s.width, s.width);
            layer.mlp_norm.setZero(1, s.width);
            layer.up.setZero(s.hidden, s.width);
            layer.down.setZero(s.width, s.hidden);
        }
    }

    struct Named {
        std::string name;
        Matrix<Scalar>* matrix;
    };
    /// Every parameter by its name in the weights file, in that file's order.
    std::vector<Named> all() {
        std::vector<Named> list{{"embedding", &embedding}};
        for (std::size_t l = 0; l < layers.size(); ++l) {
            Layer& layer = layers[l];
            const std::string prefix = "layers." + std::to_string(l);
            list.insert(list.end(), {{prefix + ".attention_norm", &layer.attention_norm},
                                     {prefix + ".qkv", &layer.qkv},
                                     {prefix + ".attention_out", &layer.attention_out},
                                     {prefix + ".mlp_norm", &layer.mlp_norm},
                                     {prefix + ".up", &layer.up},
                                     {prefix + ".down", &layer.down}});
        }
        list.push_back({"final_norm", &final_norm});
        return list;
    }
};

/// What a forward pass computes on its way, one token a row; the backward pass reads it.
template <class Scalar> struct Activations {
    struct Layer {
        Matrix<Scalar> input, attention_normed, qkv, attended, middle, mlp_normed, up, gelu;
        std::vector<Matrix<Scalar>> attention; ///< a head: row t holds the weights of tokens 0 to t
    };
    std::vector<Layer> layers;
    Matrix<Scalar> output, normed; ///< of the last layer; after the final norm
};

inline constexpr double norm_epsilon = 1e-5;

/// Each row over its root mean square, times the gain (Zhang and Sennrich 2019, arXiv 1910.07467).
template <class Scalar>
Matrix<Scalar> rms_norm(const Matrix<Scalar>& x, const Matrix<Scalar>& gain, const Arithmetic<Scalar>& arithmetic) {
    Matrix<Scalar> y(x.rows(), x.cols()), squares = x.cwiseAbs2();
    for (Index t = 0; t < x.rows(); ++t) {
        const Scalar mean = arithmetic.sum(row_span(squares, t, x.cols())) / static_cast<Scalar>(x.cols());
        y.row(t) = x.row(t).cwiseProduct(gain.row(0)) / std::sqrt(mean + static_cast<Scalar>(norm_epsilon));
    }
    arithmetic.store(y);
    return y;
}

/// Turns pairs (i, i + width/2) of each row by its position times 10000^(-2i/width) (Su et al. 2021, arXiv 2104.09864);
/// `direction` -1 turns back.
template <class Scalar, class Block> void rotate(Block&& heads, Scalar direction) {
    const Index half = heads.cols() / 2;
    for (Index i = 0; i < half; ++i) {
        const Scalar frequency = std::pow(Scalar(10000), -static_cast<Scalar>(i) / static_cast<Scalar>(half));
        for (Index t = 0; t < heads.rows(); ++t) {
            const Scalar angle = static_cast<Scalar>(t) * frequency;
            const Scalar c = std::cos(angle), s = direction * std::sin(angle);
            const Scalar a = heads(t, i), b = heads(t, i + half);
            heads(t, i) = a * c - b * s;
            heads(t, i + half) = a * s + b * c;
        }
    }
}

/// Rows of scores to weights: softmax of row t over its entries 0 to t, the later ones 0.
template <class Scalar> void causal_softmax(Matrix<Scalar>& scores, const Arithmetic<Scalar>& arithmetic) {
    for (Index t = 0; t < scores.rows(); ++t) {
        auto seen = scores.row(t).head(t + 1);
        seen.array() = (seen.array() - seen.maxCoeff()).exp();
        seen /= arithmetic.sum(row_span(scores, t, t + 1));
        scores.row(t).tail(scores.cols() - t - 1).setZero();
    }
}

/// GELU in its tanh form (Hendrycks and Gimpel 2016, arXiv 1606.08415).
template <class Scalar> Matrix<Scalar> gelu(const Matrix<Scalar>& x) {
    const auto a = x.array();
    return Scalar(0.5) * a * (Scalar(1) + (Scalar(0.7978845608028654) * (a + Scalar(0.044715) * a.cube())).tanh());
}

/// The logits [tokens][vocabulary] that follow each of the tokens, computed as `arithmetic` does. Row t depends on
/// tokens 0 to t alone. Any number of tokens works; beyond `shape.context` the model was not trained.
template <class Scalar>
Matrix<Scalar> forward(const Shape& shape, const Weights<Scalar>& weights, const Arithmetic<Scalar>& arithmetic,
                       std::span<const std::uint8_t> tokens, Activations<Scalar>& a) {
    const Index n = static_cast<Index>(tokens.size()), width = shape.width, head_width = shape.head_width();
    const auto product = [&](const Matrix<Scalar>& x, const Matrix<Scalar>& w) {
        Matrix<Scalar> y = arithmetic.product(x, w);
        arithmetic.store(y);
        return y;
    };

    Matrix<Scalar> x(n, width);
    for (Index t = 0; t < n; ++t) { x.row(t) = weights.embedding.row(tokens[static_cast<std::size_t>(t)]); }

    a.layers.resize(weights.layers.size());
    for (std::size_t l = 0; l < weights.layers.size(); ++l) {
        const auto& w = weights.layers[l];
        auto& s = a.layers[l];
        s.input = x;
        s.attention_normed = rms_norm(x, w.attention_norm, arithmetic);
        s.qkv = product(s.attention_normed, w.qkv);
        s.attention.resize(static_cast<std::size_t>(shape.heads));
        s.attended.resize(n, width);
        for (Index h = 0; h < shape.heads; ++h) {
            rotate(s.qkv.middleCols(h * head_width, head_width), Scalar(1));
            rotate(s.qkv.middleCols(width + h * head_width, head_width), Scalar(1));
        }
        arithmetic.store(s.qkv);
        for (Index h = 0; h < shape.heads; ++h) {
            const auto part = [&](Index i) { return s.qkv.middleCols(i * width + h * head_width, head_width); };
            Matrix<Scalar>& attention = s.attention[static_cast<std::size_t>(h)];
            attention = arithmetic.product(part(0), part(1)) * arithmetic.attention_scale(h, shape.heads, head_width);
            arithmetic.store(attention);
            causal_softmax(attention, arithmetic);
            arithmetic.store(attention);
            s.attended.middleCols(h * head_width, head_width) = product(attention, part(2).transpose());
        }
        s.middle = x + product(s.attended, w.attention_out);
        arithmetic.store(s.middle);

        s.mlp_normed = rms_norm(s.middle, w.mlp_norm, arithmetic);
        s.up = product(s.mlp_normed, w.up);
        s.gelu = gelu(s.up);
        arithmetic.store(s.gelu);
        x = s.middle + product(s.gelu, w.down);
        arithmetic.store(x);
    }
    a.output = x;
    a.normed = rms_norm(x, weights.final_norm, arithmetic);
    return product(a.normed, weights.embedding);
}

} // namespace tiny_lm

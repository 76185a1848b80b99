#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string_view>

#include <Eigen/Core>

#include "arithmetic.hpp"

/// The arms that capture_tiny_lm offers: what users of a language model change about its arithmetic.
namespace tiny_lm {

/// Float32 as another backend sums it: matrix products split along the inner dimension into slices that are added last
/// to first, sums from the end.
class Reordered final : public Arithmetic<float> {
  public:
    Matrix<float> product(const Matrix<float>& x, const Matrix<float>& w) const override {
        constexpr Index slice = 16;
        Matrix<float> y = Matrix<float>::Zero(x.rows(), w.rows());
        for (Index at = (x.cols() - 1) / slice * slice; at >= 0; at -= slice) {
            const Index size = std::min(slice, x.cols() - at);
            y.noalias() += x.middleCols(at, size) * w.middleCols(at, size).transpose();
        }
        return y;
    }
    float sum(std::span<const float> terms) const override {
        float total = 0;
        for (auto term = terms.rbegin(); term != terms.rend(); ++term) { total += *term; }
        return total;
    }
};

/// Weights, and all that one operation hands to the next, rounded to a 16-bit type; inside an operation float32.
template <class Narrow> class Rounded final : public Arithmetic<float> {
  public:
    void weight(std::string_view, Matrix<float>& w) const override { store(w); }
    void store(Matrix<float>& m) const override { m = m.cast<Narrow>().template cast<float>(); }
};

/// The weights of the matrix products as whole numbers of `bits` bits times one scale a row, largest to largest; the
/// rest in float32. As GPTQ and AWQ do, the embedding, which is the output matrix too, and the norms stay as they are.
class Quantized final : public Arithmetic<float> {
  public:
    explicit Quantized(int bits) : largest_(static_cast<float>((1 << (bits - 1)) - 1)) {}

    void weight(std::string_view name, Matrix<float>& w) const override {
        if (!name.starts_with("layers.") || name.ends_with("norm")) { return; }
        for (auto row : w.rowwise()) {
            const float scale = row.cwiseAbs().maxCoeff() / largest_;
            if (scale > 0) { row = (row / scale).array().round() * scale; }
        }
    }

  private:
    float largest_;
};

/// Float32 with a bug: the kernel leaves the last head's attention scores without their scale, 1 / sqrt(head width).
class Broken final : public Arithmetic<float> {
  public:
    float attention_scale(Index head, Index heads, Index head_width) const override {
        return head + 1 == heads ? 1.0F : Arithmetic::attention_scale(head, heads, head_width);
    }
};

enum class logit_type { float32, bfloat16, float16 };

/// An arm by name.
struct Arm {
    std::string_view name, description;
    logit_type logits; ///< what the output layer leaves in memory, and so what a trace records
    std::unique_ptr<Arithmetic<float>> (*arithmetic)();
};

template <class A, auto... arguments> std::unique_ptr<Arithmetic<float>> make() {
    return std::make_unique<A>(arguments...);
}

inline constexpr std::array arms{
    Arm{"float32", "float32 throughout: the reference", logit_type::float32, make<Arithmetic<float>>},
    Arm{"float32-reordered", "float32, sums in another order, as on another backend", logit_type::float32,
        make<Reordered>},
    Arm{"bfloat16", "weights and activations in bfloat16, float32 inside an operation", logit_type::bfloat16,
        make<Rounded<Eigen::bfloat16>>},
    Arm{"float16", "the same in float16", logit_type::float16, make<Rounded<Eigen::half>>},
    Arm{"int8", "weights of the matrix products in 8 bits, a scale a row", logit_type::float32, make<Quantized, 8>},
    Arm{"int4", "the same in 4 bits", logit_type::float32, make<Quantized, 4>},
    Arm{"broken", "float32 with a bug: the last head's attention scores without their scale", logit_type::float32,
        make<Broken>},
};

} // namespace tiny_lm

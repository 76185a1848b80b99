#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include <Eigen/Core>

namespace tiny_lm {

using Eigen::Index;
template <class Scalar> using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Scalar> std::span<const Scalar> row_span(const Matrix<Scalar>& m, Index row, Index count) {
    return {m.data() + row * m.cols(), static_cast<std::size_t>(count)};
}

/// Everything in which one arm's forward pass may differ from another's. This one is plain: `Scalar` throughout,
/// Eigen's order of summation. The others (arms.hpp) change one thing each.
template <class Scalar> class Arithmetic {
  public:
    virtual ~Arithmetic() = default;

    /// Turns a parameter of the file into what this arm holds; called once for each, ahead of all else.
    virtual void weight(std::string_view /*name*/, Matrix<Scalar>&) const {}
    /// x W^T: rows of x against rows of W.
    virtual Matrix<Scalar> product(const Matrix<Scalar>& x, const Matrix<Scalar>& w) const { return x * w.transpose(); }
    virtual Scalar sum(std::span<const Scalar> terms) const {
        return Eigen::Map<const Eigen::Array<Scalar, Eigen::Dynamic, 1>>(terms.data(), std::ssize(terms)).sum();
    }
    /// What an operation leaves in memory for the next one.
    virtual void store(Matrix<Scalar>&) const {}
    /// The factor of a head's attention scores.
    virtual Scalar attention_scale(Index /*head*/, Index /*heads*/, Index head_width) const {
        return Scalar(1) / std::sqrt(static_cast<Scalar>(head_width));
    }
};

} // namespace tiny_lm

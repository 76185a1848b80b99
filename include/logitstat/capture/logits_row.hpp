#pragma once

#include <ranges>
#include <span>
#include <type_traits>

#include <Eigen/Core>

#include "logitstat/simd/logits.hpp"

/// What may be handed over as one row of logits: anything contiguous (std::span, std::vector, std::array) or an Eigen
/// vector expression (a row of a matrix, a Map), of float, double, Eigen::half or Eigen::bfloat16.
namespace logitstat {

/// An Eigen vector expression of logits.
template <class L>
concept eigen_logits =
    std::is_base_of_v<Eigen::DenseBase<L>, L> &&(L::IsVectorAtCompileTime != 0) && simd::logit_type<typename L::Scalar>;

/// A sized range of logits that lie one after the other, and no expression of Eigen's.
template <class L>
concept contiguous_logits = !std::is_base_of_v<Eigen::EigenBase<L>, L> && std::ranges::contiguous_range<const L> &&
                            std::ranges::sized_range<const L> && simd::logit_type<std::ranges::range_value_t<L>>;

/// One row of logits: what `score_row`, TraceBuilder and TraceRecorder take.
template <class L>
concept logits_row = eigen_logits<L> || contiguous_logits<L>;

namespace detail {

/// f(std::span<const T>) over the row's own memory; an Eigen expression without an inner stride of 1 is copied first.
template <logits_row L, class F> decltype(auto) with_span(const L& logits, const F& f) {
    if constexpr (eigen_logits<L>) {
        const Eigen::Ref<const typename L::PlainObject> row(logits);
        return f(std::span<const typename L::Scalar>(row.data(), static_cast<std::size_t>(row.size())));
    } else {
        return f(std::span<const std::ranges::range_value_t<L>>(logits));
    }
}

} // namespace detail
} // namespace logitstat

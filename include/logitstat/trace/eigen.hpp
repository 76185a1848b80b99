#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

#include <Eigen/Core>

#include "logitstat/trace/trace.hpp"

/// Columns as Eigen arrays, in place: for statistics of one's own, written as expressions.
namespace logitstat {

/// A read-only Eigen array of n rows over memory that others own.
template <class T> using ArrayMap = Eigen::Map<const Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1>>;

/// A column as an array of n: `(as_array(b.nll) - as_array(a.nll)).mean()`. No copy; the column must outlive the map.
template <class T> ArrayMap<T> as_array(std::span<T> column) {
    return {column.data(), static_cast<Eigen::Index>(column.size())};
}

/// The same for a vector, or any other contiguous range that outlives the map.
template <std::ranges::contiguous_range R> auto as_array(const R& column) {
    return as_array(std::span<const std::ranges::range_value_t<R>>(column));
}

/// The k planes as an array of n rows and k columns, in place: `as_planes(view.top_logits, view.k)`. No rows for k = 0.
template <class T> auto as_planes(std::span<T> planes, std::size_t k) {
    using Planes = Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic>;
    const auto columns = static_cast<Eigen::Index>(k);
    const auto rows = k == 0 ? Eigen::Index{0} : static_cast<Eigen::Index>(planes.size()) / columns;
    return Eigen::Map<const Planes>(planes.data(), rows, columns);
}

} // namespace logitstat

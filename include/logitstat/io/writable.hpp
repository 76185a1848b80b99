#pragma once

#include <stdexcept>
#include <string>

#include "logitstat/trace/finite.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"

namespace logitstat::detail {

/// Throws std::invalid_argument, naming the position, unless a reader would accept what is about to be written.
template <trace_like T> void require_writable(const T& trace) {
    check_shape(trace);
    if (trace.view().size() == 0) { throw std::invalid_argument("a trace without positions cannot be written"); }
    require_finite(trace);
    if (const auto defect = first_defect(trace)) {
        throw std::invalid_argument("position " + std::to_string(defect->position) + ": " + defect->reason);
    }
}

} // namespace logitstat::detail

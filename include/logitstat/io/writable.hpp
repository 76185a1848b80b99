#pragma once

#include <stdexcept>
#include <string>

#include "logitstat/trace/finite.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"

namespace logitstat {

/// What a writer of traces lets through. The defaults refuse what a reader refuses by default.
struct WriteOptions {
    bool keep_non_finite = false; ///< as ReadOptions::keep_non_finite: infinite and NaN values are written
};

namespace detail {

/// Throws std::invalid_argument, naming the position, unless a reader would accept what is about to be written.
template <trace_like T> void require_writable(const T& trace, WriteOptions options = {}) {
    check_shape(trace);
    if (trace.view().size() == 0) { throw std::invalid_argument("a trace without positions cannot be written"); }
    if (!options.keep_non_finite) { require_finite(trace); }
    if (const auto defect = first_defect(trace, options.keep_non_finite)) {
        throw std::invalid_argument("position " + std::to_string(defect->position) + ": " + defect->reason);
    }
}

} // namespace detail
} // namespace logitstat

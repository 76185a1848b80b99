#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_metadata.hpp"
#include "logitstat/io/read_options.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/tensor_convert.hpp"
#include "logitstat/trace/trace.hpp"
#include "logitstat/trace/validity.hpp"

namespace logitstat {

/// A binary trace (see binary_trace_writer.hpp), memory-mapped. Columns are viewed in place where type and alignment
/// allow, which in files of `write_binary_trace` read as their own type is everywhere; other columns are converted into
/// memory of its own: float to double exactly, half-width floats too, any integer type whose values fit int32. A double
/// file read as float would be rounded and is refused. Tensors of other names are ignored. Movable, not copyable; the
/// columns live as long as the object, also when it is moved.
template <std::floating_point Real> class MappedTrace : public TraceView<Real> {
  public:
    TraceSource source; ///< path, metadata, warnings, and lines that a text trace behind it had ahead of its data

    /// O(n k^2) for k up to 64, else O(n k log k): everything is checked, as the text reader does. Throws io_error when
    /// the file cannot be opened or became shorter meanwhile; parse_error naming file, tensor and position for what is
    /// no safetensors file or no trace, a tensor that is missing or of another type or shape, and whatever
    /// `first_defect` finds.
    explicit MappedTrace(const std::filesystem::path& path, ReadOptions options = {})
        : MappedTrace(SafetensorsFile(path), options) {}

    /// The same from a file that has been opened.
    explicit MappedTrace(SafetensorsFile file, ReadOptions options = {}) : file_(std::move(file)) {
        source.path = file_.name();
        detail::from_safetensors_metadata(file_.metadata(), source);
        const std::uint64_t n = shape_of("nll", 1)[0];
        if (n == 0) { fail("nll", "holds no position"); }
        const std::uint64_t k = shape_of("top_ids", 2)[0];
        if (k < 2) {
            fail("top_ids", "holds " + std::to_string(k) + " token id a position, at least 2 are needed for a gap");
        }
        this->k = static_cast<std::size_t>(k);
        this->chunk = integers("chunk", {n}, own_.chunk);
        this->pos = integers("pos", {n}, own_.pos);
        this->target = integers("target", {n}, own_.target);
        this->nll = reals("nll", {n}, own_.nll);
        this->top_ids = integers("top_ids", {k, n}, own_.top_ids);
        this->top_logits = reals("top_logits", {k, n}, own_.top_logits);
        if (const auto defect = first_defect(*this, options.keep_non_finite)) {
            fail(std::string(defect->column), at(defect->position) + ": " + defect->reason);
        }
        for (std::string& warning : content_warnings(*this, source.metadata, source.path)) {
            source.warnings.push_back(std::move(warning));
        }
        require_whole();
    }

    /// Throws io_error when the file has become shorter since it was opened: see MappedFile. For the end of a use.
    void require_whole() const { file_.file().require_whole(); }

    const SafetensorsFile& file() const noexcept { return file_; } ///< how it is stored, and tensors of other names

  private:
    [[noreturn]] void fail(const std::string& tensor, const std::string& reason) const {
        throw parse_error(file_.name(), "tensor '" + tensor + "': " + reason);
    }
    std::string at(std::size_t position) const {
        const bool known = position < this->pos.size(); // both are read first
        return "position " + std::to_string(position) +
               (known ? " (chunk " + std::to_string(this->chunk[position]) + ", pos " +
                            std::to_string(this->pos[position]) + ")"
                      : std::string());
    }

    const Tensor& tensor(const std::string& name) const {
        const Tensor* found = file_.find(name);
        if (found == nullptr) { fail(name, "is missing"); }
        return *found;
    }
    const std::vector<std::uint64_t>& shape_of(const std::string& name, std::size_t dimensions) const {
        const auto& shape = tensor(name).shape;
        if (shape.size() != dimensions) {
            fail(name, "shape " + detail::shape_text(shape) + ", expected " + (dimensions == 1 ? "[n]" : "[k, n]"));
        }
        return shape;
    }
    const Tensor& shaped(const std::string& name, const std::vector<std::uint64_t>& shape) const {
        const Tensor& found = tensor(name);
        if (found.shape != shape) {
            fail(name, "shape " + detail::shape_text(found.shape) + ", expected " + detail::shape_text(shape));
        }
        return found;
    }

    std::span<const std::int32_t> integers(const std::string& name, const std::vector<std::uint64_t>& shape,
                                           Column<std::int32_t>& own) const {
        const Tensor& from = shaped(name, shape);
        if (from.type == tensor_type::I32 && SafetensorsFile::is_aligned(from)) {
            return file_.values<std::int32_t>(from);
        }
        const auto narrow = [&](auto value, std::size_t i) {
            if (!std::in_range<std::int32_t>(value)) {
                fail(name, at(i % static_cast<std::size_t>(shape.back())) + ": " + std::to_string(value) +
                               " does not fit 32 bits with a sign");
            }
            return static_cast<std::int32_t>(value);
        };
        if (!detail::convert_integers(from, own, narrow)) {
            fail(name, "is of type " + std::string(to_string(from.type)) + ", expected I32 or another integer type");
        }
        return own;
    }

    std::span<const Real> reals(const std::string& name, const std::vector<std::uint64_t>& shape,
                                Column<Real>& own) const {
        const Tensor& from = shaped(name, shape);
        if (from.type == tensor_type_for<Real>() && SafetensorsFile::is_aligned(from)) {
            return file_.values<Real>(from);
        }
        const auto widen = [](auto value, std::size_t) { return static_cast<Real>(value); };
        switch (from.type) {
        case tensor_type::F16: detail::convert_elements<Eigen::half>(from, own, widen); break;
        case tensor_type::BF16: detail::convert_elements<Eigen::bfloat16>(from, own, widen); break;
        case tensor_type::F32: detail::convert_elements<float>(from, own, widen); break;
        case tensor_type::F64:
            if constexpr (std::is_same_v<Real, float>) {
                fail(name, "is of type F64, which float cannot hold: read it as double");
            } else {
                detail::convert_elements<double>(from, own, widen);
            }
            break;
        default: fail(name, "is of type " + std::string(to_string(from.type)) + ", expected F32 or F64");
        }
        return own;
    }

    SafetensorsFile file_;
    Trace<Real> own_; ///< the columns that had to be converted
};

} // namespace logitstat

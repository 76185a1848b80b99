#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "logitstat/error.hpp"
#include "logitstat/io/binary_trace_metadata.hpp"
#include "logitstat/io/kld.hpp"
#include "logitstat/io/mapped_file.hpp"
#include "logitstat/io/npy.hpp"
#include "logitstat/io/safetensors.hpp"
#include "logitstat/io/target_tensor.hpp"
#include "logitstat/logits/logits_view.hpp"

namespace logitstat {

/// How a file of logits is read.
struct LogitsOptions {
    /// Of safetensors files, the tensor that holds the logits; empty: the only one that can. Other formats have no
    /// names.
    std::string tensor = {};
};

namespace detail {

/// Throws parse_error unless a file that begins with these bytes may hold logits.
inline void require_logits(std::string_view head, const std::string& name) {
    if (looks_like_npy(head) || looks_like_safetensors(head) || looks_like_kld(head)) { return; }
    throw parse_error(name, head.empty() ? "the file is empty"
                                         : "no file of logits (.npy, safetensors, or llama.cpp's base "
                                           "log-probabilities, .kld): the file begins " +
                                               excerpt(head, 8));
}

/// An .npy or safetensors file and the tensor of it that holds logits: [n, V], or [batch, n, V], which is the same
/// bytes with the rows of one batch after those of another.
class LogitsShard {
  public:
    LogitsShard(MappedFile file, const std::string& name, const LogitsOptions& options)
        : file_(open(std::move(file), name)) {
        if (const auto* safetensors = std::get_if<SafetensorsFile>(&file_)) {
            if (options.tensor.empty() && says_trace(safetensors->metadata())) {
                throw parse_error(name,
                                  "a trace, not full logits: traces are compared by compare() and compare_traces");
            }
            tensor_ = choose_tensor(*safetensors, options.tensor, "logits", fits);
            if (const Tensor* found = named_targets(*safetensors)) { targets_ = target_values(*found, name); }
        } else {
            if (!options.tensor.empty()) {
                throw parse_error(name, "an .npy file has no tensor called " + excerpt(options.tensor));
            }
            tensor_ = std::get<NpyFile>(file_).tensor();
        }
        const auto fail = [&](const std::string& reason) { throw parse_error(name, tensor_label(tensor_) + reason); };
        const std::string form = std::string(to_string(tensor_.type)) + " " + shape_text(tensor_.shape);
        if (!fits(tensor_)) {
            fail(form + " cannot be logits, which are F16, BF16, F32 or F64 of shape [n, V] or [batch, n, V]");
        }
        vocabulary_ = static_cast<std::size_t>(tensor_.shape.back());
        if (tensor_.bytes.empty()) { fail(form + " holds no logits"); }
        if (vocabulary_ > static_cast<std::size_t>((std::numeric_limits<token_id>::max)())) {
            fail(form + ": a vocabulary above the 31 bits of a token id");
        }
        if (!SafetensorsFile::is_aligned(tensor_)) {
            fail("its bytes are not aligned for its type and cannot be viewed in place: rewrite the file with a writer "
                 "that aligns them, as numpy and safetensors do");
        }
        rows_ = tensor_.bytes.size() / row_bytes();
        if (targets_) { check_targets(*targets_, rows_, vocabulary_, name); }
    }

    tensor_type type() const { return tensor_.type; }
    std::size_t rows() const { return rows_; }
    std::size_t vocabulary() const { return vocabulary_; }
    /// The n of [batch, n, V]; nothing of [n, V].
    std::optional<std::size_t> rows_per_batch() const {
        if (tensor_.shape.size() < 3) { return std::nullopt; }
        return static_cast<std::size_t>(tensor_.shape[1]);
    }
    std::size_t row_bytes() const { return vocabulary_ * (element_bits(tensor_.type) / 8); }
    const std::optional<Column<token_id>>& targets() const { return targets_; }
    const MappedFile& file() const {
        return std::visit([](const auto& opened) -> const MappedFile& { return opened.file(); }, file_);
    }
    std::size_t row_offset(std::size_t row) const { ///< in the file, in bytes
        const char* const data = reinterpret_cast<const char*>(tensor_.bytes.data());
        return static_cast<std::size_t>(data - file().text().data()) + row * row_bytes();
    }
    template <logit_value T> LogitsView<T> view() const { ///< precondition: T is the type
        return {{reinterpret_cast<const T*>(tensor_.bytes.data()), rows_ * vocabulary_}, rows_, vocabulary_};
    }

  private:
    using File = std::variant<NpyFile, SafetensorsFile>;

    static bool fits(const Tensor& tensor) {
        const bool type = tensor.type == tensor_type::F16 || tensor.type == tensor_type::BF16 ||
                          tensor.type == tensor_type::F32 || tensor.type == tensor_type::F64;
        return type && (tensor.shape.size() == 2 || tensor.shape.size() == 3);
    }
    static File open(MappedFile file, const std::string& name) {
        require_logits(file.text(), name); // an empty one is not looked at before
        if (looks_like_npy(file.text())) { return NpyFile(std::move(file), name); }
        return SafetensorsFile(std::move(file), name);
    }

    File file_;
    Tensor tensor_;
    std::optional<Column<token_id>> targets_;
    std::size_t rows_ = 0, vocabulary_ = 0;
};

} // namespace detail

} // namespace logitstat

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "logitstat/error.hpp"
#include "logitstat/io/tensor.hpp"

/// The header of a safetensors file, a JSON object
///
///     {"__metadata__": {"key": "value", ...}, "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
///
/// from and to untrusted bytes. Needs nlohmann-json.
namespace logitstat {

/// `__metadata__` in the order of the file: keys are unique.
using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

namespace detail {

struct TensorEntry {
    Tensor tensor; ///< without its bytes
    std::uint64_t begin = 0, end = 0;
    bool has_type = false, has_shape = false, has_offsets = false;
};

/// Receives the header's JSON event by event and takes nothing but the form above, so that nesting is bounded by the
/// form and memory by the header's size, however hostile. Complaints are kept in `reason`; the parser then stops.
class SafetensorsHeaderSax : public nlohmann::json_sax<nlohmann::json> {
  public:
    static constexpr std::size_t most_dimensions = 64;

    std::vector<TensorEntry> tensors;
    SafetensorsMetadata metadata;
    std::string reason;

    bool start_object(std::size_t) override {
        switch (at_) {
        case Place::outside: at_ = Place::header; return true;
        case Place::metadata_begin: at_ = Place::metadata; return true;
        case Place::tensor_begin: at_ = Place::tensor; return true;
        default: return misplaced("an object");
        }
    }
    bool end_object() override {
        if (at_ == Place::tensor) {
            const TensorEntry& entry = tensors.back();
            if (!entry.has_type) { return fail("has no dtype"); }
            if (!entry.has_shape) { return fail("has no shape"); }
            if (!entry.has_offsets) { return fail("has no data_offsets"); }
        }
        at_ = at_ == Place::header ? Place::outside : Place::header;
        return true;
    }
    bool key(std::string& name) override {
        if (at_ == Place::header) {
            at_ = name == "__metadata__" ? Place::metadata_begin : Place::tensor_begin;
            if (at_ == Place::metadata_begin) {
                if (std::exchange(has_metadata_, true)) { return fail_header("__metadata__ comes twice"); }
            } else {
                tensors.emplace_back().tensor.name = std::move(name);
            }
            return true;
        }
        if (at_ == Place::metadata) {
            metadata.emplace_back(std::move(name), "");
            at_ = Place::metadata_value;
            return true;
        }
        TensorEntry& entry = tensors.back();
        const auto once = [&](bool& seen, Place next) {
            at_ = next;
            return !std::exchange(seen, true) || fail(name + " comes twice");
        };
        if (name == "dtype") { return once(entry.has_type, Place::type); }
        if (name == "shape") { return once(entry.has_shape, Place::shape_begin); }
        if (name == "data_offsets") { return once(entry.has_offsets, Place::offsets_begin); }
        return fail("unknown member " + excerpt(name));
    }
    bool string(std::string& text) override {
        if (at_ == Place::metadata_value) {
            metadata.back().second = std::move(text);
            at_ = Place::metadata;
            return true;
        }
        if (at_ != Place::type) { return misplaced("a string"); }
        const auto type = tensor_type_of(text);
        if (!type) { return fail("unknown dtype " + excerpt(text)); }
        tensors.back().tensor.type = *type;
        at_ = Place::tensor;
        return true;
    }
    bool start_array(std::size_t) override {
        if (at_ == Place::shape_begin) {
            at_ = Place::shape;
        } else if (at_ == Place::offsets_begin) {
            at_ = Place::offsets;
            count_ = 0;
        } else {
            return misplaced("an array");
        }
        return true;
    }
    bool end_array() override {
        if (at_ == Place::offsets && count_ != 2) { return fail("data_offsets are not two numbers"); }
        at_ = Place::tensor;
        return true;
    }
    bool number_unsigned(std::uint64_t value) override {
        if (at_ == Place::shape) {
            auto& shape = tensors.back().tensor.shape;
            if (shape.size() == most_dimensions) {
                return fail("has more than " + std::to_string(most_dimensions) + " dimensions");
            }
            shape.push_back(value);
            return true;
        }
        if (at_ != Place::offsets) { return misplaced("a number"); }
        if (count_ == 2) { return fail("data_offsets are not two numbers"); }
        (count_++ == 0 ? tensors.back().begin : tensors.back().end) = value;
        return true;
    }
    bool number_integer(std::int64_t value) override { return bad_number(std::to_string(value)); }
    bool number_float(double, const std::string& text) override { return bad_number(text); }
    bool null() override { return misplaced("null"); }
    bool boolean(bool) override { return misplaced("a boolean"); }
    bool binary(nlohmann::json::binary_t&) override { return misplaced("binary data"); }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
        return fail_header("not valid JSON at byte " + std::to_string(position));
    }

  private:
    enum class Place {
        outside,
        header,
        metadata_begin,
        metadata,
        metadata_value,
        tensor_begin,
        tensor,
        type,
        shape_begin,
        shape,
        offsets_begin,
        offsets
    };

    bool fail_header(std::string text) {
        reason = std::move(text);
        return false;
    }
    bool fail(const std::string& text) {
        return fail_header("tensor " + excerpt(tensors.back().tensor.name) + ": " + text);
    }
    bool bad_number(const std::string& text) {
        if (at_ != Place::shape && at_ != Place::offsets) { return misplaced("a number"); }
        return fail(std::string(at_ == Place::shape ? "shape" : "data_offsets") + " holds " + excerpt(text) +
                    ", not a whole number of 64 bits");
    }
    bool misplaced(const std::string& what) {
        switch (at_) {
        case Place::outside:
        case Place::header: return fail_header(what + " in place of the header's object");
        case Place::metadata_begin: return fail_header("__metadata__ is " + what + ", not an object of strings");
        case Place::metadata:
        case Place::metadata_value:
            return fail_header("__metadata__: the value of " + excerpt(metadata.back().first) + " is " + what +
                               ", not a string");
        case Place::tensor_begin: return fail("is " + what + ", not an object");
        case Place::tensor:
        case Place::type: return fail("its dtype is " + what + ", not a string");
        case Place::shape_begin:
        case Place::shape: return fail("its shape is or holds " + what + ", not whole numbers");
        case Place::offsets_begin:
        case Place::offsets: return fail("its data_offsets are or hold " + what + ", not whole numbers");
        }
        return fail_header(what + " where none belongs");
    }

    Place at_ = Place::outside;
    bool has_metadata_ = false;
    int count_ = 0;
};

/// Parses a header whose data section is `data_size` bytes; the tensors come back in the order of their bytes, which
/// are checked to cover the section without hole or overlap, as the format's reference implementation demands. Throws
/// parse_error naming `name` (the file) and the tensor. O(header log tensors).
inline SafetensorsHeaderSax parse_safetensors_header(std::string_view json, std::uint64_t data_size,
                                                     const std::string& name) {
    const auto fail = [&](const std::string& reason) { throw parse_error(name, "safetensors header: " + reason); };
    const auto fail_tensor = [&](const TensorEntry& entry, const std::string& reason) {
        fail("tensor " + excerpt(entry.tensor.name) + ": " + reason);
    };
    if (!json.starts_with('{')) { fail("does not begin with '{'"); }
    // The JSON parser takes a NUL for the end of its input and would not look at what follows.
    if (const std::size_t nul = json.find('\0'); nul != json.npos) {
        fail("not valid JSON at byte " + std::to_string(nul + 1));
    }
    SafetensorsHeaderSax header;
    if (!nlohmann::json::sax_parse(json.begin(), json.end(), &header)) { fail(header.reason); }

    // Names in order, so that equal ones are neighbours: hashing would let a hostile header choose collisions.
    const auto first_duplicate = [](std::vector<std::string_view> names) {
        std::ranges::sort(names);
        const auto twin = std::ranges::adjacent_find(names);
        return twin == names.end() ? std::string() : excerpt(*twin);
    };
    std::vector<std::string_view> names;
    for (const auto& [key, value] : header.metadata) { names.push_back(key); }
    if (const auto twin = first_duplicate(std::move(names)); !twin.empty()) {
        fail("__metadata__: " + twin + " comes twice");
    }
    names.clear();
    for (const TensorEntry& entry : header.tensors) { names.push_back(entry.tensor.name); }
    if (const auto twin = first_duplicate(std::move(names)); !twin.empty()) { fail("tensor " + twin + " comes twice"); }

    std::ranges::stable_sort(header.tensors, {},
                             [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); });
    std::uint64_t covered = 0;
    for (const TensorEntry& entry : header.tensors) {
        const std::string offsets = "data_offsets " + std::to_string(entry.begin) + " to " + std::to_string(entry.end);
        if (entry.end < entry.begin) { fail_tensor(entry, offsets + " run backwards"); }
        if (entry.end > data_size) {
            fail_tensor(entry, offsets + " reach beyond the file's " + std::to_string(data_size) + " bytes of data");
        }
        if (entry.begin != covered) {
            fail_tensor(entry, offsets +
                                   (entry.begin < covered ? " overlap the tensor before, which ends at "
                                                          : " leave a hole after ") +
                                   std::to_string(covered));
        }
        const auto wanted = byte_count(entry.tensor.type, entry.tensor.shape);
        if (!wanted) { fail_tensor(entry, "its shape asks for more bytes than can be counted, or for part of one"); }
        if (*wanted != entry.end - entry.begin) {
            fail_tensor(entry, offsets + " hold " + std::to_string(entry.end - entry.begin) +
                                   " bytes, its dtype and shape ask for " + std::to_string(*wanted));
        }
        covered = entry.end;
    }
    if (covered != data_size) {
        fail("its tensors end at byte " + std::to_string(covered) + " of the data, the file holds " +
             std::to_string(data_size));
    }
    return header;
}

} // namespace detail
} // namespace logitstat

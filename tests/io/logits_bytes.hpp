#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Files of logits put together byte by byte.
namespace testing {

inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) { text += static_cast<char>((value >> (8 * i)) & 255); }
    return text;
}
template <class T> std::string packed(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// An .npy file with exactly this header.
inline std::string npy_with_header(std::string_view header, std::string_view data, int major = 1) {
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(major);
    bytes += '\0';
    return bytes.append(little_endian(header.size(), major == 1 ? 2 : 4)).append(header).append(data);
}
/// As numpy writes it: padded so that the data begin at a multiple of 64.
inline std::string npy(const std::string& descr, const std::string& shape, std::string_view data, int major = 1) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.append(64 - (header.size() + 1 + (major == 1 ? 10 : 12)) % 64, ' ').append("\n");
    return npy_with_header(header, data, major);
}

/// A row of a .kld file.
struct KldRowBytes {
    float scale = 0, min_log_prob = 0;
    std::vector<std::uint16_t> q;

    std::string bytes() const {
        std::string text(8, '\0');
        std::memcpy(text.data(), &scale, 4);
        std::memcpy(text.data() + 4, &min_log_prob, 4);
        text += packed(q);
        return q.size() % 2 == 0 ? text : text + "\xAB\xCD"; // padding: anything
    }
};
inline std::string kld(std::int32_t n_ctx, std::int32_t n_vocab, std::int32_t n_chunk,
                       const std::vector<std::int32_t>& tokens, const std::vector<KldRowBytes>& rows) {
    std::string text = "_logits_" + packed(std::vector{n_ctx, n_vocab, n_chunk}) + packed(tokens);
    for (const KldRowBytes& row : rows) { text += row.bytes(); }
    return text;
}
/// Two chunks of five tokens of a vocabulary of three, with two evaluated positions each.
inline std::string small_kld() {
    return kld(5, 3, 2, {0, 1, 2, 1, 0, 2, 2, 1, 0, 1},
               {{0.0001f, -7.0f, {65535, 0, 100}},
                {0.0002f, -14.0f, {1, 2, 65535}},
                {0, -1.0986123f, {0, 0, 0}},
                {0.0001f, -6.75f, {65535, 65000, 3}}});
}

} // namespace testing

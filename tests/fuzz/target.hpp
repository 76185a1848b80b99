#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the fuzz targets share: a target is a function of untrusted bytes, with seeds to begin from.
namespace fuzz {

struct Target {
    std::string name;
    /// Returns for all bytes that are treated as documented; ends the process when a promise is broken. An exception
    /// that leaves it is one that no docstring names.
    void (*run)(std::string_view bytes);
    std::vector<std::string> (*seeds)();
};

std::vector<Target> trace_targets();
std::vector<Target> logits_targets();
std::vector<Target> manifest_targets();

/// All of them.
inline std::vector<Target> targets() {
    std::vector<Target> all = trace_targets();
    for (const auto& more : {logits_targets(), manifest_targets()}) { all.insert(all.end(), more.begin(), more.end()); }
    return all;
}

/// Ends the process, saying which promise is broken, unless it is kept: whatever the build, unlike assert.
inline void require(bool kept, const char* promise) {
    if (kept) { return; }
    std::fprintf(stderr, "broken: %s\n", promise);
    std::abort();
}
inline void require(bool kept, const std::string& promise) { require(kept, promise.c_str()); }

/// Uses a value, so that the reads that it is made of are not optimised away.
template <class T> void use(const T& value) {
    volatile T sink = value;
    static_cast<void>(sink);
}

/// Untrusted bytes taken from the front as numbers and text; zeros when none are left.
class Bytes {
  public:
    explicit Bytes(std::string_view bytes) : rest_(bytes) {}

    bool empty() const { return rest_.empty(); }
    std::size_t size() const { return rest_.size(); }
    template <class T> T take() {
        T value{};
        const std::size_t size = rest_.size() < sizeof value ? rest_.size() : sizeof value;
        std::memcpy(&value, rest_.data(), size);
        rest_.remove_prefix(size);
        return value;
    }
    std::uint8_t byte() { return take<std::uint8_t>(); }
    /// Up to `size` bytes.
    std::string text(std::size_t size) {
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(taken.size());
        return std::string(taken);
    }

  private:
    std::string_view rest_;
};

} // namespace fuzz

#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace logitstat {

/// Memory for columns of up to gigabytes: large blocks ask the system for huge pages (Linux), which means 512 times
/// fewer page faults on the first touch; these cost as much as parsing a text trace does.
template <class T> struct ColumnAllocator {
    using value_type = T;                                          ///< of the column
    static constexpr std::size_t huge_page = std::size_t{1} << 21; ///< bytes: above this a block is large

    ColumnAllocator() = default;
    /// There is no state: all allocators are alike.
    template <class U> ColumnAllocator(const ColumnAllocator<U>&) noexcept {}

    /// Whether n values ask for huge pages.
    static constexpr bool is_large(std::size_t n) { return n > huge_page / sizeof(T); }

    /// Memory for n values. Throws std::bad_array_new_length for more than can be addressed, std::bad_alloc for more
    /// than there is.
    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) { throw std::bad_array_new_length(); }
        if (!is_large(n)) { return std::allocator<T>().allocate(n); }
        void* const block = ::operator new(n * sizeof(T), std::align_val_t(huge_page));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        ::madvise(block, n * sizeof(T), MADV_HUGEPAGE); // a wish: without it everything works the same, slower
#endif
        return static_cast<T*>(block);
    }
    /// Gives back what `allocate(n)` gave.
    void deallocate(T* block, std::size_t n) noexcept {
        if (is_large(n)) {
            ::operator delete(block, std::align_val_t(huge_page));
        } else {
            std::allocator<T>().deallocate(block, n);
        }
    }
    /// Always: any of them gives back the memory of another.
    template <class U> friend bool operator==(const ColumnAllocator&, const ColumnAllocator<U>&) noexcept {
        return true;
    }
};

/// A column that owns its values: a std::vector in all but its allocator.
template <class T> using Column = std::vector<T, ColumnAllocator<T>>;

} // namespace logitstat

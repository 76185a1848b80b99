// AddressSanitizer knows nothing of the bytes between the end of a file and the end of the last page that it is mapped
// to: reading them gives zeros and no report. The linker (--wrap) sends mmap and munmap through here, where they are
// marked as forbidden.
#include <cstddef>

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern "C" {

void* __real_mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, std::size_t length);
void* __wrap_mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void* address, std::size_t length);

void* __wrap_mmap(void* address, std::size_t length, int protection, int flags, int file, off_t offset) {
    void* const mapped = __real_mmap(address, length, protection, flags, file, offset);
    struct stat status = {};
    if (mapped != MAP_FAILED && file >= 0 && ::fstat(file, &status) == 0) {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const auto end = static_cast<std::size_t>(status.st_size - offset);
        if (const std::size_t tail = end % page; tail != 0 && end <= length) {
            __asan_poison_memory_region(static_cast<char*>(mapped) + end, page - tail);
        }
    }
    return mapped;
}

int __wrap_munmap(void* address, std::size_t length) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    __asan_unpoison_memory_region(address, (length + page - 1) / page * page);
    return __real_munmap(address, length);
}
}

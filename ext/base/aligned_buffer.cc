#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace mimi {

namespace {

constexpr std::size_t cache_line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t floats) : floats_(floats) {
    if (floats > (static_cast<std::size_t>(-1) - huge_page_bytes) / sizeof(float)) throw std::bad_alloc();
    const std::size_t alignment = floats * sizeof(float) >= huge_page_bytes ? huge_page_bytes : cache_line_bytes;
    const std::size_t bytes = (floats * sizeof(float) + cache_line_bytes) / cache_line_bytes * cache_line_bytes;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<float*>(std::aligned_alloc(alignment, rounded)));
    if (!data_) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    // A wish: where the system has none to give, ordinary pages serve.
    if (alignment == huge_page_bytes) madvise(data_.get(), bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
#endif
    std::memset(data_.get(), 0, floats * sizeof(float));
}

}  // namespace mimi

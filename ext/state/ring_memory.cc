#include "state/ring_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace mimi {

RingMemory::RingMemory(std::size_t floats) : floats_(floats) {
    if (floats > static_cast<std::size_t>(-1) / (2 * sizeof(float))) throw std::bad_alloc();
    if (floats * sizeof(float) < large_bytes) {
        small_ = AlignedBuffer(floats);
        data_ = small_.data();
        return;
    }
    void* mapped = ::mmap(nullptr, floats * sizeof(float), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_bytes_ = floats * sizeof(float);
    data_ = static_cast<float*>(mapped);
#ifdef MADV_NOHUGEPAGE
    // A step writes a row of every head's ring, and these lie about a huge page apart: the first step would touch all of them.
    ::madvise(mapped, mapped_bytes_, MADV_NOHUGEPAGE);
#endif
}

RingMemory::~RingMemory() {
    if (mapped_bytes_ > 0) ::munmap(data_, mapped_bytes_);
}

void RingMemory::clear() {
    // Only Linux promises zeros after this advice.
#ifdef __linux__
    if (mapped_bytes_ > 0 && ::madvise(data_, mapped_bytes_, MADV_DONTNEED) == 0) return;
#endif
    std::fill_n(data_, floats_, 0.0f);
}

}  // namespace mimi

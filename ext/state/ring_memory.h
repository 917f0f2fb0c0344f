// The memory of a stream's ring of keys and values, zero at first. A small ring is there from the start, in huge pages where
// the system has them. A large one, gigabytes where attention reaches far, gets its pages from the system as they are first
// written: a stream that has just begun costs little, and making one no time.
#pragma once

#include <cstddef>

#include "base/aligned_buffer.h"

namespace mimi {

class RingMemory {
public:
    // From this size on a ring is large.
    static constexpr std::size_t large_bytes = std::size_t{64} << 20;

    // std::bad_alloc where there is no room.
    explicit RingMemory(std::size_t floats);
    ~RingMemory();
    RingMemory(const RingMemory&) = delete;
    RingMemory& operator=(const RingMemory&) = delete;

    // Aligned to 64 bytes.
    float* data() { return data_; }
    const float* data() const { return data_; }
    // All zero again; a large ring gives its pages back.
    void clear();

private:
    AlignedBuffer small_;
    std::size_t floats_;
    std::size_t mapped_bytes_ = 0;  // 0: small
    float* data_ = nullptr;
};

}  // namespace mimi

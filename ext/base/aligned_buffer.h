// Owning storage of floats, zeroed, aligned to a cache line (64 bytes), sized once. Large buffers ask for huge pages, for as
// much of them as fills whole ones: weights are read end to end every frame, and fewer page walks are worth a tenth of that.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace mimi {

class AlignedBuffer {
public:
    AlignedBuffer() = default;
    // std::bad_alloc where there is no room.
    explicit AlignedBuffer(std::size_t floats);

    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }
    std::size_t size() const { return floats_; }
    std::size_t size_bytes() const { return floats_ * sizeof(float); }

private:
    struct Free {
        void operator()(float* pointer) const { std::free(pointer); }
    };

    std::size_t floats_ = 0;
    std::unique_ptr<float, Free> data_;
};

}  // namespace mimi

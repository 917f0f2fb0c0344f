// Owning storage of floats, zeroed, aligned to a cache line (64 bytes), sized once.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace mimi {

class AlignedBuffer {
public:
    AlignedBuffer() = default;
    explicit AlignedBuffer(std::size_t floats)
        : floats_(floats), data_(static_cast<float*>(::operator new(bytes_for(floats), alignment))) {
        std::memset(data_.get(), 0, bytes_for(floats));
    }

    float* data() { return data_.get(); }
    const float* data() const { return data_.get(); }
    std::size_t size() const { return floats_; }
    std::size_t size_bytes() const { return floats_ * sizeof(float); }

private:
    static constexpr std::align_val_t alignment{64};

    struct Free {
        void operator()(float* pointer) const { ::operator delete(pointer, alignment); }
    };

    static std::size_t bytes_for(std::size_t floats) {
        if (floats > (static_cast<std::size_t>(-1) - 64) / sizeof(float)) throw std::bad_alloc();
        return floats * sizeof(float) + (floats == 0 ? 64 : 0);
    }

    std::size_t floats_ = 0;
    std::unique_ptr<float, Free> data_;
};

}  // namespace mimi

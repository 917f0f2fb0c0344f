// Memory of one step: taken in order, given back all at once. It grows while a shape is new and never again afterwards, so a
// step that has run before allocates nothing.
#pragma once

#include <cstddef>
#include <vector>

#include "base/aligned_buffer.h"

namespace mimi {

class ScratchArena {
public:
    // `count` floats, uninitialised, aligned to 64 bytes; valid until the mark before it is rewound.
    float* take(std::size_t count) {
        const std::size_t rounded = (count + 15) / 16 * 16;
        while (current_ < chunks_.size() && used_ + rounded > chunks_[current_].size()) {
            ++current_;
            used_ = 0;
        }
        if (current_ == chunks_.size()) {
            const std::size_t doubled = chunks_.empty() ? 0 : 2 * chunks_.back().size();
            chunks_.emplace_back(rounded > doubled ? rounded : doubled);
        }
        float* result = chunks_[current_].data() + used_;
        used_ += rounded;
        return result;
    }

    // Room for `count` objects of a type no more aligned than a pointer.
    template <class Type>
    Type* take_array(std::size_t count) {
        return reinterpret_cast<Type*>(take((count * sizeof(Type) + sizeof(float) - 1) / sizeof(float)));
    }

    // Gives back, at its end, everything taken during its life.
    class Mark {
    public:
        explicit Mark(ScratchArena& arena) : arena_(arena), current_(arena.current_), used_(arena.used_) {}
        ~Mark() {
            arena_.current_ = current_;
            arena_.used_ = used_;
        }
        Mark(const Mark&) = delete;
        Mark& operator=(const Mark&) = delete;

    private:
        ScratchArena& arena_;
        std::size_t current_;
        std::size_t used_;
    };

private:
    std::vector<AlignedBuffer> chunks_;
    std::size_t current_ = 0;
    std::size_t used_ = 0;
};

}  // namespace mimi

// What steps overwrite in a stream's ring before they are committed, put back unless they are.
#pragma once

#include <cstddef>
#include <utility>

#include "base/aligned_buffer.h"
#include "state/stream_state.h"

namespace mimi {

class RingUndo {
public:
    // Before `steps` positions are written. std::bad_alloc where there is no room for what they overwrite.
    RingUndo(StreamState& state, std::size_t steps) : state_(&state), steps_(steps), memory_(state.overwritten_floats(steps)) {
        state_->copy_overwritten(steps_, memory_.data());
    }
    RingUndo(RingUndo&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), steps_(other.steps_), memory_(std::move(other.memory_)) {}
    RingUndo& operator=(RingUndo&&) = delete;
    ~RingUndo() {
        if (state_ != nullptr) state_->put_back_overwritten(steps_, memory_.data());
    }
    // The steps are about to be committed.
    void forget() { state_ = nullptr; }

private:
    StreamState* state_;  // nullptr: nothing is put back
    std::size_t steps_;
    AlignedBuffer memory_;
};

}  // namespace mimi

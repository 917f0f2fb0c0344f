// What steps overwrite in a stream's ring before they are committed, put back unless they are.
#pragma once

#include <cstddef>
#include <utility>

#include "state/stream_state.h"

namespace mimi {

class RingUndo {
public:
    // Before `steps` positions are written. `memory` has room for state.overwritten_floats(steps), and lives as long as this.
    RingUndo(StreamState& state, std::size_t steps, float* memory) : state_(&state), steps_(steps), memory_(memory) {
        state_->copy_overwritten(steps_, memory_);
    }
    RingUndo(RingUndo&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), steps_(other.steps_), memory_(other.memory_) {}
    RingUndo& operator=(RingUndo&&) = delete;
    ~RingUndo() {
        if (state_ != nullptr) state_->put_back_overwritten(steps_, memory_);
    }
    // The steps are about to be committed.
    void forget() { state_ = nullptr; }

private:
    StreamState* state_;  // nullptr: nothing is put back
    std::size_t steps_;
    float* memory_;
};

}  // namespace mimi

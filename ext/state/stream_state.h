// Everything one stream remembers in one direction: conv histories, the ring of keys and values, and how far it has come.
// A step reads the present and writes the future beside it; commit() makes the future present. Whatever fails before commit()
// has changed nothing that can be seen.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/aligned_buffer.h"
#include "state/ring_memory.h"
#include "state/state_layout.h"

namespace mimi {

// Streams longer than this are refused: the rotary position is exact in f32 up to 2^24 steps, 7.7 days.
constexpr std::uint64_t max_position_steps = std::uint64_t{1} << 24;

class StreamState {
public:
    explicit StreamState(std::shared_ptr<const StateLayout> layout);

    // Frames committed since the start or the last reset; 0 tells a layer that this is the first step of a stream.
    std::uint64_t position_frames() const { return position_frames_.load(std::memory_order_relaxed); }
    std::uint64_t position_steps() const { return position_frames() * layout_->ring().steps_per_frame; }

    const float* history(std::size_t index) const { return present() + layout_->history(index).offset_floats; }
    float* next_history(std::size_t index) { return future() + layout_->history(index).offset_floats; }

    // Row of slot 0 of a head; the slot of position p is p modulo slots.
    float* keys(std::size_t layer, std::size_t head) { return ring(layer * 2 * layout_->ring().heads + head); }
    float* values(std::size_t layer, std::size_t head) { return ring((layer * 2 + 1) * layout_->ring().heads + head); }

    // Asks for the slots of this position in every ring of a layer, soon to be written and then far from any cache.
    void prefetch_rings(std::size_t layer, std::uint64_t position_steps) const;

    // Whether all histories a step has written for the future are finite numbers; keys and values are looked at when written.
    bool future_histories_are_finite() const;
    void commit();
    void reset();

    // A step of more than steps_per_frame positions overwrites keys and values in reach. overwritten_floats() of them, 0 where
    // the ring has not come round, are copied by copy_overwritten() before it, and put back where it fails.
    std::size_t overwritten_floats(std::size_t steps) const;
    void copy_overwritten(std::size_t steps, float* out);
    void put_back_overwritten(std::size_t steps, const float* in);

    // Bytes of memory this stream may come to hold; a large ring has only what has been written of it.
    std::size_t size_bytes() const { return layout_->state_bytes(); }

    // The present as bytes: position, histories, and the keys and values still in reach, in order of position.
    std::string save() const;

    // Takes over what save() wrote for the same layout. Error{snapshot} naming the field where the size, the position or a
    // value cannot be; the state is then as before.
    void load(const std::string& bytes);

private:
    // Calls take(row) for every row of every ring that the next `steps` positions overwrite.
    template <class Take>
    void each_overwritten_row(std::size_t steps, const Take& take);
    std::size_t overwritten_slots(std::size_t steps) const;
    float* ring(std::size_t index) { return ring_.data() + index * layout_->ring().ring_floats(); }
    const float* present() const { return histories_.data() + (flipped_ ? layout_->history_floats() : 0); }
    float* future() { return histories_.data() + (flipped_ ? 0 : layout_->history_floats()); }
    const float* future() const { return histories_.data() + (flipped_ ? 0 : layout_->history_floats()); }
    std::size_t saved_bytes(std::uint64_t position_frames) const;
    std::uint64_t steps_in_reach(std::uint64_t position_frames) const;

    std::shared_ptr<const StateLayout> layout_;
    AlignedBuffer histories_;  // two halves: present and future
    RingMemory ring_;
    std::atomic<std::uint64_t> position_frames_{0};  // may be asked for while another thread is in a step
    bool flipped_ = false;
};

}  // namespace mimi

// Where each layer keeps its memory within a stream's state. Built once while the layers are loaded, then shared and const.
#pragma once

#include <cstddef>
#include <vector>

namespace mimi {

// The last `steps` input rows of a causal conv.
struct HistorySlot {
    std::size_t offset_floats;
    std::size_t floats;
};

// Keys and values of one transformer: every layer has keys and values, both have a ring for each head, and that has `slots`
// rows of `head_dim` floats. A step writes `steps_per_frame` rows and may see `context_steps` keys; with slots = context +
// steps_per_frame what a failed step wrote is never seen.
struct RingLayout {
    std::size_t layers = 0;
    std::size_t heads = 0;
    std::size_t head_dim = 0;
    std::size_t context_steps = 0;
    std::size_t steps_per_frame = 0;
    std::size_t slots() const { return context_steps + steps_per_frame; }
    std::size_t rings() const { return layers * 2 * heads; }
    std::size_t ring_floats() const { return slots() * head_dim; }
    std::size_t floats() const { return rings() * ring_floats(); }
};

class StateLayout {
public:
    // Reserves room for `rows` rows of `channels`; the returned index names it in StreamState.
    std::size_t add_history(std::size_t rows, std::size_t channels) {
        histories_.push_back({history_floats_, rows * channels});
        history_floats_ += rows * channels;
        return histories_.size() - 1;
    }
    void set_ring(const RingLayout& ring) { ring_ = ring; }

    const HistorySlot& history(std::size_t index) const { return histories_[index]; }
    std::size_t history_floats() const { return history_floats_; }
    const RingLayout& ring() const { return ring_; }
    // Memory of one stream: the histories twice (present and future), and the ring.
    std::size_t state_bytes() const { return (2 * history_floats_ + ring_.floats()) * sizeof(float); }

private:
    std::vector<HistorySlot> histories_;
    std::size_t history_floats_ = 0;
    RingLayout ring_;
};

}  // namespace mimi

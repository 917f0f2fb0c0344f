#include "state/stream_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

namespace mimi {

namespace {

bool all_finite(const float* values, std::size_t count) {
    return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

}  // namespace

StreamState::StreamState(std::shared_ptr<const StateLayout> layout)
    : layout_(std::move(layout)), histories_(2 * layout_->history_floats()), ring_(layout_->ring().floats()) {}

bool StreamState::future_is_finite() const {
    if (!all_finite(future(), layout_->history_floats())) return false;
    const RingLayout& ring = layout_->ring();
    for (std::size_t index = 0; index < ring.rings(); ++index) {
        for (std::size_t t = 0; t < ring.steps_per_frame; ++t) {
            const std::size_t slot = static_cast<std::size_t>((position_steps() + t) % ring.slots());
            if (!all_finite(ring_.data() + index * ring.ring_floats() + slot * ring.head_dim, ring.head_dim)) return false;
        }
    }
    return true;
}

void StreamState::commit() {
    flipped_ = !flipped_;
    position_frames_.store(position_frames() + 1, std::memory_order_relaxed);
}

void StreamState::reset() {
    std::fill_n(histories_.data(), histories_.size(), 0.0f);
    std::fill_n(ring_.data(), ring_.size(), 0.0f);
    position_frames_ = 0;
    flipped_ = false;
}

std::uint64_t StreamState::steps_in_reach(std::uint64_t position_frames) const {
    const RingLayout& ring = layout_->ring();
    const std::uint64_t steps = position_frames * ring.steps_per_frame;
    return std::min<std::uint64_t>(steps, ring.context_steps - 1);
}

std::size_t StreamState::saved_bytes(std::uint64_t position_frames) const {
    const RingLayout& ring = layout_->ring();
    const std::size_t ring_floats = ring.rings() * static_cast<std::size_t>(steps_in_reach(position_frames)) * ring.head_dim;
    return sizeof position_frames + (layout_->history_floats() + ring_floats) * sizeof(float);
}

std::string StreamState::save() const {
    const RingLayout& ring = layout_->ring();
    std::string bytes;
    const std::uint64_t position = position_frames();
    bytes.reserve(saved_bytes(position));
    const auto append = [&](const void* data, std::size_t size) { bytes.append(static_cast<const char*>(data), size); };
    append(&position, sizeof position);
    append(present(), layout_->history_floats() * sizeof(float));
    const std::uint64_t end = position_steps();
    for (std::size_t index = 0; index < ring.rings(); ++index)
        for (std::uint64_t step = end - steps_in_reach(position); step < end; ++step)
            append(ring_.data() + index * ring.ring_floats() + step % ring.slots() * ring.head_dim,
                   ring.head_dim * sizeof(float));
    return bytes;
}

void StreamState::load(const std::string& bytes) {
    const RingLayout& ring = layout_->ring();
    std::uint64_t position = 0;
    if (bytes.size() < sizeof position)
        throw Error(ErrorCode::snapshot, "snapshot state size", std::to_string(bytes.size()) + " bytes",
                    "at least " + std::to_string(sizeof position));
    std::memcpy(&position, bytes.data(), sizeof position);
    if (position > max_position_steps / ring.steps_per_frame)
        throw Error(ErrorCode::snapshot, "snapshot position", std::to_string(position) + " frames",
                    "at most " + std::to_string(max_position_steps / ring.steps_per_frame));
    if (bytes.size() != saved_bytes(position))
        throw Error(ErrorCode::snapshot, "snapshot state size", std::to_string(bytes.size()) + " bytes",
                    std::to_string(saved_bytes(position)) + " at this position");
    std::vector<float> values((bytes.size() - sizeof position) / sizeof(float));
    std::memcpy(values.data(), bytes.data() + sizeof position, values.size() * sizeof(float));
    if (!all_finite(values.data(), values.size()))
        throw Error(ErrorCode::snapshot, "snapshot state", "a value that is not finite", "finite values");

    reset();
    position_frames_ = position;
    const float* source = values.data();
    std::copy_n(source, layout_->history_floats(), histories_.data());
    source += layout_->history_floats();
    const std::uint64_t end = position_steps();
    for (std::size_t index = 0; index < ring.rings(); ++index) {
        for (std::uint64_t step = end - steps_in_reach(position); step < end; ++step) {
            std::copy_n(source, ring.head_dim, ring_.data() + index * ring.ring_floats() + step % ring.slots() * ring.head_dim);
            source += ring.head_dim;
        }
    }
}

}  // namespace mimi

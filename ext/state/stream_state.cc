#include "state/stream_state.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/finite.h"

namespace mimi {

StreamState::StreamState(std::shared_ptr<const StateLayout> layout)
    : layout_(std::move(layout)), histories_(2 * layout_->history_floats()), ring_(layout_->ring().floats()) {}

bool StreamState::future_histories_are_finite() const {
    return all_finite(future(), layout_->history_floats());
}

void StreamState::prefetch_rings(std::size_t layer, std::uint64_t position_steps) const {
    const RingLayout& ring = layout_->ring();
    const std::size_t slot = static_cast<std::size_t>(position_steps % ring.slots());
    constexpr std::size_t line_floats = 16;
    for (std::size_t index = 2 * layer * ring.heads; index < 2 * (layer + 1) * ring.heads; ++index)
        for (std::size_t d = 0; d < ring.head_dim; d += line_floats)
            __builtin_prefetch(ring_.data() + index * ring.ring_floats() + slot * ring.head_dim + d, 1, 2);
}

void StreamState::commit() {
    flipped_ = !flipped_;
    position_frames_.store(position_frames() + 1, std::memory_order_relaxed);
}

void StreamState::reset() {
    std::fill_n(histories_.data(), histories_.size(), 0.0f);
    ring_.clear();
    position_frames_ = 0;
    flipped_ = false;
}

std::size_t StreamState::overwritten_slots(std::size_t steps) const {
    const std::size_t slots = layout_->ring().slots();
    return position_steps() + steps <= slots ? 0 : std::min(steps, slots);
}

std::size_t StreamState::overwritten_floats(std::size_t steps) const {
    return overwritten_slots(steps) * layout_->ring().rings() * layout_->ring().head_dim;
}

template <class Take>
void StreamState::each_overwritten_row(std::size_t steps, const Take& take) {
    const RingLayout& layout = layout_->ring();
    const std::size_t count = overwritten_slots(steps);
    for (std::size_t index = 0; index < layout.rings(); ++index)
        for (std::size_t i = 0; i < count; ++i)
            take(ring(index) + static_cast<std::size_t>((position_steps() + i) % layout.slots()) * layout.head_dim);
}

void StreamState::copy_overwritten(std::size_t steps, float* out) {
    const std::size_t width = layout_->ring().head_dim;
    each_overwritten_row(steps, [&](const float* row) { out = std::copy_n(row, width, out); });
}

void StreamState::put_back_overwritten(std::size_t steps, const float* in) {
    const std::size_t width = layout_->ring().head_dim;
    each_overwritten_row(steps, [&](float* row) {
        std::copy_n(in, width, row);
        in += width;
    });
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
    if (!values.empty()) std::memcpy(values.data(), bytes.data() + sizeof position, values.size() * sizeof(float));
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

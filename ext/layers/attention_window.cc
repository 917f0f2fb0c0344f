#include "layers/attention_window.h"

#include <algorithm>

namespace mimi {

namespace {

std::int32_t slot_of(const WindowGeometry& geometry, std::int64_t position) {
    return static_cast<std::int32_t>(position % static_cast<std::int64_t>(geometry.slots()));
}

// moshi.cpp looks its mask up in a larger pattern, from an offset it computes wrongly once the ring has wrapped.
bool ggml_mask_hides(const WindowGeometry& geometry, std::int64_t first_position, std::int64_t row, std::int64_t slot) {
    const auto capacity = static_cast<std::int64_t>(geometry.context_steps);
    const auto steps = static_cast<std::int64_t>(geometry.steps_per_frame);
    const std::int64_t start = 2 * capacity - steps;
    std::int64_t offset = start - first_position;
    if (first_position > capacity) {
        const std::int64_t correction = geometry.view == AttentionView::ring_slots_causal ? steps : 0;
        offset = capacity - correction - first_position % capacity;
    }
    const std::int64_t column = offset + slot;
    if (column >= start + 1 + row) return true;
    const std::int64_t hidden_at_the_end = steps - row - 1;
    return column < capacity && column >= capacity - hidden_at_the_end;
}

}  // namespace

std::size_t fill_attention_window(const WindowGeometry& geometry, std::uint64_t first_position, std::size_t row,
                                  std::int32_t* slots) {
    const auto first = static_cast<std::int64_t>(first_position);
    const auto capacity = static_cast<std::int64_t>(geometry.context_steps);
    if (geometry.view == AttentionView::causal_window) {
        const std::int64_t position = first + static_cast<std::int64_t>(row);
        const std::int64_t count = std::min(position + 1, capacity);
        for (std::int64_t i = 0; i < count; ++i) slots[i] = slot_of(geometry, position + 1 - count + i);
        return static_cast<std::size_t>(count);
    }
    const std::int64_t last_written = first + static_cast<std::int64_t>(geometry.steps_per_frame) - 1;
    for (std::int64_t slot = 0; slot < capacity; ++slot) {
        const std::int64_t position = last_written - (last_written - slot + capacity) % capacity;
        const bool hidden = position < 0 || ggml_mask_hides(geometry, first, static_cast<std::int64_t>(row), slot);
        slots[slot] = hidden ? -1 : slot_of(geometry, position);
    }
    return geometry.context_steps;
}

}  // namespace mimi

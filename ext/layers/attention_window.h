// Which slots of a stream's ring one query sees, in the order of the sums over them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/numerics_policy.h"

namespace mimi {

struct WindowGeometry {
    AttentionView view;
    std::size_t context_steps;
    std::size_t steps_per_frame;
    std::size_t slots() const { return context_steps + steps_per_frame; }  // of the ring; position p lies in slot p mod slots
};

// Fills `slots` (room for context_steps) for row `row` of the step whose first position is `first_position`, and returns how
// many there are. A negative slot counts in the order of the sums but is not seen.
std::size_t fill_attention_window(const WindowGeometry& geometry, std::uint64_t first_position, std::size_t row,
                                  std::int32_t* slots);

}  // namespace mimi

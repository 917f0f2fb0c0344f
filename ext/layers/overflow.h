// How a step refuses numbers that left f32's range.
#pragma once

#include <cstddef>

namespace mimi {

// Throws Error{numeric_overflow} naming `what` of this lane of the batch.
[[noreturn]] void refuse_overflow(const char* what, std::size_t lane);

}  // namespace mimi

// What codes must be before a look-up may use them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

// Error{code_range} naming the level of the first of `levels` codes that is outside 0 .. entries - 1, and whose they are:
// `owner` ("lane", "frame") number `index`.
void require_codes_in_range(const std::int32_t* codes, std::size_t levels, std::size_t entries, const char* owner,
                            std::size_t index);

}  // namespace mimi

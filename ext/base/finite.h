// Whether numbers are finite, many at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mimi {

// Neither NaN nor infinity among them. Without a branch, so that a compiler can look at several at once.
inline bool all_finite(const float* values, std::size_t count) {
    constexpr std::uint32_t exponent = 0x7f800000;
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < count; ++i) found |= (std::bit_cast<std::uint32_t>(values[i]) & exponent) == exponent ? 1u : 0u;
    return found == 0;
}

}  // namespace mimi

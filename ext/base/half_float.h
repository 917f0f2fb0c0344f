// IEEE binary16 and bfloat16 in plain integer arithmetic: to nearest, ties to even, subnormals kept.
// Header-only and free of the standard library, so that units built for one instruction set may use it.
#pragma once

#include <cstdint>

#include "base/float_bits.h"

namespace mimi {

// Exact.
static inline float half_to_float(std::uint16_t half) {
    // Shifting exponent and mantissa into place leaves a finite value 2^112 times too small, subnormals included; the product
    // is exact.
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    if (magnitude >= 0x0f800000u) return float_of(sign | 0x7f800000u | (magnitude & 0x007fffffu));
    return float_of(sign | bits_of(float_of(magnitude) * 0x1p112f));
}

// |x| >= 65520 becomes infinity; NaN keeps the top of its payload and becomes quiet.
static inline std::uint16_t float_to_half(float value) {
    const std::uint32_t bits = bits_of(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        // Adding 0.5 leaves the subnormal's bits, rounded, at the end of the mantissa.
        const float shifted = float_of(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign | (bits_of(shifted) - 0x3f000000u));
    }
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

// Exact.
static inline float bfloat16_to_float(std::uint16_t bits) {
    return float_of(static_cast<std::uint32_t>(bits) << 16);
}

// The f32 nearest to `value` that bfloat16 can hold.
static inline float round_to_bfloat16(float value) {
    const std::uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return float_of((bits | 0x00400000u) & 0xffff0000u);
    return float_of((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}

}  // namespace mimi

// A float's bit pattern and back, without the standard library (which must not be instantiated in units built for one ISA).
#pragma once

#include <cstdint>

namespace mimi {

static inline std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of(std::uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace mimi

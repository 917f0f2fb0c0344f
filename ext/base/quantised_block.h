// A block of ggml's q8_0 as files store it. Value i is half_to_float(scale) * quants[i], which f32 holds exactly.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

struct QuantisedBlock {
    static constexpr std::size_t elements = 32;

    std::uint16_t scale;  // f16, any sign
    std::int8_t quants[elements];
};

static_assert(sizeof(QuantisedBlock) == 34);

}  // namespace mimi

// Blocks of ggml's quantised types as files store them, and the f32 values they stand for: those of ggml's own dequantisation,
// bit for bit. Free of the standard library, so that units built for one instruction set may use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/half_float.h"

namespace mimi {

// q8_0. Value i is half_to_float(scale) * quants[i], which f32 holds exactly.
struct QuantisedBlock {
    static constexpr std::size_t elements = 32;

    std::uint16_t scale;  // f16, any sign
    std::int8_t quants[elements];
};

static_assert(sizeof(QuantisedBlock) == 34);

// q4_0. Value i is scale * (nibble i - 8), exact in f32; the low nibbles are the first half of the values.
struct NibbleBlock {
    static constexpr std::size_t elements = 32;

    std::uint16_t scale;  // f16, any sign
    std::uint8_t nibbles[elements / 2];
};

static_assert(sizeof(NibbleBlock) == 18);

// q4_k. Eight groups of 32 values; value i of a group is (scale * group scale) * nibble - minimum * group minimum, both
// products exact in f32, the difference rounded once. Two groups share 32 bytes: the first has their low nibbles.
struct NibbleSuperBlock {
    static constexpr std::size_t elements = 256;
    static constexpr std::size_t groups = 8;
    static constexpr std::size_t group_elements = elements / groups;

    std::uint16_t scale;      // f16, of the group scales
    std::uint16_t minimum;    // f16, of the group minima
    std::uint8_t packed[12];  // group scales and minima, 6 bits each
    std::uint8_t nibbles[elements / 2];

    std::uint32_t group_scale(std::size_t group) const {
        if (group < 4) return packed[group] & 63u;
        return (packed[group + 4] & 15u) | (static_cast<std::uint32_t>(packed[group - 4]) >> 6) << 4;
    }
    std::uint32_t group_minimum(std::size_t group) const {
        if (group < 4) return packed[group + 4] & 63u;
        return (static_cast<std::uint32_t>(packed[group + 4]) >> 4) | (static_cast<std::uint32_t>(packed[group]) >> 6) << 4;
    }
};

static_assert(sizeof(NibbleSuperBlock) == 144);

// Each writes the block's `elements` values to `out`.
static inline void block_values(const QuantisedBlock& block, float* out) {
    const float scale = half_to_float(block.scale);
    for (std::size_t i = 0; i < QuantisedBlock::elements; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
}

static inline void block_values(const NibbleBlock& block, float* out) {
    constexpr std::size_t half = NibbleBlock::elements / 2;
    const float scale = half_to_float(block.scale);
    for (std::size_t i = 0; i < half; ++i) {
        out[i] = scale * static_cast<float>(static_cast<int>(block.nibbles[i] & 15u) - 8);
        out[half + i] = scale * static_cast<float>(static_cast<int>(block.nibbles[i] >> 4) - 8);
    }
}

static inline void block_values(const NibbleSuperBlock& block, float* out) {
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (std::size_t group = 0; group < NibbleSuperBlock::groups; ++group) {
        const float group_scale = scale * static_cast<float>(block.group_scale(group));
        const float group_minimum = minimum * static_cast<float>(block.group_minimum(group));
        const std::uint8_t* nibbles = block.nibbles + group / 2 * NibbleSuperBlock::group_elements;
        const unsigned shift = group % 2 * 4;
        for (std::size_t i = 0; i < NibbleSuperBlock::group_elements; ++i) {
            *out++ = group_scale * static_cast<float>((nibbles[i] >> shift) & 15u) - group_minimum;
        }
    }
}

}  // namespace mimi

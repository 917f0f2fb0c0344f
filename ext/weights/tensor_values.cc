#include "weights/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/half_float.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

// Values are checked and widened while they are still in the cache.
constexpr std::size_t part_elements = 64 * 1024;

constexpr std::uint32_t f32_exponent = 0x7f800000;
constexpr std::uint16_t f16_exponent = 0x7c00;

bool is_finite(float value) {
    return (std::bit_cast<std::uint32_t>(value) & f32_exponent) != f32_exponent;
}
bool is_finite(std::uint16_t half) {
    return (half & f16_exponent) != f16_exponent;
}

// So that bf16, which has f32's exponent, is told from f16.
struct Bfloat16 {
    std::uint16_t bits;
};

bool is_finite(Bfloat16 value) {
    return is_finite(bfloat16_to_float(value.bits));
}

std::string value_text(float value) {
    return value != value ? "NaN" : std::signbit(value) ? "-infinity" : "infinity";
}
std::string value_text(std::uint16_t half) {
    if ((half & 0x3ff) != 0) return "NaN";
    return (half & 0x8000) != 0 ? "-infinity" : "infinity";
}

std::string value_text(Bfloat16 value) {
    return value_text(bfloat16_to_float(value.bits));
}

template <typename Stored>
void require_finite(const GgufTensor& tensor, std::uint64_t first_index, const Stored* values, std::size_t count) {
    std::size_t finite = 0;
    for (std::size_t i = 0; i < count; ++i) finite += is_finite(values[i]) ? 1 : 0;
    if (finite == count) return;
    const Stored* bad = std::find_if(values, values + count, [](Stored value) { return !is_finite(value); });
    throw Error(ErrorCode::model_contract, "tensor " + quoted(tensor.name),
                value_text(*bad) + " at index " + std::to_string(first_index + static_cast<std::uint64_t>(bad - values)),
                "finite values");
}

// The first of a block's scales that is not finite, else the last.
std::uint16_t worst_scale(const QuantisedBlock& block) {
    return block.scale;
}
std::uint16_t worst_scale(const NibbleBlock& block) {
    return block.scale;
}
std::uint16_t worst_scale(const NibbleSuperBlock& block) {
    return is_finite(block.scale) ? block.minimum : block.scale;
}

template <typename Block>
void require_finite_scales(const GgufTensor& tensor, std::uint64_t first_block, const Block* blocks, std::size_t count) {
    const Block* bad = std::find_if(blocks, blocks + count, [](const Block& block) { return !is_finite(worst_scale(block)); });
    if (bad == blocks + count) return;
    throw Error(ErrorCode::model_contract, "tensor " + quoted(tensor.name),
                "a scale of " + value_text(worst_scale(*bad)) + " in block " +
                    std::to_string(first_block + static_cast<std::uint64_t>(bad - blocks)),
                "finite scales");
}

template <typename Block>
void require_finite_run(const GgufTensor& tensor, std::uint64_t start_bytes, const void* stored, std::size_t size_bytes) {
    require_finite_scales(tensor, start_bytes / sizeof(Block), static_cast<const Block*>(stored), size_bytes / sizeof(Block));
}

// Calls `take(first_index, values, count)` for each checked part of the payload.
template <typename Stored, typename Take>
void for_each_part(const GgufReader& file, const GgufTensor& tensor, Take take) {
    std::vector<Stored> part(static_cast<std::size_t>(std::min<std::uint64_t>(part_elements, tensor.elements)));
    for (std::uint64_t first = 0; first < tensor.elements; first += part.size()) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), tensor.elements - first));
        file.read_part(tensor, first * sizeof(Stored), count * sizeof(Stored), part.data());
        require_finite(tensor, first, part.data(), count);
        take(static_cast<std::size_t>(first), part.data(), count);
    }
}

[[noreturn]] void refuse_type(const GgufTensor& tensor, const char* expected) {
    throw Error(ErrorCode::model_contract, "tensor " + quoted(tensor.name), std::string(tensor_type_name(tensor.type)),
                expected);
}

// Calls `take(first_block, blocks, count)` for each checked part of a q8_0 payload.
template <typename Take>
void for_each_blocks(const GgufReader& file, const GgufTensor& tensor, Take take) {
    const std::uint64_t total = tensor.elements / QuantisedBlock::elements;
    std::vector<QuantisedBlock> part(
        static_cast<std::size_t>(std::min<std::uint64_t>(part_elements / QuantisedBlock::elements, total)));
    for (std::uint64_t first = 0; first < total; first += part.size()) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), total - first));
        file.read_part(tensor, first * sizeof(QuantisedBlock), count * sizeof(QuantisedBlock), part.data());
        require_finite_scales(tensor, first, part.data(), count);
        take(static_cast<std::size_t>(first), part.data(), count);
    }
}

}  // namespace

std::vector<float> read_values(const GgufReader& file, const GgufTensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.elements));
    if (tensor.type == TensorType::f32) {
        for_each_part<float>(file, tensor, [&values](std::size_t first, const float* part, std::size_t count) {
            std::copy_n(part, count, values.data() + first);
        });
    } else if (tensor.type == TensorType::f16) {
        for_each_part<std::uint16_t>(file, tensor, [&values](std::size_t first, const std::uint16_t* part, std::size_t count) {
            std::transform(part, part + count, values.data() + first, half_to_float);
        });
    } else if (tensor.type == TensorType::bf16) {
        for_each_part<Bfloat16>(file, tensor, [&values](std::size_t first, const Bfloat16* part, std::size_t count) {
            std::transform(part, part + count, values.data() + first,
                           [](Bfloat16 value) { return bfloat16_to_float(value.bits); });
        });
    } else {
        refuse_type(tensor, "f32, f16 or bf16");
    }
    return values;
}

std::vector<std::uint16_t> read_halves(const GgufReader& file, const GgufTensor& tensor) {
    if (tensor.type != TensorType::f16) refuse_type(tensor, "f16");
    std::vector<std::uint16_t> values(static_cast<std::size_t>(tensor.elements));
    for_each_part<std::uint16_t>(file, tensor, [&values](std::size_t first, const std::uint16_t* part, std::size_t count) {
        std::copy_n(part, count, values.data() + first);
    });
    return values;
}

std::vector<QuantisedBlock> read_blocks(const GgufReader& file, const GgufTensor& tensor) {
    if (tensor.type != TensorType::q8_0) refuse_type(tensor, "q8_0");
    std::vector<QuantisedBlock> blocks(static_cast<std::size_t>(tensor.elements / QuantisedBlock::elements));
    for_each_blocks(file, tensor, [&blocks](std::size_t first, const QuantisedBlock* part, std::size_t count) {
        std::copy_n(part, count, blocks.data() + first);
    });
    return blocks;
}

void check_run(const GgufTensor& tensor, std::uint64_t start_bytes, const void* stored, std::size_t size_bytes) {
    const auto plain = [&]<typename Value>(const Value* values) {
        require_finite(tensor, start_bytes / sizeof(Value), values, size_bytes / sizeof(Value));
    };
    switch (tensor.type) {
        case TensorType::f32: return plain(static_cast<const float*>(stored));
        case TensorType::f16: return plain(static_cast<const std::uint16_t*>(stored));
        case TensorType::bf16: return plain(static_cast<const Bfloat16*>(stored));
        case TensorType::q8_0: return require_finite_run<QuantisedBlock>(tensor, start_bytes, stored, size_bytes);
        case TensorType::q4_0: return require_finite_run<NibbleBlock>(tensor, start_bytes, stored, size_bytes);
        case TensorType::q4_k: return require_finite_run<NibbleSuperBlock>(tensor, start_bytes, stored, size_bytes);
        default: refuse_type(tensor, "f32, f16, bf16, q8_0, q4_0 or q4_k");
    }
}

void check_values(const GgufReader& file, const GgufTensor& tensor) {
    const auto ignore = [](std::size_t, const auto*, std::size_t) {};
    if (tensor.type == TensorType::f32) {
        for_each_part<float>(file, tensor, ignore);
    } else if (tensor.type == TensorType::f16) {
        for_each_part<std::uint16_t>(file, tensor, ignore);
    } else if (tensor.type == TensorType::bf16) {
        for_each_part<Bfloat16>(file, tensor, ignore);
    } else if (tensor.type == TensorType::q8_0) {
        for_each_blocks(file, tensor, ignore);
    } else {
        refuse_type(tensor, "f32, f16, bf16 or q8_0");
    }
}

void require_finite_values(const GgufTensor& tensor, std::uint64_t first_index, const float* values, std::size_t count) {
    require_finite(tensor, first_index, values, count);
}

}  // namespace mimi

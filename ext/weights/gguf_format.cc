#include "weights/gguf_format.h"

#include <array>

namespace mimi {

namespace {

constexpr std::array tensor_types = {
    TensorTypeTraits{TensorType::f32, "f32", 1, 4},       TensorTypeTraits{TensorType::f16, "f16", 1, 2},
    TensorTypeTraits{TensorType::q4_0, "q4_0", 32, 18},   TensorTypeTraits{TensorType::q4_1, "q4_1", 32, 20},
    TensorTypeTraits{TensorType::q5_0, "q5_0", 32, 22},   TensorTypeTraits{TensorType::q5_1, "q5_1", 32, 24},
    TensorTypeTraits{TensorType::q8_0, "q8_0", 32, 34},   TensorTypeTraits{TensorType::q2_k, "q2_k", 256, 84},
    TensorTypeTraits{TensorType::q3_k, "q3_k", 256, 110}, TensorTypeTraits{TensorType::q4_k, "q4_k", 256, 144},
    TensorTypeTraits{TensorType::q5_k, "q5_k", 256, 176}, TensorTypeTraits{TensorType::q6_k, "q6_k", 256, 210},
    TensorTypeTraits{TensorType::i8, "i8", 1, 1},         TensorTypeTraits{TensorType::i16, "i16", 1, 2},
    TensorTypeTraits{TensorType::i32, "i32", 1, 4},       TensorTypeTraits{TensorType::i64, "i64", 1, 8},
    TensorTypeTraits{TensorType::f64, "f64", 1, 8},       TensorTypeTraits{TensorType::bf16, "bf16", 1, 2},
};

struct ValueTypeTraits {
    std::string_view name;
    std::uint64_t bytes;
};

constexpr std::array<ValueTypeTraits, value_type_count> value_types = {{{"u8", 1},
                                                                        {"i8", 1},
                                                                        {"u16", 2},
                                                                        {"i16", 2},
                                                                        {"u32", 4},
                                                                        {"i32", 4},
                                                                        {"f32", 4},
                                                                        {"bool", 1},
                                                                        {"string", 0},
                                                                        {"array", 0},
                                                                        {"u64", 8},
                                                                        {"i64", 8},
                                                                        {"f64", 8}}};

}  // namespace

const TensorTypeTraits* find_tensor_type(std::uint32_t id) {
    for (const TensorTypeTraits& traits : tensor_types) {
        if (static_cast<std::uint32_t>(traits.type) == id) return &traits;
    }
    return nullptr;
}

std::string_view tensor_type_name(TensorType type) {
    const TensorTypeTraits* traits = find_tensor_type(static_cast<std::uint32_t>(type));
    return traits == nullptr ? "unknown" : traits->name;
}

std::string_view value_type_name(std::uint32_t id) {
    return id < value_type_count ? value_types[id].name : "unknown";
}

std::uint64_t value_type_bytes(ValueType type) {
    return value_types[static_cast<std::uint32_t>(type)].bytes;
}

}  // namespace mimi

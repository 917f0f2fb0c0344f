// Facts of the GGUF format that need no file: element types and their block sizes, value types, and what a tensor record and a
// metadata value become once they have been read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mimi {

// ggml's ids of the element types the reader can size. Which of them a Mimi model may use is the contract's business.
enum class TensorType : std::uint32_t {
    f32 = 0,
    f16 = 1,
    q4_0 = 2,
    q4_1 = 3,
    q5_0 = 6,
    q5_1 = 7,
    q8_0 = 8,
    q2_k = 10,
    q3_k = 11,
    q4_k = 12,
    q5_k = 13,
    q6_k = 14,
    i8 = 24,
    i16 = 25,
    i32 = 26,
    i64 = 27,
    f64 = 28,
    bf16 = 30,
};

// Elements are stored in blocks along the fastest-varying dimension; plain types have blocks of one element.
struct TensorTypeTraits {
    TensorType type;
    std::string_view name;
    std::uint64_t block_elements;
    std::uint64_t block_bytes;
};

// nullptr where the id is unknown or was removed from the format.
const TensorTypeTraits* find_tensor_type(std::uint32_t id);

std::string_view tensor_type_name(TensorType type);

// Ids of the types of metadata values.
enum class ValueType : std::uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

constexpr std::uint32_t value_type_count = 13;

// "unknown" where the id is none of the format's.
std::string_view value_type_name(std::uint32_t id);

// Bytes one value takes; 0 where its length is written in the file (strings, arrays).
std::uint64_t value_type_bytes(ValueType type);

struct GgufTensor {
    std::string name;
    TensorType type = TensorType::f32;
    std::vector<std::uint64_t> dims;  // ggml order: fastest-varying first; trailing ones may be absent
    std::uint64_t offset_bytes = 0;   // from the start of the file
    std::uint64_t size_bytes = 0;
    std::uint64_t elements = 0;
};

using GgufScalar = std::variant<std::uint64_t, std::int64_t, double, bool, std::string>;

// An array value is kept only as its element type and count; the reader bounds its bytes and steps over them.
struct GgufArray {
    std::uint32_t element_type = 0;
    std::uint64_t count = 0;
    std::uint64_t offset_bytes = 0;  // of the first element, from the start of the file
};

using GgufValue = std::variant<GgufScalar, GgufArray>;

}  // namespace mimi

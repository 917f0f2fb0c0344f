#include "weights/gguf_header.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "weights/foreign_format.h"
#include "weights/header_cursor.h"
#include "weights/quoted_text.h"
#include "weights/tensor_layout.h"

namespace mimi {

namespace {

constexpr std::uint32_t supported_version = 3;
constexpr std::uint64_t count_cap = 16384;
constexpr std::uint64_t array_cap = 16777216;
constexpr std::uint64_t key_cap_bytes = 64 * 1024;
constexpr std::uint64_t string_cap_bytes = 1024 * 1024;
constexpr std::uint64_t tensor_name_cap_bytes = 255;
constexpr std::uint32_t rank_cap = 4;

// The least a record can take, to bound a count by the bytes that are left.
constexpr std::uint64_t least_key_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t least_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;

[[noreturn]] void refuse(std::string subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_format, std::move(subject), std::move(found), std::move(expected));
}

void check_magic(const ByteSource& source) {
    std::string head(static_cast<std::size_t>(std::min<std::uint64_t>(512, source.size_bytes())), '\0');
    source.read_at(0, head.data(), head.size());
    if (head.starts_with("GGUF")) return;
    ForeignFormat foreign = describe_foreign_format(head, source.size_bytes());
    refuse("file", std::move(foreign.found), std::move(foreign.expected));
}

void check_version(HeaderCursor& cursor) {
    const auto version = cursor.number<std::uint32_t>("version");
    if (version == supported_version) return;
    const bool swapped = version != 0 && (version & 0xffff) == 0;
    refuse("version", swapped ? "a big-endian file" : std::to_string(version),
           swapped ? "a little-endian GGUF file" : std::to_string(supported_version));
}

std::uint64_t read_count(HeaderCursor& cursor, std::string_view field) {
    const auto count = cursor.number<std::uint64_t>(field);
    if (count > count_cap) refuse(std::string(field), std::to_string(count), "at most " + std::to_string(count_cap));
    return count;
}

void check_count(const HeaderCursor& cursor, std::string_view field, std::uint64_t count, std::uint64_t least_bytes) {
    const std::uint64_t possible = cursor.bytes_left() / least_bytes;
    if (count <= possible) return;
    refuse(std::string(field), std::to_string(count), "at most the " + std::to_string(possible) + " that fit the file");
}

template <typename Number, typename Kept>
GgufScalar kept_as(HeaderCursor& cursor, std::string_view field) {
    return static_cast<Kept>(cursor.number<Number>(field));
}

GgufScalar read_scalar(HeaderCursor& cursor, ValueType type, const std::string& field) {
    switch (type) {
        case ValueType::u8: return kept_as<std::uint8_t, std::uint64_t>(cursor, field);
        case ValueType::i8: return kept_as<std::int8_t, std::int64_t>(cursor, field);
        case ValueType::u16: return kept_as<std::uint16_t, std::uint64_t>(cursor, field);
        case ValueType::i16: return kept_as<std::int16_t, std::int64_t>(cursor, field);
        case ValueType::u32: return kept_as<std::uint32_t, std::uint64_t>(cursor, field);
        case ValueType::i32: return kept_as<std::int32_t, std::int64_t>(cursor, field);
        case ValueType::f32: return kept_as<float, double>(cursor, field);
        case ValueType::u64: return kept_as<std::uint64_t, std::uint64_t>(cursor, field);
        case ValueType::i64: return kept_as<std::int64_t, std::int64_t>(cursor, field);
        case ValueType::f64: return kept_as<double, double>(cursor, field);
        case ValueType::string: return cursor.text(field, string_cap_bytes);
        case ValueType::boolean: {
            const auto byte = cursor.number<std::uint8_t>(field);
            if (byte > 1) refuse(field, "a bool of " + std::to_string(byte), "0 or 1");
            return byte == 1;
        }
        case ValueType::array: break;
    }
    throw Error(ErrorCode::internal, "value type of " + field, "array", "a scalar");
}

ValueType read_value_type(HeaderCursor& cursor, const std::string& field) {
    const auto id = cursor.number<std::uint32_t>(field);
    if (id >= value_type_count) refuse(field, std::to_string(id), "a value type from 0 to 12");
    return static_cast<ValueType>(id);
}

GgufArray read_array(HeaderCursor& cursor, const std::string& field) {
    const ValueType type = read_value_type(cursor, field + " element type");
    if (type == ValueType::array) refuse(field + " element type", "array", "no arrays of arrays");
    const std::string count_field = field + " count";
    const auto count = cursor.number<std::uint64_t>(count_field);
    if (count > array_cap) refuse(count_field, std::to_string(count), "at most " + std::to_string(array_cap));
    const std::uint64_t element_bytes = value_type_bytes(type);
    const std::uint64_t offset_bytes = cursor.position_bytes();
    check_count(cursor, count_field, count, element_bytes == 0 ? sizeof(std::uint64_t) : element_bytes);
    if (type == ValueType::string) {
        for (std::uint64_t i = 0; i < count; ++i) cursor.text(field, string_cap_bytes);
    } else {
        cursor.skip(count * element_bytes, field);
    }
    return {static_cast<std::uint32_t>(type), count, offset_bytes};
}

void read_key(HeaderCursor& cursor, std::uint64_t position, GgufHeader& header) {
    std::string key = cursor.text("key " + std::to_string(position), key_cap_bytes);
    if (key.empty()) refuse("key " + std::to_string(position), "an empty key", "a name");
    const std::string field = "key " + quoted(key);
    if (header.metadata.contains(key)) refuse(field, "a second value", "every key once");
    const ValueType type = read_value_type(cursor, field + " type");
    GgufValue value = type == ValueType::array ? GgufValue(read_array(cursor, field)) : read_scalar(cursor, type, field);
    if (key == "general.alignment") {
        if (type != ValueType::u32) refuse(field, std::string(value_type_name(static_cast<std::uint32_t>(type))), "u32");
        const std::uint64_t alignment = std::get<std::uint64_t>(std::get<GgufScalar>(value));
        if (!std::has_single_bit(alignment) || alignment < 8 || alignment > 65536) {
            refuse(field, std::to_string(alignment), "a power of two from 8 to 65536");
        }
        header.alignment_bytes = alignment;
    }
    header.metadata.emplace(std::move(key), std::move(value));
}

std::uint64_t read_dim(HeaderCursor& cursor, const std::string& field) {
    const auto dim = cursor.number<std::int64_t>(field);
    if (dim < 1) refuse(field, std::to_string(dim), "at least 1");
    return static_cast<std::uint64_t>(dim);
}

const TensorTypeTraits& read_tensor_type(HeaderCursor& cursor, const std::string& field) {
    const auto id = cursor.number<std::uint32_t>(field);
    const TensorTypeTraits* traits = find_tensor_type(id);
    if (traits == nullptr) refuse(field, "type id " + std::to_string(id), "a type this reader knows");
    return *traits;
}

void read_tensor(HeaderCursor& cursor, std::uint64_t position, GgufHeader& header) {
    GgufTensor tensor;
    const std::string unnamed = "tensor " + std::to_string(position) + " name";
    tensor.name = cursor.text(unnamed, tensor_name_cap_bytes);
    if (tensor.name.empty()) refuse(unnamed, "an empty name", "a name");
    const std::string field = "tensor " + quoted(tensor.name);
    if (!header.index.emplace(tensor.name, header.tensors.size()).second) refuse(field, "a second one", "every name once");
    const auto rank = cursor.number<std::uint32_t>(field + " rank");
    if (rank < 1 || rank > rank_cap) refuse(field + " rank", std::to_string(rank), "1 to 4");
    for (std::uint32_t i = 0; i < rank; ++i) tensor.dims.push_back(read_dim(cursor, field + " dims"));
    const TensorTypeTraits& traits = read_tensor_type(cursor, field + " type");
    tensor.type = traits.type;
    size_tensor(tensor, traits);
    tensor.offset_bytes = cursor.number<std::uint64_t>(field + " offset");
    header.tensors.push_back(std::move(tensor));
}

}  // namespace

GgufHeader parse_gguf_header(const ByteSource& source) {
    check_magic(source);
    HeaderCursor cursor(source);
    cursor.skip(4, "magic");
    check_version(cursor);
    const std::uint64_t tensors = read_count(cursor, "tensor count");
    const std::uint64_t keys = read_count(cursor, "key count");
    check_count(cursor, "key count", keys, least_key_bytes);
    GgufHeader header;
    for (std::uint64_t i = 0; i < keys; ++i) read_key(cursor, i, header);
    check_count(cursor, "tensor count", tensors, least_tensor_bytes);
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(cursor, i, header);
    place_tensors(header, cursor.position_bytes(), source.size_bytes());
    return header;
}

}  // namespace mimi

#include "weights/metadata_arrays.h"

#include <cstdint>

#include "base/error.h"
#include "weights/header_cursor.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

[[noreturn]] void refuse_array(std::string_view key, const std::string& found, std::string_view expected) {
    throw Error(ErrorCode::model_format, "key " + quoted(key), found, std::string(expected));
}

std::string array_text(const GgufArray& array) {
    return "an array of " + std::string(value_type_name(array.element_type));
}

// nullptr where the key is absent.
const GgufArray* find_array(const GgufReader& file, std::string_view key, std::string_view expected) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end()) return nullptr;
    const auto* array = std::get_if<GgufArray>(&found->second);
    if (array == nullptr) refuse_array(key, "a single value", expected);
    return array;
}

}  // namespace

std::optional<std::vector<std::string>> texts(const GgufReader& file, std::string_view key) {
    constexpr std::string_view expected = "an array of strings";
    const GgufArray* array = find_array(file, key, expected);
    if (array == nullptr) return std::nullopt;
    if (static_cast<ValueType>(array->element_type) != ValueType::string) refuse_array(key, array_text(*array), expected);
    HeaderCursor cursor(file.bytes());
    cursor.skip(array->offset_bytes, key);
    std::vector<std::string> values;
    for (std::uint64_t i = 0; i < array->count; ++i) values.push_back(cursor.text(key, file.file_size_bytes()));
    file.require_unchanged();
    return values;
}

std::optional<std::vector<std::byte>> number_bytes(const GgufReader& file, std::string_view key) {
    constexpr std::string_view expected = "an array of numbers";
    const GgufArray* array = find_array(file, key, expected);
    if (array == nullptr) return std::nullopt;
    const std::uint64_t element_bytes = value_type_bytes(static_cast<ValueType>(array->element_type));
    if (element_bytes == 0) refuse_array(key, array_text(*array), expected);
    std::vector<std::byte> values(static_cast<std::size_t>(array->count * element_bytes));
    file.bytes().read_at(array->offset_bytes, values.data(), values.size());
    file.require_unchanged();
    return values;
}

}  // namespace mimi

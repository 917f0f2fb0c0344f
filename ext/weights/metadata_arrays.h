// Arrays among a file's metadata. The header keeps only where they lie; their elements are read when they are asked for, and
// none is held that the file does not hold. Short arrays of integers are read by GgufReader itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_reader.h"

namespace mimi {

// Each gives nullopt where the key is absent; Error{model_format} where it has another type. Error{model_access} where the file
// changed since it was opened.

std::optional<std::vector<std::string>> texts(const GgufReader& file, std::string_view key);

// The elements of an array of numbers or bools as they lie in the file, little-endian, without a gap.
std::optional<std::vector<std::byte>> number_bytes(const GgufReader& file, std::string_view key);

}  // namespace mimi

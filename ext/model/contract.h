// The complete check of a `mimi` file before a single weight is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/geometry.h"
#include "weights/gguf_reader.h"

namespace mimi {

// Refuses, each with a sentence that says what to do, files that are no Mimi codec: another architecture, another component of
// Moshi (language model, voice prompt) with or without metadata, one part of a split file. Error{model_contract}.
void check_component(const GgufReader& file);

// The tensor of required_tensors() called `name`, restored or, where the file is raw, under its mangled name.
// Error{model_contract} where neither is there. That no two required tensors share one mangled name is check_contract()'s word.
const GgufTensor& find_required(const GgufReader& file, const std::string& name);

// Checks component, every required tensor's presence, shape and type, the operand-class rules (each family of tensors all
// alike), what the metadata declares, and that no tensor is left over or claimed twice. Error{model_contract} naming tensor or
// key, found, expected. Returns the weight class: "f32", "f16" or "q8_0". Needs no payload: that values are finite is checked
// as they are read (read_values(), check_values()).
std::string check_contract(const GgufReader& file, const Geometry& geometry);

// The full name of each of file.tensors(), in that order: mangled names restored. For a file that passed check_contract().
std::vector<std::string> restored_names(const GgufReader& file, const Geometry& geometry);

// The numerics the file asks for: its `moshi.mimi.numerics`, else "ggml" for a file without metadata, else "kyutai".
// Error{model_contract} where the key holds anything else.
std::string default_numerics(const GgufReader& file);

// Dims as messages show them, in the file's order: "(7, 1, 64)".
std::string dims_text(const std::vector<std::uint64_t>& dims);

}  // namespace mimi

// Stored values of any type a language model may be kept in, as f32: f32, f16 and bf16 as they are, blocks of q8_0, q4_0 and
// q4_k as ggml dequantises them, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/gguf_reader.h"

namespace mimi {

bool is_dequantisable(TensorType type);

// Writes `elements` values, whole blocks of a dequantisable type, from `stored` to `out`. Nothing is checked.
void dequantise(TensorType type, const void* stored, std::size_t elements, float* out);

// Reads `rows` rows (of dims[0] values each) from row `first_row` on, as f32, into `out`. Error{model_contract} naming tensor,
// index and value where one is NaN or infinite, and where the type is not dequantisable. The rows must be there.
void read_rows(const GgufReader& file, const GgufTensor& tensor, std::uint64_t first_row, std::uint64_t rows, float* out);

// Refuses NaN and infinity anywhere in a tensor of a dequantisable type, as read_rows() does; memory use does not grow with the
// tensor.
void check_finite(const GgufReader& file, const GgufTensor& tensor);

}  // namespace mimi

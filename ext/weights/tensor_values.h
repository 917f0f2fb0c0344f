// A tensor's payload as finite f32 values, whatever it is stored as (f16 and bf16 widen exactly), or as the blocks of q8_0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/quantised_block.h"
#include "weights/gguf_reader.h"

namespace mimi {

// The tensor's values in file order. Error{model_contract} naming tensor, index and value where one is NaN or infinite, and
// where the type is one this engine does not widen.
std::vector<float> read_values(const GgufReader& file, const GgufTensor& tensor);

// The bits of an f16 tensor's values in file order, with the same checks; Error{model_contract} where the type is another.
std::vector<std::uint16_t> read_halves(const GgufReader& file, const GgufTensor& tensor);

// The blocks of a q8_0 tensor in file order. Error{model_contract} naming tensor and block where a scale is NaN or infinite,
// and where the type is another.
std::vector<QuantisedBlock> read_blocks(const GgufReader& file, const GgufTensor& tensor);

// The same checks of a run, in memory already, of the payload of a tensor of f32, f16, bf16, q8_0, q4_0 or q4_k: `size_bytes`
// from its byte `start_bytes` on, whole values or blocks.
void check_run(const GgufTensor& tensor, std::uint64_t start_bytes, const void* stored, std::size_t size_bytes);

// The same checks without keeping the values: reads the payload through a buffer of fixed size.
void check_values(const GgufReader& file, const GgufTensor& tensor);

// Refuses NaN and infinity among `count` values that the tensor's values stand for, from its value `first_index` on.
void require_finite_values(const GgufTensor& tensor, std::uint64_t first_index, const float* values, std::size_t count);

}  // namespace mimi

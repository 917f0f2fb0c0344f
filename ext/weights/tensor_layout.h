// Sizes of tensors and their places in the file, computed without overflow and checked against the file's size.
#pragma once

#include <cstdint>

#include "weights/gguf_header.h"

namespace mimi {

// Sets `elements` and `size_bytes` from `dims`. Error{model_format} where either overflows, or a row is no whole number of the
// type's blocks.
void size_tensor(GgufTensor& tensor, const TensorTypeTraits& traits);

// Turns offsets into the data section, which starts at `header_bytes` rounded up to the alignment, into offsets from the start
// of the file. Error{model_format} where a tensor is misaligned, passes the end of the file, overlaps another, or where bytes
// belong to no tensor.
void place_tensors(GgufHeader& header, std::uint64_t header_bytes, std::uint64_t file_size_bytes);

}  // namespace mimi

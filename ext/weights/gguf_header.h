// The GGUF v3 header as a pure function of bounded bytes: no file handling, so that it can be tested and fuzzed on buffers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weights/byte_source.h"
#include "weights/gguf_format.h"

namespace mimi {

struct GgufHeader {
    std::vector<GgufTensor> tensors;                        // in the order of the file
    std::map<std::string, std::size_t, std::less<>> index;  // name -> position in `tensors`
    std::map<std::string, GgufValue, std::less<>> metadata;
    std::uint64_t alignment_bytes = 32;
};

// Reads and checks a whole header. Throws Error{model_format} naming the field, what was found and what was expected. Beyond
// what the format says, these are refused:
//   - more than 16384 tensors or keys; keys over 64 KiB, strings over 1 MiB, tensor names over 255 bytes; arrays of arrays,
//     or of more than 16777216 elements; text with NUL; empty keys and names
//   - an alignment that is no power of two from 8 to 65536
//   - tensors that overlap, leave a hole between them larger than alignment asks for, or do not start where the data starts
//   - more bytes after the last tensor than alignment asks for: a file that was appended to or joined wrongly
// A last tensor without its padding is taken. Tensors may lie in another order than their records.
GgufHeader parse_gguf_header(const ByteSource& source);

}  // namespace mimi

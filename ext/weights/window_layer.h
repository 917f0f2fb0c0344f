// How a layer's matrices come from the file into one block of packed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weights/gguf_format.h"

namespace mimi {

// Turns runs of a stored matrix into the form the kernels read. Shared by all layers with a matrix of this shape.
class PartPacker {
public:
    virtual ~PartPacker() = default;
    // Runs are cut at multiples of this many stored bytes, or at the end.
    virtual std::size_t stored_unit_bytes() const = 0;
    // A multiple of 64.
    virtual std::size_t packed_bytes() const = 0;
    // Error{model_contract} naming the tensor and the value where one of a run that starts at its byte `start_bytes` may not
    // be.
    virtual void check(const GgufTensor& tensor, const std::byte* stored, std::size_t start_bytes,
                       std::size_t size_bytes) const = 0;
    // Writes that run's share of the matrix's packed_bytes() at `packed`. Several threads may pack different runs at once.
    virtual void pack(const std::byte* stored, std::size_t start_bytes, std::size_t size_bytes, std::byte* packed) const = 0;
};

// A matrix of a layer. Neither is owned: the tensor must live until the window is bound, the packer until it is unbound.
struct WindowPart {
    const GgufTensor* tensor;
    const PartPacker* packer;
};

// A run of the file that one read takes, and where it goes.
struct WindowChunk {
    const PartPacker* packer;
    std::uint64_t offset_bytes;  // in the file
    std::size_t start_bytes;     // in the stored matrix
    std::size_t size_bytes;
    std::size_t packed_offset_bytes;  // of the matrix, in the layer's block
};

// Long enough for the disk to run at its full rate and short enough for two of them to overlap reading with packing.
constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

// A layer cut into chunks, in the order of `parts`, whose packed forms lie side by side in that order.
std::vector<WindowChunk> cut_into_chunks(const std::vector<WindowPart>& parts);

std::size_t packed_layer_bytes(const std::vector<WindowPart>& parts);

}  // namespace mimi

// A transformer's matrix as the tensor window takes it from the file.
#pragma once

#include <cstddef>

#include "layers/linear.h"
#include "weights/window_layer.h"

namespace mimi {

// Keeps a reference to `linear`, which must outlive it. The file stores [outputs][inputs].
class MatrixPacker : public PartPacker {
public:
    explicit MatrixPacker(const Linear& linear) : linear_(linear) {}

    std::size_t stored_unit_bytes() const override { return block_outputs * linear_.stored_row_bytes(); }
    std::size_t packed_bytes() const override { return linear_.packed_bytes(); }
    void check(const GgufTensor& tensor, const std::byte* stored, std::size_t start_bytes,
               std::size_t size_bytes) const override;
    void pack(const std::byte* stored, std::size_t start_bytes, std::size_t size_bytes, std::byte* packed) const override;

private:
    const Linear& linear_;
};

}  // namespace mimi

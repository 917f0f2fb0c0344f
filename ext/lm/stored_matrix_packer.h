// A language model's matrix as the tensor window takes it from the file, whatever type it is stored as. f32, f16, bf16 and q8_0
// stay what they are; q4_0 becomes q8_0 of the same scales, which is exact; q4_k becomes f32.
#pragma once

#include <cstddef>

#include "layers/linear.h"
#include "weights/gguf_format.h"
#include "weights/window_layer.h"

namespace mimi {

// What a matrix of this type is in memory. Error{internal} for a type that no file may have.
MatrixStorage packed_storage(TensorType type);

class StoredMatrixPacker : public PartPacker {
public:
    // `linear` is of the packed storage; both must outlive this.
    StoredMatrixPacker(const GgufTensor& tensor, const Linear& linear);

    std::size_t stored_unit_bytes() const override { return block_outputs * row_bytes_; }
    std::size_t packed_bytes() const override { return linear_.packed_bytes(); }
    void check(const GgufTensor& tensor, const std::byte* stored, std::size_t start_bytes,
               std::size_t size_bytes) const override;
    void pack(const std::byte* stored, std::size_t start_bytes, std::size_t size_bytes, std::byte* packed) const override;

private:
    const Linear& linear_;
    TensorType type_;
    std::size_t inputs_;
    std::size_t row_bytes_;  // as stored
};

}  // namespace mimi

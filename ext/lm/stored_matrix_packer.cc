#include "lm/stored_matrix_packer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/quantised_block.h"
#include "weights/dequantise.h"
#include "weights/tensor_values.h"

namespace mimi {

namespace {

QuantisedBlock widened(const NibbleBlock& block) {
    constexpr std::size_t half = NibbleBlock::elements / 2;
    QuantisedBlock out{.scale = block.scale, .quants = {}};
    for (std::size_t i = 0; i < half; ++i) {
        out.quants[i] = static_cast<std::int8_t>((block.nibbles[i] & 15) - 8);
        out.quants[half + i] = static_cast<std::int8_t>((block.nibbles[i] >> 4) - 8);
    }
    return out;
}

}  // namespace

MatrixStorage packed_storage(TensorType type) {
    switch (type) {
        case TensorType::f32:
        case TensorType::q4_k: return MatrixStorage::f32;
        case TensorType::f16: return MatrixStorage::f16;
        case TensorType::bf16: return MatrixStorage::bf16;
        case TensorType::q8_0:
        case TensorType::q4_0: return MatrixStorage::q8_0;
        default: break;
    }
    throw Error(ErrorCode::internal, "type", std::string(tensor_type_name(type)), "a type that was checked");
}

StoredMatrixPacker::StoredMatrixPacker(const GgufTensor& tensor, const Linear& linear)
    : linear_(linear),
      type_(tensor.type),
      inputs_(static_cast<std::size_t>(tensor.dims[0])),
      row_bytes_(static_cast<std::size_t>(tensor.size_bytes / (tensor.elements / tensor.dims[0]))) {}

void StoredMatrixPacker::check(const GgufTensor& tensor, const std::byte* stored, std::size_t start_bytes,
                               std::size_t size_bytes) const {
    check_run(tensor, start_bytes, stored, size_bytes);
}

void StoredMatrixPacker::pack(const std::byte* stored, std::size_t start_bytes, std::size_t size_bytes,
                              std::byte* packed) const {
    const std::size_t first = start_bytes / row_bytes_, rows = size_bytes / row_bytes_;
    if (type_ != TensorType::q4_0 && type_ != TensorType::q4_k) return linear_.pack_rows(stored, first, rows, packed);
    for (std::size_t begin = 0; begin < rows; begin += block_outputs) {
        const std::size_t count = std::min(block_outputs, rows - begin);
        const std::byte* from = stored + begin * row_bytes_;
        if (type_ == TensorType::q4_0) {
            std::vector<QuantisedBlock> blocks(count * inputs_ / QuantisedBlock::elements);
            std::transform(reinterpret_cast<const NibbleBlock*>(from),
                           reinterpret_cast<const NibbleBlock*>(from) + blocks.size(), blocks.begin(), widened);
            linear_.pack_rows(reinterpret_cast<const std::byte*>(blocks.data()), first + begin, count, packed);
        } else {
            std::vector<float> values(count * inputs_);
            dequantise(type_, from, values.size(), values.data());
            linear_.pack_rows(reinterpret_cast<const std::byte*>(values.data()), first + begin, count, packed);
        }
    }
}

}  // namespace mimi

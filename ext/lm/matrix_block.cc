#include "lm/matrix_block.h"

#include <string>

#include "base/error.h"

namespace mimi {

namespace {

std::size_t rows_of(const GgufTensor& tensor) {
    return static_cast<std::size_t>(tensor.elements / tensor.dims[0]);
}

// In memory a matrix is what the file stores it as.
MatrixStorage storage_of(TensorType type) {
    switch (type) {
        case TensorType::f32: return MatrixStorage::f32;
        case TensorType::f16: return MatrixStorage::f16;
        case TensorType::bf16: return MatrixStorage::bf16;
        case TensorType::q8_0: return MatrixStorage::q8_0;
        case TensorType::q4_0: return MatrixStorage::q4_0;
        case TensorType::q4_k: return MatrixStorage::q4_k;
        default: break;
    }
    throw Error(ErrorCode::internal, "type", std::string(tensor_type_name(type)), "a type that was checked");
}

}  // namespace

MatrixBlock::Entry::Entry(const GgufTensor& stored, std::size_t offset)
    : tensor(stored),
      linear(NumericsPolicy{}, storage_of(stored.type), rows_of(stored), static_cast<std::size_t>(stored.dims[0])),
      packer(linear),
      offset_bytes(offset) {}

std::size_t MatrixBlock::add(const GgufTensor& tensor) {
    entries_.emplace_back(tensor, packed_bytes());
    return entries_.size() - 1;
}

std::size_t MatrixBlock::packed_bytes() const {
    return empty() ? 0 : entries_.back().offset_bytes + entries_.back().linear.packed_bytes();
}

std::vector<WindowPart> MatrixBlock::parts() const {
    std::vector<WindowPart> parts;
    for (const Entry& entry : entries_) parts.push_back({&entry.tensor, &entry.packer});
    return parts;
}

void MatrixBlock::Visit::multiply(std::size_t matrix, const StepContext& context, const Activations& in,
                                  const Activations& out) const {
    const Entry& entry = block_.entries_[matrix];
    entry.linear.step(context, lease_.packed() + entry.offset_bytes, in, out);
}

}  // namespace mimi

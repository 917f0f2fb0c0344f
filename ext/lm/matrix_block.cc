#include "lm/matrix_block.h"

#include <string>

#include "base/error.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

MatrixStorage storage_of(const GgufTensor& tensor) {
    switch (tensor.type) {
        case TensorType::f32: return MatrixStorage::f32;
        case TensorType::f16: return MatrixStorage::f16;
        case TensorType::bf16: return MatrixStorage::bf16;
        default: break;
    }
    throw Error(ErrorCode::internal, "tensor " + quoted(tensor.name), std::string(tensor_type_name(tensor.type)),
                "a type that was checked");
}

std::size_t rows_of(const GgufTensor& tensor) {
    return static_cast<std::size_t>(tensor.elements / tensor.dims[0]);
}

}  // namespace

MatrixBlock::Entry::Entry(const GgufTensor& stored, std::size_t offset)
    : tensor(stored),
      linear(NumericsPolicy{}, storage_of(stored), rows_of(stored), static_cast<std::size_t>(stored.dims[0])),
      packer(linear),
      offset_bytes(offset) {}

std::size_t MatrixBlock::add(const GgufTensor& tensor) {
    const std::size_t offset = empty() ? 0 : entries_.back().offset_bytes + entries_.back().linear.packed_bytes();
    entries_.emplace_back(tensor, offset);
    return entries_.size() - 1;
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

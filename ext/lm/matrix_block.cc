#include "lm/matrix_block.h"

#include <algorithm>
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

MatrixBlock::Entry::Entry(const GgufTensor& stored)
    : tensor(stored),
      linear(NumericsPolicy{}, storage_of(stored.type), rows_of(stored), static_cast<std::size_t>(stored.dims[0])),
      packer(linear) {}

std::size_t MatrixBlock::add(const GgufTensor& tensor) {
    entries_.emplace_back(tensor);
    return entries_.size() - 1;
}

std::size_t MatrixBlock::largest_matrix_bytes() const {
    std::size_t most = 0;
    for (const Entry& entry : entries_) most = std::max(most, entry.linear.packed_bytes());
    return most;
}

std::size_t MatrixBlock::packed_bytes() const {
    std::size_t bytes = 0;
    for (const Entry& entry : entries_) bytes += entry.linear.packed_bytes();
    return bytes;
}

void MatrixBlock::cut(std::size_t most_bytes, std::size_t first_layer, std::vector<std::vector<WindowPart>>& layers) {
    const std::size_t first = layers.size();
    std::size_t filled = 0;
    for (Entry& entry : entries_) {
        const std::size_t bytes = entry.linear.packed_bytes();
        if (layers.size() == first || filled + bytes > most_bytes) {
            layers.emplace_back();
            filled = 0;
        }
        entry.layer = first_layer + layers.size() - 1 - first;
        entry.offset_bytes = filled;
        filled += bytes;
        layers.back().push_back({&entry.tensor, &entry.packer});
    }
}

void MatrixBlock::Visit::multiply(std::size_t matrix, const StepContext& context, const Activations& in,
                                  const Activations& out) const {
    const Entry& entry = block_.entries_[matrix];
    if (!lease_ || held_layer_ != entry.layer) {
        // Who waits for a piece while holding another may wait for itself.
        lease_.reset();
        lease_.emplace(window_.acquire(entry.layer));
        held_layer_ = entry.layer;
    }
    entry.linear.step(context, lease_->packed() + entry.offset_bytes, in, out);
}

}  // namespace mimi

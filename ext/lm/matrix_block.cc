#include "lm/matrix_block.h"

namespace mimi {

namespace {

std::size_t rows_of(const GgufTensor& tensor) {
    return static_cast<std::size_t>(tensor.elements / tensor.dims[0]);
}

}  // namespace

MatrixBlock::Entry::Entry(const GgufTensor& stored, std::size_t offset)
    : tensor(stored),
      linear(NumericsPolicy{}, packed_storage(stored.type), rows_of(stored), static_cast<std::size_t>(stored.dims[0])),
      packer(stored, linear),
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

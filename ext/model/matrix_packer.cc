#include "model/matrix_packer.h"

#include "weights/tensor_values.h"

namespace mimi {

void MatrixPacker::check(const GgufTensor& tensor, const std::byte* stored, std::size_t start_bytes,
                         std::size_t size_bytes) const {
    check_run(tensor, start_bytes, stored, size_bytes);
}

void MatrixPacker::pack(const std::byte* stored, std::size_t start_bytes, std::size_t size_bytes, std::byte* packed) const {
    const std::size_t row_bytes = linear_.stored_row_bytes();
    linear_.pack_rows(stored, start_bytes / row_bytes, size_bytes / row_bytes, packed);
}

}  // namespace mimi

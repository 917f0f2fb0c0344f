// Weights of one matrix of blocks in the form of KernelTable's products of integers: as many bytes as in the file (outputs
// filled up to whole sixteens, scales to whole rows), never widened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/quantised_block.h"
#include "layers/matrix_storage.h"
#include "layers/step_context.h"

namespace mimi {

class QuantisedMatrix {
public:
    // Of q8_0. `blocks` is [outputs][inputs / 32]; inputs is a multiple of 32.
    QuantisedMatrix(std::span<const QuantisedBlock> blocks, std::size_t outputs, std::size_t inputs);

    // A matrix whose packed weights somebody else keeps: packed_bytes() of them, filled by pack_rows(). `storage` is a
    // quantised one, and `inputs` whole blocks of it.
    QuantisedMatrix(MatrixStorage storage, std::size_t outputs, std::size_t inputs)
        : storage_(storage), outputs_(outputs), groups_(inputs / quantised_group) {}

    // Of its own weights; 0 where somebody else keeps them.
    std::size_t size_bytes() const { return bytes_.size_bytes(); }
    std::size_t packed_bytes() const { return count_blocks(outputs_) * block_rows() * quantised_row_bytes; }
    std::size_t stored_row_bytes() const;

    // Packs rows first .. first + count - 1, [count][blocks] as a file stores them; `first` is a multiple of block_outputs, and
    // so is `count` unless these are the last rows.
    void pack_rows(const std::byte* rows, std::size_t first, std::size_t count, std::byte* packed) const;

    // rows[n][0 .. outputs) = W columns[n] for n < count, the columns quantised on the way.
    void multiply(const StepContext& context, const float* const* columns, float* const* rows, std::size_t count) const {
        multiply(context, nullptr, columns, rows, count);
    }
    // The same by weights that somebody else keeps, where `packed` is not nullptr.
    void multiply(const StepContext& context, const std::byte* packed, const float* const* columns, float* const* rows,
                  std::size_t count) const;

private:
    std::size_t block_rows() const;
    // Writes one stored row to its lane of a block.
    void pack_row(const std::byte* row, std::size_t lane, std::uint8_t* block) const;
    const QuantisedColumn* quantise(const StepContext& context, const float* const* columns, std::size_t count) const;

    MatrixStorage storage_;
    std::size_t outputs_;
    std::size_t groups_;
    AlignedBuffer bytes_;
};

}  // namespace mimi

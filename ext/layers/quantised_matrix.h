// Weights of one q8_0 matrix in the form of KernelTable::quantised_matmul: as many bytes as in the file, never widened.
#pragma once

#include <cstddef>
#include <span>

#include "base/aligned_buffer.h"
#include "base/quantised_block.h"
#include "layers/step_context.h"

namespace mimi {

class QuantisedMatrix {
public:
    // `blocks` is [outputs][inputs / 32]; inputs is a multiple of 32.
    QuantisedMatrix(std::span<const QuantisedBlock> blocks, std::size_t outputs, std::size_t inputs);

    // A matrix whose packed weights somebody else keeps: packed_bytes() of them, filled by pack_rows().
    QuantisedMatrix(std::size_t outputs, std::size_t inputs) : outputs_(outputs), groups_(inputs / quantised_group) {}

    // Of its own weights; 0 where somebody else keeps them.
    std::size_t size_bytes() const { return bytes_.size_bytes(); }
    std::size_t packed_bytes() const { return count_blocks(outputs_) * quantised_block_bytes(groups_); }
    std::size_t stored_row_bytes() const { return groups_ * sizeof(QuantisedBlock); }

    // Packs rows first .. first + count - 1, [count][inputs / 32]; `first` is a multiple of block_outputs, and so is `count`
    // unless these are the last rows.
    void pack_rows(const QuantisedBlock* rows, std::size_t first, std::size_t count, std::byte* packed) const;

    // rows[n][0 .. outputs) = W columns[n] for n < count, the columns quantised on the way.
    void multiply(const StepContext& context, const float* const* columns, float* const* rows, std::size_t count) const {
        multiply(context, nullptr, columns, rows, count);
    }
    // The same by weights that somebody else keeps, where `packed` is not nullptr.
    void multiply(const StepContext& context, const std::byte* packed, const float* const* columns, float* const* rows,
                  std::size_t count) const;

private:
    const QuantisedColumn* quantise(const StepContext& context, const float* const* columns, std::size_t count) const;

    std::size_t outputs_;
    std::size_t groups_;
    AlignedBuffer bytes_;
};

}  // namespace mimi

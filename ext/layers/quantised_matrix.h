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

    std::size_t size_bytes() const { return bytes_.size_bytes(); }

    // rows[n][0 .. outputs) = W columns[n] for n < count, the columns quantised on the way.
    void multiply(const StepContext& context, const float* const* columns, float* const* rows, std::size_t count) const;

private:
    const QuantisedColumn* quantise(const StepContext& context, const float* const* columns, std::size_t count) const;

    std::size_t outputs_;
    std::size_t groups_;
    AlignedBuffer bytes_;
};

}  // namespace mimi

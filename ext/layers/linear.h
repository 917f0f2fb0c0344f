// y[o] = sum over i of W[o][i] x[i] (+ bias[o]), in the summation order of KernelTable::matmul.
#pragma once

#include <cstddef>
#include <span>

#include "base/aligned_buffer.h"
#include "layers/step_context.h"

namespace mimi {

// Weights of one matrix in the kernels' packed form.
class PackedMatrix {
public:
    // `weight(o, i)` gives the value for output o and input i.
    template <class Weight>
    PackedMatrix(std::size_t outputs, std::size_t inputs, const Weight& weight)
        : outputs_(outputs), inputs_(inputs), values_(count_blocks(outputs) * inputs * block_outputs) {
        for (std::size_t o = 0; o < outputs; ++o)
            for (std::size_t i = 0; i < inputs; ++i)
                values_.data()[(o / block_outputs * inputs + i) * block_outputs + o % block_outputs] = weight(o, i);
    }

    std::size_t outputs() const { return outputs_; }
    std::size_t inputs() const { return inputs_; }
    std::size_t size_bytes() const { return values_.size_bytes(); }

    // rows[n][0 .. outputs) = W columns[n] + bias, for n < count; `bias` may be nullptr.
    void multiply(const StepContext& context, const float* bias, const float* const* columns, float* const* rows,
                  std::size_t count) const;

private:
    std::size_t outputs_;
    std::size_t inputs_;
    AlignedBuffer values_;
};

// A linear layer without bias over every row of its input, as the transformers and the quantisers use it.
class Linear {
public:
    // `weight` is [outputs][inputs].
    Linear(std::span<const float> weight, std::size_t outputs, std::size_t inputs);

    // in: [lane][rows][inputs] -> out: [lane][rows][outputs]
    void step(const StepContext& context, const Activations& in, const Activations& out) const;
    std::size_t size_bytes() const { return matrix_.size_bytes(); }

private:
    PackedMatrix matrix_;
};

}  // namespace mimi

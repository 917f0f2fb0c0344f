// y[o] = sum over i of W[o][i] x[i] (+ bias[o]), in the summation order of KernelTable::matmul or conv_matmul, or of the
// products of integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/half_float.h"
#include "layers/matrix_storage.h"
#include "layers/numerics_policy.h"
#include "layers/quantised_matrix.h"
#include "layers/step_context.h"

namespace mimi {

// How a matrix is multiplied.
struct MatrixForm {
    // Inputs and weights are those of a conv or of the quantiser's projections: `ggml` numerics hold both in f16.
    bool conv_operands = false;
    // Elements whose sum is rounded on its own where sums are not cut into chains of fixed length; 0: all of them.
    std::size_t segment = 0;
    // [inputs]: where in a column each input lies; empty: side by side.
    std::vector<std::uint32_t> offsets = {};
};

// Weights of one matrix in the kernels' packed form.
class PackedMatrix {
public:
    // `weight(o, i)` gives the value for output o and input i; `stored` is f32, or f16 where all of them are values of f16.
    template <class Weight>
    PackedMatrix(const NumericsPolicy& policy, std::size_t outputs, std::size_t inputs, MatrixForm form, const Weight& weight,
                 MatrixStorage stored = MatrixStorage::f32)
        : PackedMatrix(policy, outputs, inputs, stored, std::move(form)) {
        values_ = AlignedBuffer(packed_bytes() / sizeof(float));
        const bool half = form_.conv_operands && policy.half_conv_weights;
        for (std::size_t o = 0; o < outputs; ++o) {
            for (std::size_t position = 0; position < inputs; ++position) {
                const float value = weight(o, input_at(position));
                const std::size_t place = (o / block_outputs * inputs + position) * block_outputs + o % block_outputs;
                if (storage_ == MatrixStorage::f16)
                    reinterpret_cast<std::uint16_t*>(values_.data())[place] = float_to_half(value);
                else
                    values_.data()[place] = half ? half_to_float(float_to_half(value)) : value;
            }
        }
    }

    // A matrix whose packed values somebody else keeps: packed_bytes() of them, aligned to 64 bytes, filled by pack_rows().
    // `stored`: f32, f16 or bf16. Memory has the same under chain sums, and f32 under tree sums.
    PackedMatrix(const NumericsPolicy& policy, std::size_t outputs, std::size_t inputs,
                 MatrixStorage stored = MatrixStorage::f32, MatrixForm form = {})
        : outputs_(outputs),
          inputs_(inputs),
          form_(std::move(form)),
          stored_(stored),
          storage_(policy.sum_order == SumOrder::chains ? stored : MatrixStorage::f32) {
        arrange(policy);
    }

    // Of its own values; 0 where somebody else keeps them.
    std::size_t size_bytes() const { return values_.size_bytes(); }
    std::size_t packed_bytes() const {
        // Whole cache lines.
        return (count_blocks(outputs_) * inputs_ * block_outputs * element_bytes(storage_) + 63) / 64 * 64;
    }
    std::size_t stored_row_bytes() const { return inputs_ * element_bytes(stored_); }

    // Packs rows first .. first + count - 1, [count][inputs] as a file stores them; `first` is a multiple of block_outputs, and
    // so is `count` unless these are the last rows. Only for a matrix without conv operands.
    void pack_rows(const std::byte* rows, std::size_t first, std::size_t count, std::byte* packed) const;

    // rows[n][0 .. outputs) = W columns[n] + bias, for n < count; `bias` may be nullptr.
    void multiply(const StepContext& context, const float* bias, const float* const* columns, float* const* rows,
                  std::size_t count) const {
        multiply(context, values_.data(), bias, columns, rows, count);
    }
    // The same by values that somebody else keeps.
    void multiply(const StepContext& context, const void* packed, const float* bias, const float* const* columns,
                  float* const* rows, std::size_t count) const;

    // Rounds every row of `in` to what the operands can hold, in place; under most numerics nothing changes.
    void round_operand(const StepContext& context, const Activations& in) const;

private:
    static std::size_t element_bytes(MatrixStorage storage) {
        return storage == MatrixStorage::f32 ? sizeof(float) : sizeof(std::uint16_t);
    }
    template <class Stored, class Kept, class Convert>
    void pack_elements(const Stored* rows, std::size_t first, std::size_t count, Kept* packed, Convert convert) const;
    // Fixes the segment and, under tree sums, where each input's weight goes.
    void arrange(const NumericsPolicy& policy);
    // The input whose weights lie at `position`.
    std::size_t input_at(std::size_t position) const { return order_.empty() ? position : order_[position]; }
    // Copies columns so that they lie as the weights do; returns the copies.
    const float** gather(const StepContext& context, const float* const* columns, std::size_t count) const;

    std::size_t outputs_;
    std::size_t inputs_;
    MatrixForm form_;
    MatrixStorage stored_;
    MatrixStorage storage_;             // in memory
    std::vector<std::uint32_t> order_;  // [inputs], empty: as they come
    AlignedBuffer values_;
};

// A matrix [outputs][inputs] as the file stores it: values, or blocks of q8_0.
using StoredMatrix = std::variant<std::vector<float>, std::vector<QuantisedBlock>>;

// A linear layer without bias over every row of its input, as the transformers and the quantisers use it.
class Linear {
public:
    // Of blocks nothing but their integers and scales is kept, and products with them are of integers; `form` is then unused.
    Linear(const NumericsPolicy& policy, const StoredMatrix& weight, std::size_t outputs, std::size_t inputs,
           MatrixForm form = {});

    // One whose packed weights somebody else keeps, and gives to each step.
    Linear(const NumericsPolicy& policy, MatrixStorage stored, std::size_t outputs, std::size_t inputs);

    // in: [lane][rows][inputs], rounded in place where the form's operands ask for it -> out: [lane][rows][outputs]
    void step(const StepContext& context, const Activations& in, const Activations& out) const {
        step(context, nullptr, in, out);
    }
    // The same by packed weights that somebody else keeps.
    void step(const StepContext& context, const std::byte* packed, const Activations& in, const Activations& out) const;

    // Of weights of its own; 0 where somebody else keeps them.
    std::size_t size_bytes() const;
    std::size_t packed_bytes() const;
    // Of one row [inputs] as the file stores it.
    std::size_t stored_row_bytes() const;
    // Packs `count` stored rows from row `first` on into packed_bytes() of memory; see PackedMatrix::pack_rows().
    void pack_rows(const std::byte* stored, std::size_t first, std::size_t count, std::byte* packed) const;

private:
    std::variant<PackedMatrix, QuantisedMatrix> matrix_;
};

}  // namespace mimi

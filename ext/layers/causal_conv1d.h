// Streaming causal convolution: y[t][o] = bias[o] + sum over k, i of W[o][i][k] x[t stride + k - (kernel - stride)][i].
#pragma once

#include <cstddef>
#include <span>

#include "layers/layer_geometry.h"
#include "layers/linear.h"
#include "layers/numerics_policy.h"
#include "layers/step_context.h"
#include "state/state_layout.h"

namespace mimi {

// Reads a lane's remembered rows into the room before its input, and remembers its last rows for the next step.
class ConvHistory {
public:
    ConvHistory(StateLayout& layout, std::size_t rows, std::size_t channels, StartPadding padding = StartPadding::zeros)
        : rows_(rows), padding_(padding), slot_(layout.add_history(rows, channels)) {}

    std::size_t rows() const { return rows_; }
    // in.history must be rows(); every lane's new rows must be in place.
    void exchange(const StepContext& context, const Activations& in) const;

private:
    std::size_t rows_;
    StartPadding padding_;
    std::size_t slot_;
};

class CausalConv1d {
public:
    // `weight` is [out][in][kernel], `bias` is [out] or empty. `stored`: what the file has the weight as, f32 or f16.
    CausalConv1d(const NumericsPolicy& policy, const ConvGeometry& geometry, std::span<const float> weight,
                 MatrixStorage stored, std::span<const float> bias, StateLayout& layout,
                 StartPadding padding = StartPadding::zeros);

    const ConvGeometry& geometry() const { return geometry_; }
    // Rows of the past the input must leave room for: kernel - stride.
    std::size_t history_rows() const { return history_.rows(); }

    // in: [lane][rows][in_channels] with history_rows() of room, rows a multiple of stride; rounded in place where the
    // numerics hold conv operands in f16
    // out: [lane][rows / stride][out_channels]
    void step(const StepContext& context, const Activations& in, const Activations& out) const;
    std::size_t size_bytes() const { return matrix_.size_bytes() + bias_.size_bytes(); }

private:
    ConvGeometry geometry_;
    ConvHistory history_;
    PackedMatrix matrix_;
    AlignedBuffer bias_;
};

}  // namespace mimi

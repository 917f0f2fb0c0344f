// Streaming transposed convolution, computed as the causal conv it is: output row t * stride + s sees the input rows
// t, t - 1, ... t - taps + 1 through W[.][.][s + stride * tap], with taps = ceil(kernel / stride). So a stream remembers input
// rows rather than unfinished outputs, every output is one sum in one order, and one conv kernel serves both directions.
#pragma once

#include <cstddef>
#include <span>

#include "layers/causal_conv1d.h"
#include "layers/layer_geometry.h"
#include "layers/linear.h"
#include "layers/numerics_policy.h"
#include "layers/step_context.h"
#include "state/state_layout.h"

namespace mimi {

class CausalConvTranspose1d {
public:
    // `weight` is [in][out][kernel], `bias` is [out]. `stored`: what the file has the weight as, f32 or f16.
    CausalConvTranspose1d(const NumericsPolicy& policy, const ConvGeometry& geometry, std::span<const float> weight,
                          MatrixStorage stored, std::span<const float> bias, StateLayout& layout);

    const ConvGeometry& geometry() const { return geometry_; }
    // Rows of the past the input must leave room for: taps - 1.
    std::size_t history_rows() const { return history_.rows(); }

    // in: [lane][rows][in_channels] with history_rows() of room -> out: [lane][rows * stride][out_channels]
    void step(const StepContext& context, const Activations& in, const Activations& out) const;
    std::size_t size_bytes() const { return matrix_.size_bytes() + bias_.size_bytes(); }

private:
    ConvGeometry geometry_;
    ConvHistory history_;
    PackedMatrix matrix_;  // output index s * out_channels + o; reduction index (taps - 1 - tap) * in_channels + i
    AlignedBuffer bias_;   // repeated for every s
};

}  // namespace mimi

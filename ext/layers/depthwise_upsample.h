// Depthwise transposed convolution without bias that doubles the latent's rate:
//   y[t stride + s][c] = x[t - 1][c] w[c][s + stride] + x[t][c] w[c][s], each product rounded, then one sum.
#pragma once

#include <cstddef>
#include <span>

#include "layers/causal_conv1d.h"
#include "layers/layer_geometry.h"
#include "layers/step_context.h"
#include "state/state_layout.h"

namespace mimi {

class DepthwiseUpsample {
public:
    // `weight` is [channels][kernel], stride < kernel <= 2 stride, or kernel = stride.
    DepthwiseUpsample(const ConvGeometry& geometry, std::span<const float> weight, StateLayout& layout);

    std::size_t history_rows() const { return history_.rows(); }
    // in: [lane][rows][channels] with history_rows() of room -> out: [lane][rows * stride][channels]
    void step(const StepContext& context, const Activations& in, const Activations& out) const;
    std::size_t size_bytes() const { return weights_.size_bytes(); }

private:
    ConvGeometry geometry_;
    ConvHistory history_;
    AlignedBuffer weights_;  // [2 stride][channels], zero beyond the kernel
};

}  // namespace mimi

// One pre-norm transformer layer over the ring of its stream: x += scale1 attention(norm1 x); x += scale2 mlp(norm2 x).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "layers/layer_geometry.h"
#include "layers/linear.h"
#include "layers/numerics_policy.h"
#include "layers/step_context.h"

namespace mimi {

// A layer's tensors as the file stores them.
struct TransformerLayerWeights {
    StoredMatrix in_projection;   // [3 dim][dim]: query, key, value rows
    StoredMatrix out_projection;  // [dim][dim]
    StoredMatrix mlp_in;          // [mlp_width][dim]
    StoredMatrix mlp_out;         // [dim][mlp_width]
    std::vector<float> norm1_weight, norm1_bias, norm2_weight, norm2_bias, layer_scale_1, layer_scale_2;  // [dim]
};

// What depends on the positions of a step's rows only, and so is the same for every layer and head.
struct StepPositions {
    const float* cosine;  // [lane][row][head_dim / 2]
    const float* sine;
    const std::int32_t* slots;  // [lane][row][context]: see fill_attention_window
    const std::size_t* counts;  // [lane][row]
};

class TransformerLayer {
public:
    TransformerLayer(const NumericsPolicy& policy, const TransformerGeometry& geometry, const TransformerLayerWeights& weights,
                     std::size_t layer);

    // x: [lane][rows][dim], changed in place; the rows' keys and values go into the ring at the stream's next positions.
    void step(const StepContext& context, const Activations& x, const StepPositions& positions) const;
    std::size_t size_bytes() const;

private:
    struct QueryPlace {
        std::size_t lane, head, t;
        float* weights;  // scratch, room for the context rounded up to a multiple of 16
    };

    void attend(const StepContext& context, const Activations& normal, const Activations& mixed,
                const StepPositions& positions) const;
    // `turned`: scratch of one head.
    void remember(const StepContext& context, const Activations& projected, const StepPositions& positions, std::size_t lane,
                  float* turned) const;
    void look_back(const StepContext& context, const Activations& projected, const Activations& mixed,
                   const StepPositions& positions, const QueryPlace& place) const;

    TransformerGeometry geometry_;
    RotaryLayout rotary_layout_;
    std::size_t layer_;
    Linear in_projection_, out_projection_, mlp_in_, mlp_out_;
    AlignedBuffer norm1_weight_, norm1_bias_, norm2_weight_, norm2_bias_, layer_scale_1_, layer_scale_2_;
};

}  // namespace mimi

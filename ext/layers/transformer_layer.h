// One pre-norm transformer layer over the ring of its stream: x += scale1 attention(norm1 x); x += scale2 mlp(norm2 x).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "layers/layer_geometry.h"
#include "layers/linear.h"
#include "layers/numerics_policy.h"
#include "layers/step_context.h"

namespace mimi {

// The matrices of a layer, which every layer of a transformer shares: their sizes and how they are packed. The packed weights
// are somebody else's: one block a layer, aligned to 64 bytes, with the matrices side by side in this order.
struct TransformerMatrices {
    TransformerMatrices(const NumericsPolicy& policy, const TransformerGeometry& geometry, MatrixStorage stored);

    Linear in_projection;   // [3 dim][dim]: query, key, value rows
    Linear out_projection;  // [dim][dim]
    Linear mlp_in;          // [mlp_width][dim]
    Linear mlp_out;         // [dim][mlp_width]
};

// A layer's small tensors, which are always in memory, as the file stores them; each [dim].
struct TransformerLayerVectors {
    std::vector<float> norm1_weight, norm1_bias, norm2_weight, norm2_bias, layer_scale_1, layer_scale_2;
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
    TransformerLayer(const NumericsPolicy& policy, const TransformerGeometry& geometry,
                     std::shared_ptr<const TransformerMatrices> matrices, const TransformerLayerVectors& vectors,
                     std::size_t layer);

    // x: [lane][rows][dim], changed in place; the rows' keys and values go into the ring at the stream's next positions.
    // `packed` is the layer's block of packed weights.
    void step(const StepContext& context, const std::byte* packed, const Activations& x, const StepPositions& positions) const;
    // Of what is its own.
    std::size_t size_bytes() const { return 6 * norm1_weight_.size_bytes(); }

private:
    struct QueryPlace {
        std::size_t lane, head, t;
        float* weights;  // scratch, room for the context rounded up to a multiple of 16
    };

    void attend(const StepContext& context, const std::byte* packed, const Activations& normal, const Activations& mixed,
                const StepPositions& positions) const;
    // `turned`: scratch of one head.
    void remember(const StepContext& context, const Activations& projected, const StepPositions& positions, std::size_t lane,
                  float* turned) const;
    void look_back(const StepContext& context, const Activations& projected, const Activations& mixed,
                   const StepPositions& positions, const QueryPlace& place) const;

    TransformerGeometry geometry_;
    RotaryLayout rotary_layout_;
    std::size_t layer_;
    std::shared_ptr<const TransformerMatrices> matrices_;
    AlignedBuffer norm1_weight_, norm1_bias_, norm2_weight_, norm2_bias_, layer_scale_1_, layer_scale_2_;
};

}  // namespace mimi

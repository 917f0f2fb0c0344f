#include "model/latent_transformer.h"

#include "kernels/rotary.h"
#include "model/tensor_names.h"

namespace mimi {

LatentTransformer::LatentTransformer(const TransformerGeometry& geometry, std::size_t steps_per_frame, std::string_view side,
                                     const WeightSource& source, StateLayout& layout)
    : geometry_(geometry), frequencies_(rotary_frequencies(geometry.head_dim / 2, geometry.max_period)) {
    layout.set_ring(
        {geometry.layers, geometry.context_steps + steps_per_frame, geometry.dim, geometry.context_steps, steps_per_frame});
    layers_.reserve(geometry.layers);
    for (std::size_t layer = 0; layer < geometry.layers; ++layer) {
        const std::string name = tensor_names::transformer_layer(side, layer);
        const auto read = [&](const char* part) { return source.values(name + part); };
        layers_.emplace_back(geometry,
                             TransformerLayerWeights{
                                 .in_projection = read(".self_attn.in_projs.0.weight"),
                                 .out_projection = read(".self_attn.out_projs.0.weight"),
                                 .mlp_in = read(".linear1.weight"),
                                 .mlp_out = read(".linear2.weight"),
                                 .norm1_weight = read(".norm1.weight"),
                                 .norm1_bias = read(".norm1.bias"),
                                 .norm2_weight = read(".norm2.weight"),
                                 .norm2_bias = read(".norm2.bias"),
                                 .layer_scale_1 = read(".layer_scale_1.scale"),
                                 .layer_scale_2 = read(".layer_scale_2.scale"),
                             },
                             layer);
    }
}

void LatentTransformer::step(const StepContext& context, const Activations& x) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t pairs = frequencies_.size();
    float* cosine = context.scratch.take(x.lanes * x.rows * pairs);
    float* sine = context.scratch.take(x.lanes * x.rows * pairs);
    for (std::size_t lane = 0; lane < x.lanes; ++lane) {
        for (std::size_t t = 0; t < x.rows; ++t) {
            const std::size_t offset = (lane * x.rows + t) * pairs;
            rotary_angles(context.lanes[lane]->position_steps() + t, frequencies_, cosine + offset, sine + offset);
        }
    }
    for (const TransformerLayer& layer : layers_) layer.step(context, x, {cosine, sine});
}

std::size_t LatentTransformer::size_bytes() const {
    std::size_t bytes = 0;
    for (const TransformerLayer& layer : layers_) bytes += layer.size_bytes();
    return bytes;
}

}  // namespace mimi

#include "model/latent_transformer.h"

#include "kernels/rotary.h"
#include "model/tensor_names.h"

namespace mimi {

LatentTransformer::LatentTransformer(const NumericsPolicy& policy, const TransformerGeometry& geometry,
                                     std::size_t steps_per_frame, std::string_view side, const WeightSource& source,
                                     StateLayout& layout)
    : geometry_(geometry),
      attention_view_(policy.attention_view),
      rotary_(policy.ggml_rotary ? RotaryAngles::glibc : RotaryAngles::correctly_rounded, geometry.head_dim / 2,
              geometry.max_period) {
    layout.set_ring({.layers = geometry.layers,
                     .heads = geometry.heads,
                     .head_dim = geometry.head_dim,
                     .context_steps = geometry.context_steps,
                     .steps_per_frame = steps_per_frame});
    layers_.reserve(geometry.layers);
    for (std::size_t layer = 0; layer < geometry.layers; ++layer) {
        const std::string name = tensor_names::transformer_layer(side, layer);
        const auto read = [&](const char* part) { return source.values(name + part); };
        layers_.emplace_back(policy, geometry,
                             TransformerLayerWeights{
                                 .in_projection = source.matrix(name + ".self_attn.in_projs.0.weight"),
                                 .out_projection = source.matrix(name + ".self_attn.out_projs.0.weight"),
                                 .mlp_in = source.matrix(name + ".linear1.weight"),
                                 .mlp_out = source.matrix(name + ".linear2.weight"),
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
    const WindowGeometry window{attention_view_, geometry_.context_steps, x.rows};
    const std::size_t pairs = rotary_.pairs();
    const std::size_t rows = x.lanes * x.rows;
    float* cosine = context.scratch.take(rows * pairs);
    float* sine = context.scratch.take(rows * pairs);
    auto* slots = context.scratch.take_array<std::int32_t>(rows * geometry_.context_steps);
    auto* counts = context.scratch.take_array<std::size_t>(rows);
    context.each_lane([&](std::size_t lane) {
        const std::uint64_t first_position = context.lanes[lane]->position_steps();
        for (std::size_t t = 0; t < x.rows; ++t) {
            const std::size_t row = lane * x.rows + t;
            rotary_.angles(first_position + t, cosine + row * pairs, sine + row * pairs);
            counts[row] = fill_attention_window(window, first_position, t, slots + row * geometry_.context_steps);
        }
    });
    for (const TransformerLayer& layer : layers_) layer.step(context, x, {cosine, sine, slots, counts});
}

std::size_t LatentTransformer::size_bytes() const {
    std::size_t bytes = 0;
    for (const TransformerLayer& layer : layers_) bytes += layer.size_bytes();
    return bytes;
}

}  // namespace mimi

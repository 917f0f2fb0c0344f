#include "model/latent_transformer.h"

#include <string>

#include "kernels/rotary.h"
#include "model/tensor_names.h"

namespace mimi {

namespace {

// In the order in which TransformerMatrices lie.
constexpr const char* matrix_names[] = {".self_attn.in_projs.0.weight", ".self_attn.out_projs.0.weight", ".linear1.weight",
                                        ".linear2.weight"};

// The file's class decides; the contract has all matrices stored alike.
MatrixStorage storage_of(const WeightSource& source, std::string_view side) {
    return source.storage(tensor_names::transformer_layer(side, 0) + matrix_names[0]);
}

TransformerLayerVectors read_vectors(const WeightSource& source, const std::string& layer) {
    return {
        .norm1_weight = source.values(layer + ".norm1.weight"),
        .norm1_bias = source.values(layer + ".norm1.bias"),
        .norm2_weight = source.values(layer + ".norm2.weight"),
        .norm2_bias = source.values(layer + ".norm2.bias"),
        .layer_scale_1 = source.values(layer + ".layer_scale_1.scale"),
        .layer_scale_2 = source.values(layer + ".layer_scale_2.scale"),
    };
}

}  // namespace

LatentTransformer::LatentTransformer(const NumericsPolicy& policy, const TransformerGeometry& geometry,
                                     std::size_t steps_per_frame, std::string_view side, const WeightSource& source,
                                     TensorWindow& window, StateLayout& layout)
    : geometry_(geometry),
      attention_view_(policy.attention_view),
      rotary_(policy.ggml_rotary ? RotaryAngles::glibc : RotaryAngles::correctly_rounded, geometry.head_dim / 2,
              geometry.max_period),
      window_(window),
      matrices_(std::make_shared<const TransformerMatrices>(policy, geometry, storage_of(source, side))) {
    layout.set_ring({.layers = geometry.layers,
                     .heads = geometry.heads,
                     .head_dim = geometry.head_dim,
                     .context_steps = geometry.context_steps,
                     .steps_per_frame = steps_per_frame});
    for (const Linear* matrix :
         {&matrices_->in_projection, &matrices_->out_projection, &matrices_->mlp_in, &matrices_->mlp_out})
        packers_.emplace_back(*matrix);
    layers_.reserve(geometry.layers);
    std::vector<std::vector<WindowPart>> parts(geometry.layers);
    for (std::size_t layer = 0; layer < geometry.layers; ++layer) {
        const std::string name = tensor_names::transformer_layer(side, layer);
        for (std::size_t i = 0; i < packers_.size(); ++i)
            parts[layer].push_back({&source.tensor(name + matrix_names[i]), &packers_[i]});
        layers_.emplace_back(policy, geometry, matrices_, read_vectors(source, name), layer);
    }
    first_layer_ = window.add_cycle(parts);
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
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const TensorWindow::Lease weights = window_.acquire(first_layer_ + i);
        layers_[i].step(context, weights.packed(), x, {cosine, sine, slots, counts});
    }
}

std::size_t LatentTransformer::size_bytes() const {
    std::size_t bytes = 0;
    for (const TransformerLayer& layer : layers_) bytes += layer.size_bytes();
    return bytes;
}

}  // namespace mimi

#include "layers/transformer_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/finite.h"
#include "layers/overflow.h"

namespace mimi {

namespace {

AlignedBuffer owned(const std::vector<float>& values) {
    AlignedBuffer buffer(values.size());
    std::copy(values.begin(), values.end(), buffer.data());
    return buffer;
}

void norm(const KernelTable& kernels, const Activations& x, const AlignedBuffer& weight, const AlignedBuffer& bias,
          const Activations& out, std::size_t lane) {
    for (std::size_t t = 0; t < x.rows; ++t)
        kernels.layer_norm(x.row(lane, static_cast<std::ptrdiff_t>(t)), weight.data(), bias.data(),
                           out.row(lane, static_cast<std::ptrdiff_t>(t)), x.channels);
}

// x += update * scale, two roundings.
void add_scaled(const Activations& x, const Activations& update, const AlignedBuffer& scale, std::size_t lane) {
    for (std::size_t t = 0; t < x.rows; ++t) {
        float* sum = x.row(lane, static_cast<std::ptrdiff_t>(t));
        const float* term = update.row(lane, static_cast<std::ptrdiff_t>(t));
        for (std::size_t c = 0; c < x.channels; ++c) sum[c] = sum[c] + term[c] * scale.data()[c];
    }
}

// Turns the interleaved pairs of one head: three roundings per number, as published.
void rotate(RotaryLayout layout, float* head, std::size_t head_dim, const float* cosine, const float* sine, float* scratch) {
    const std::size_t pairs = head_dim / 2;
    const bool split = layout == RotaryLayout::half_split;
    for (std::size_t j = 0; j < pairs; ++j) {
        const float real = head[2 * j];
        const float imaginary = head[2 * j + 1];
        scratch[split ? j : 2 * j] = real * cosine[j] - imaginary * sine[j];
        scratch[split ? pairs + j : 2 * j + 1] = real * sine[j] + imaginary * cosine[j];
    }
    std::copy_n(scratch, head_dim, head);
}

}  // namespace

TransformerMatrices::TransformerMatrices(const NumericsPolicy& policy, const TransformerGeometry& geometry,
                                         MatrixStorage stored)
    : in_projection(policy, stored, 3 * geometry.dim, geometry.dim),
      out_projection(policy, stored, geometry.dim, geometry.dim),
      mlp_in(policy, stored, geometry.mlp_width, geometry.dim),
      mlp_out(policy, stored, geometry.dim, geometry.mlp_width) {}

TransformerLayer::TransformerLayer(const NumericsPolicy& policy, const TransformerGeometry& geometry,
                                   std::shared_ptr<const TransformerMatrices> matrices, const TransformerLayerVectors& vectors,
                                   std::size_t layer)
    : geometry_(geometry),
      rotary_layout_(policy.rotary_layout),
      layer_(layer),
      matrices_(std::move(matrices)),
      norm1_weight_(owned(vectors.norm1_weight)),
      norm1_bias_(owned(vectors.norm1_bias)),
      norm2_weight_(owned(vectors.norm2_weight)),
      norm2_bias_(owned(vectors.norm2_bias)),
      layer_scale_1_(owned(vectors.layer_scale_1)),
      layer_scale_2_(owned(vectors.layer_scale_2)) {}

void TransformerLayer::step(const StepContext& context, const std::byte* packed, const Activations& x,
                            const StepPositions& positions) const {
    const std::byte* packed_out = packed + matrices_->in_projection.packed_bytes();
    const std::byte* packed_mlp_in = packed_out + matrices_->out_projection.packed_bytes();
    const std::byte* packed_mlp_out = packed_mlp_in + matrices_->mlp_in.packed_bytes();
    const ScratchArena::Mark mark(context.scratch);
    const Activations normal = context.take(x.rows, geometry_.dim);
    const Activations update = context.take(x.rows, geometry_.dim);
    const Activations mixed = context.take(x.rows, geometry_.dim);
    const Activations hidden = context.take(x.rows, geometry_.mlp_width);
    context.each_lane([&](std::size_t lane) {
        const StreamState& state = *context.lanes[lane];
        for (std::size_t t = 0; t < x.rows; ++t) state.prefetch_rings(layer_, state.position_steps() + t);
        norm(context.kernels, x, norm1_weight_, norm1_bias_, normal, lane);
    });
    attend(context, packed, normal, mixed, positions);
    matrices_->out_projection.step(context, packed_out, mixed, update);
    context.each_lane([&](std::size_t lane) {
        add_scaled(x, update, layer_scale_1_, lane);
        norm(context.kernels, x, norm2_weight_, norm2_bias_, normal, lane);
    });
    matrices_->mlp_in.step(context, packed_mlp_in, normal, hidden);
    context.each_lane(
        [&](std::size_t lane) { context.kernels.gelu(hidden.row(lane, 0), hidden.row(lane, 0), hidden.row_floats()); });
    matrices_->mlp_out.step(context, packed_mlp_out, hidden, update);
    context.each_lane([&](std::size_t lane) { add_scaled(x, update, layer_scale_2_, lane); });
}

void TransformerLayer::attend(const StepContext& context, const std::byte* packed, const Activations& normal,
                              const Activations& mixed, const StepPositions& positions) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations projected = context.take(normal.rows, 3 * geometry_.dim);
    const Activations turned = context.take(1, geometry_.head_dim);
    const Activations weights = context.take(1, count_blocks(geometry_.context_steps) * block_outputs);
    matrices_->in_projection.step(context, packed, normal, projected);
    context.each_lane([&](std::size_t lane) {
        remember(context, projected, positions, lane, turned.row(lane, 0));
        // Both rows of a frame look through one head's ring while it is in cache.
        for (std::size_t head = 0; head < geometry_.heads; ++head)
            for (std::size_t t = 0; t < normal.rows; ++t)
                look_back(context, projected, mixed, positions, {lane, head, t, weights.row(lane, 0)});
    });
}

void TransformerLayer::remember(const StepContext& context, const Activations& projected, const StepPositions& positions,
                                std::size_t lane, float* turned) const {
    const std::size_t pairs = geometry_.head_dim / 2;
    const std::size_t slots = geometry_.context_steps + projected.rows;
    StreamState& state = *context.lanes[lane];
    for (std::size_t t = 0; t < projected.rows; ++t) {
        float* row = projected.row(lane, static_cast<std::ptrdiff_t>(t));
        const std::size_t angles = (lane * projected.rows + t) * pairs;
        // Queries and keys of every head lie side by side.
        for (std::size_t head = 0; head < 2 * geometry_.heads; ++head)
            rotate(rotary_layout_, row + head * geometry_.head_dim, geometry_.head_dim, positions.cosine + angles,
                   positions.sine + angles, turned);
        if (context.kernels.round_attention_operand) context.kernels.round_attention_operand(row, 3 * geometry_.dim);
        if (!all_finite(row + geometry_.dim, 2 * geometry_.dim)) refuse_overflow("state", lane);
        const std::size_t slot = static_cast<std::size_t>((state.position_steps() + t) % slots);
        for (std::size_t head = 0; head < geometry_.heads; ++head) {
            const float* key = row + geometry_.dim + head * geometry_.head_dim;
            std::copy_n(key, geometry_.head_dim, state.keys(layer_, head) + slot * geometry_.head_dim);
            std::copy_n(key + geometry_.dim, geometry_.head_dim, state.values(layer_, head) + slot * geometry_.head_dim);
        }
    }
}

void TransformerLayer::look_back(const StepContext& context, const Activations& projected, const Activations& mixed,
                                 const StepPositions& positions, const QueryPlace& place) const {
    StreamState& state = *context.lanes[place.lane];
    const std::size_t row = place.lane * projected.rows + place.t;
    const bool head_is_done = place.t + 1 == projected.rows && place.head + 1 < geometry_.heads;
    const std::size_t offset = place.head * geometry_.head_dim;
    context.kernels.attention({
        .query = projected.row(place.lane, static_cast<std::ptrdiff_t>(place.t)) + offset,
        .keys = state.keys(layer_, place.head),
        .values = state.values(layer_, place.head),
        .next_keys = head_is_done ? state.keys(layer_, place.head + 1) : nullptr,
        .slot_stride = geometry_.head_dim,
        .slots = positions.slots + row * geometry_.context_steps,
        .count = positions.counts[row],
        .head_dim = geometry_.head_dim,
        .scale = 1.0f / std::sqrt(static_cast<float>(geometry_.head_dim)),
        .weights = place.weights,
        .out = mixed.row(place.lane, static_cast<std::ptrdiff_t>(place.t)) + offset,
    });
}

}  // namespace mimi

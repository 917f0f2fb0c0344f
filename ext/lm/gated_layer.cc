#include "lm/gated_layer.h"

#include <algorithm>
#include <cmath>

#include "base/finite.h"
#include "layers/overflow.h"

namespace mimi {

namespace {

AlignedBuffer owned(const std::vector<float>& values) {
    AlignedBuffer buffer(values.size());
    std::copy(values.begin(), values.end(), buffer.data());
    return buffer;
}

void add(const Activations& x, const Activations& update, std::size_t lane) {
    float* sum = x.row(lane, 0);
    const float* term = update.row(lane, 0);
    for (std::size_t c = 0; c < x.channels; ++c) sum[c] += term[c];
}

// Three roundings per number.
void rotate(RotaryPairs pairing, float* head, std::size_t head_dim, const float* cosine, const float* sine) {
    const std::size_t pairs = head_dim / 2;
    const std::size_t step = pairing == RotaryPairs::interleaved ? 2 : 1;
    const std::size_t apart = pairing == RotaryPairs::interleaved ? 1 : pairs;
    for (std::size_t j = 0; j < pairs; ++j) {
        float& real = head[step * j];
        float& imaginary = head[step * j + apart];
        const float turned = real * cosine[j] - imaginary * sine[j];
        imaginary = real * sine[j] + imaginary * cosine[j];
        real = turned;
    }
}

}  // namespace

RmsNorm::RmsNorm(const LmTensors& tensors, const std::string& name) : weight_(owned(tensors.values(name))) {}

void RmsNorm::run(const KernelTable& kernels, const float* in, float* out) const {
    kernels.rms_norm(in, weight_.data(), out, weight_.size());
}

LayerNormWeights::LayerNormWeights(const LmTensors& tensors, const std::string& name)
    : weight_(owned(tensors.values(name + ".weight"))), bias_(owned(tensors.values(name + ".bias"))) {}

void LayerNormWeights::run(const KernelTable& kernels, const float* in, float* out) const {
    kernels.layer_norm(in, weight_.data(), bias_.data(), out, weight_.size());
}

void GatedMatrices::add_attention(const LmTensors& tensors, const std::string& path, std::size_t set, MatrixBlock& block) {
    const std::string index = std::to_string(set);
    attention_in = block.add(tensors.tensor(path + "self_attn.in_projs." + index + ".weight"));
    attention_out = block.add(tensors.tensor(path + "self_attn.out_projs." + index + ".weight"));
}

void GatedMatrices::add_gating(const LmTensors& tensors, const std::string& path, std::size_t set, MatrixBlock& block) {
    const std::string index = std::to_string(set);
    gating_in = block.add(tensors.tensor(path + "gating." + index + ".linear_in.weight"));
    gating_out = block.add(tensors.tensor(path + "gating." + index + ".linear_out.weight"));
}

void look_back(const StepContext& context, const GatedTransformerGeometry& geometry, const Activations& query,
               const KeyView* views, const Activations& mixed) {
    const ScratchArena::Mark mark(context.scratch);
    std::size_t most = 0;
    for (std::size_t lane = 0; lane < query.lanes; ++lane) most = std::max(most, views[lane].count);
    const std::size_t room = count_blocks(most) * block_outputs;
    float* weights = context.scratch.take(query.lanes * geometry.heads * room);
    const std::size_t repeat = geometry.heads / geometry.key_heads;
    context.pool.run_ranges(query.lanes * geometry.heads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t lane = i / geometry.heads, head = i % geometry.heads;
            const KeyView& view = views[lane];
            context.kernels.attention({
                .query = query.row(lane, 0) + head * geometry.head_dim,
                .keys = view.keys + head / repeat * view.head_floats,
                .values = view.values + head / repeat * view.head_floats,
                .next_keys = nullptr,
                .slot_stride = geometry.head_dim,
                .slots = view.slots,
                .count = view.count,
                .head_dim = geometry.head_dim,
                .scale = 1.0f / std::sqrt(static_cast<float>(geometry.head_dim)),
                .weights = weights + i * room,
                .out = mixed.row(lane, 0) + head * geometry.head_dim,
            });
        }
    });
}

GatedLayer::GatedLayer(const LmTensors& tensors, const GatedTransformerGeometry& geometry, const std::string& path)
    : geometry_(geometry), norm1_(tensors, path + "norm1.alpha"), norm2_(tensors, path + "norm2.alpha") {}

void GatedLayer::attend(const StepContext& context, const MatrixBlock::Visit& visit, const GatedMatrices& matrices,
                        const Activations& x, const AttentionPlace* places, const RotaryAngle& angle,
                        std::size_t streams) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations normal = context.take(1, geometry_.dim);
    const Activations projected = context.take(1, geometry_.input_rows());
    const Activations mixed = context.take(1, geometry_.dim);
    context.each_lane([&](std::size_t lane) { norm1_.run(context.kernels, x.row(lane, 0), normal.row(lane, 0)); });
    visit.multiply(matrices.attention_in, context, normal, projected);
    auto* views = context.scratch.take_array<KeyView>(streams);
    const std::size_t pairs = geometry_.head_dim / 2;
    // Position by position: where the ring comes round, a later one overwrites what an earlier one sees.
    for (std::size_t first = 0; first < x.lanes; first += streams) {
        context.pool.run(streams, [&](std::size_t stream) {
            const std::size_t lane = first + stream, turned = lane * pairs;
            const bool turns = angle.cosine != nullptr;
            remember(projected.row(lane, 0), places[lane], turns ? angle.cosine + turned : nullptr,
                     turns ? angle.sine + turned : nullptr, stream);
            views[stream] = places[lane].seen;
        });
        look_back(context, geometry_, some_lanes(projected, first, streams), views, some_lanes(mixed, first, streams));
    }
    visit.multiply(matrices.attention_out, context, mixed, normal);
    context.each_lane([&](std::size_t lane) { add(x, normal, lane); });
}

void GatedLayer::remember(float* row, const AttentionPlace& place, const float* cosine, const float* sine,
                          std::size_t stream) const {
    float* key = row + geometry_.dim;
    float* value = key + geometry_.key_dim();
    // Queries and keys of every head lie side by side.
    if (cosine != nullptr)
        for (std::size_t head = 0; head < geometry_.heads + geometry_.key_heads; ++head)
            rotate(geometry_.rotary, row + head * geometry_.head_dim, geometry_.head_dim, cosine, sine);
    if (!all_finite(key, 2 * geometry_.key_dim())) refuse_overflow("state", stream);
    for (std::size_t head = 0; head < geometry_.key_heads; ++head) {
        const std::size_t at = head * place.seen.head_floats + place.slot * geometry_.head_dim;
        std::copy_n(key + head * geometry_.head_dim, geometry_.head_dim, place.keys + at);
        std::copy_n(value + head * geometry_.head_dim, geometry_.head_dim, place.values + at);
    }
}

void GatedLayer::gate(const StepContext& context, const MatrixBlock::Visit& visit, const GatedMatrices& matrices,
                      const Activations& x) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t width = geometry_.gating_width;
    const Activations normal = context.take(1, geometry_.dim);
    const Activations both = context.take(1, 2 * width);
    const Activations gated = context.take(1, width);
    context.each_lane([&](std::size_t lane) { norm2_.run(context.kernels, x.row(lane, 0), normal.row(lane, 0)); });
    visit.multiply(matrices.gating_in, context, normal, both);
    context.each_lane([&](std::size_t lane) {
        context.kernels.silu_gate(both.row(lane, 0), both.row(lane, 0) + width, gated.row(lane, 0), width);
    });
    visit.multiply(matrices.gating_out, context, gated, normal);
    context.each_lane([&](std::size_t lane) { add(x, normal, lane); });
}

}  // namespace mimi

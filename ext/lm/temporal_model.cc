#include "lm/temporal_model.h"

#include <algorithm>

#include "base/finite.h"
#include "layers/attention_window.h"
#include "layers/overflow.h"
#include "lm/choose_token.h"

namespace mimi {

namespace {

TokenEmbedding::Form text_form(const LmGeometry& geometry) {
    return geometry.two_text_streams ? TokenEmbedding::Form::muxed : TokenEmbedding::Form::plain;
}

std::string layer_path(std::size_t index) {
    return "transformer.layers." + std::to_string(index) + ".";
}

}  // namespace

TemporalModel::Layer::Layer(const LmTensors& tensors, const LmGeometry& geometry, std::size_t index, MatrixBlock& once)
    : layer(tensors, geometry.temporal, layer_path(index)), stage("layers." + std::to_string(index)) {
    // In the order of their use.
    matrices.add_attention(tensors, layer_path(index), 0, block);
    if (geometry.cross_attention)
        cross = std::make_unique<CrossAttention>(tensors, geometry.temporal, layer_path(index), index, block, once);
    matrices.add_gating(tensors, layer_path(index), 0, block);
}

TemporalModel::TemporalModel(const LmTensors& tensors, const LmGeometry& geometry, StateLayout& layout)
    : geometry_(geometry),
      rotary_(RotaryAngles::rounded_exponents, geometry.temporal.head_dim / 2, geometry.temporal.max_period),
      text_embedding_(tensors, "text_emb", text_form(geometry), front_),
      provider_(tensors, geometry, once_),
      out_norm_(tensors, "out_norm.alpha") {
    layout.set_ring({.layers = geometry.temporal.layers,
                     .heads = geometry.temporal.key_heads,
                     .head_dim = geometry.temporal.head_dim,
                     .context_steps = geometry.temporal.context_steps,
                     .steps_per_frame = 1});
    for (std::size_t channel = 0; channel < geometry.audio_channels; ++channel)
        audio_embeddings_.emplace_back(tensors, "emb." + std::to_string(channel), TokenEmbedding::Form::plain, front_);
    for (std::size_t i = 0; i < geometry.temporal.layers; ++i) layers_.emplace_back(tensors, geometry, i, once_);
    text_head_ = head_.add(tensors.tensor("text_linear.weight"));
    for (std::size_t i = 0; i < geometry.extra_heads; ++i)
        extra_heads_.push_back(extra_.add(tensors.tensor("extra_heads." + std::to_string(i) + ".weight")));
}

std::vector<MatrixBlock*> TemporalModel::blocks() {
    std::vector<MatrixBlock*> blocks;
    if (!front_.empty()) blocks.push_back(&front_);
    for (Layer& layer : layers_) blocks.push_back(&layer.block);
    blocks.push_back(&head_);
    return blocks;
}

std::vector<MatrixBlock*> TemporalModel::last_blocks() {
    return extra_.empty() ? std::vector<MatrixBlock*>() : std::vector<MatrixBlock*>{&extra_};
}

std::vector<EmbeddingTable*> TemporalModel::tables() {
    std::vector<EmbeddingTable*> tables;
    for (TokenEmbedding& embedding : audio_embeddings_) tables.push_back(&embedding.table());
    tables.push_back(&text_embedding_.table());
    return tables;
}

std::vector<MatrixBlock*> TemporalModel::once_blocks() {
    return once_.empty() ? std::vector<MatrixBlock*>() : std::vector<MatrixBlock*>{&once_};
}

void TemporalModel::embed(const StepContext& context, TensorWindow& window, const Input& input, const Activations& x) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations row = context.take(1, x.channels);
    auto* ids = context.scratch.take_array<std::int32_t>(x.lanes);
    const auto look_up = [&](const TokenEmbedding& embedding, std::size_t channel, const Activations& out) {
        for (std::size_t lane = 0; lane < x.lanes; ++lane)
            ids[lane] = input.sums[lane] != nullptr ? zero_token : input.tokens[lane * geometry_.channels() + channel];
        embedding.look_up(context, MatrixBlock::Visit(front_, window), ids, out);
    };
    const auto add = [&](std::size_t lane, const float* term) {
        for (std::size_t c = 0; c < x.channels; ++c) x.row(lane, 0)[c] += term[c];
    };
    look_up(audio_embeddings_[0], 1, x);
    for (std::size_t i = 1; i < audio_embeddings_.size(); ++i) {
        look_up(audio_embeddings_[i], 1 + i, row);
        for (std::size_t lane = 0; lane < x.lanes; ++lane) add(lane, row.row(lane, 0));
    }
    look_up(text_embedding_, 0, row);
    for (std::size_t lane = 0; lane < x.lanes; ++lane) {
        add(lane, row.row(lane, 0));
        if (!input.conditions[lane]->sum.empty()) add(lane, input.conditions[lane]->sum.data());
        if (input.sums[lane] != nullptr) std::copy_n(input.sums[lane], x.channels, x.row(lane, 0));
    }
}

void TemporalModel::find_places(const StepContext& context, std::size_t streams, AttentionPlace* places, float* cosine,
                                float* sine, std::int32_t* slots) const {
    const std::size_t pairs = rotary_.pairs(), steps = geometry_.temporal.context_steps;
    const WindowGeometry ring{AttentionView::causal_window, steps, 1};
    context.each_lane([&](std::size_t lane) {
        const std::uint64_t position = context.lanes[lane]->position_steps() + lane / streams;
        rotary_.angles(position, cosine + lane * pairs, sine + lane * pairs);
        const std::size_t count = fill_attention_window(ring, position, 0, slots + lane * steps);
        places[lane].slot = static_cast<std::size_t>(position % ring.slots());
        places[lane].seen = {nullptr, nullptr, ring.slots() * geometry_.temporal.head_dim, slots + lane * steps, count};
    });
}

void TemporalModel::step(const StepContext& context, TensorWindow& window, const Input& input, const Activations& hidden,
                         const Activations& text_logits) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t lanes = context.lanes.size();
    const Activations x = context.take(1, geometry_.temporal.dim);
    embed(context, window, input, x);
    context.observe("emb", x);
    float* cosine = context.scratch.take(lanes * rotary_.pairs());
    float* sine = context.scratch.take(lanes * rotary_.pairs());
    auto* places = context.scratch.take_array<AttentionPlace>(lanes);
    find_places(context, input.streams, places, cosine, sine,
                context.scratch.take_array<std::int32_t>(lanes * geometry_.temporal.context_steps));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            AttentionPlace& place = places[lane];
            place.seen.keys = place.keys = context.lanes[lane]->keys(i, 0);
            place.seen.values = place.values = context.lanes[lane]->values(i, 0);
        }
        const Layer& layer = layers_[i];
        const MatrixBlock::Visit visit(layer.block, window);
        layer.layer.attend(context, visit, layer.matrices, x, places, {cosine, sine}, input.streams);
        if (layer.cross) layer.cross->attend(context, visit, input.conditions, x);
        layer.layer.gate(context, visit, layer.matrices, x);
        context.observe(layer.stage.c_str(), x);
    }
    context.each_lane([&](std::size_t lane) { out_norm_.run(context.kernels, x.row(lane, 0), hidden.row(lane, 0)); });
    context.observe("hidden", hidden);
    MatrixBlock::Visit(head_, window).multiply(text_head_, context, hidden, text_logits);
    context.observe("text_logits", text_logits);
}

void TemporalModel::extra_heads(const StepContext& context, TensorWindow& window, const Activations& hidden,
                                const Activations& out) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t width = geometry_.extra_head_dim;
    const Activations logits = context.take(1, width);
    const MatrixBlock::Visit visit(extra_, window);
    for (std::size_t head = 0; head < extra_heads_.size(); ++head) {
        visit.multiply(extra_heads_[head], context, hidden, logits);
        for (std::size_t lane = 0; lane < out.lanes; ++lane) {
            if (!all_finite(logits.row(lane, 0), width)) refuse_overflow("extra heads", lane);
            softmax(logits.row(lane, 0), width, out.row(lane, 0) + head * width);
        }
    }
    context.observe("extra_heads", out);
}

Conditions TemporalModel::prepare(const StepContext& context, TensorWindow& window, const ConditionRequest& request) const {
    Conditions conditions;
    if (!once_.empty()) {
        const MatrixBlock::Visit once(once_, window);
        conditions = provider_.provide(context, &once, request);
    }
    prepare_keys(context, window, conditions);
    return conditions;
}

void TemporalModel::prepare_keys(const StepContext& context, TensorWindow& window, Conditions& conditions) const {
    if (!geometry_.cross_attention) return;
    const std::size_t rows = conditions.cross_rows;
    conditions.keys_values = AlignedBuffer(2 * layers_.size() * rows * geometry_.temporal.dim);
    conditions.slots.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) conditions.slots[i] = static_cast<std::int32_t>(i);
    const MatrixBlock::Visit once(once_, window);
    for (const Layer& layer : layers_) layer.cross->prepare(context, once, conditions);
}

std::size_t TemporalModel::step_bytes() const {
    std::size_t bytes = front_.packed_bytes() + head_.packed_bytes();
    for (const Layer& layer : layers_) bytes += layer.block.packed_bytes();
    return bytes;
}

std::size_t TemporalModel::size_bytes() const {
    std::size_t bytes = provider_.size_bytes() + out_norm_.size_bytes();
    for (const Layer& layer : layers_) bytes += layer.layer.size_bytes() + (layer.cross ? layer.cross->size_bytes() : 0);
    return bytes;
}

}  // namespace mimi

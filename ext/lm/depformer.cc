#include "lm/depformer.h"

#include <algorithm>

namespace mimi {

namespace {

std::string layer_path(std::size_t layer) {
    return "depformer.layers." + std::to_string(layer) + ".";
}

std::string embedding_name(std::size_t level) {
    return level == 0 ? "depformer_text_emb" : "depformer_emb." + std::to_string(level - 1);
}

TokenEmbedding::Form embedding_form(const LmGeometry& geometry, std::size_t level) {
    if (level == 0 && geometry.two_text_streams) return TokenEmbedding::Form::muxed;
    return geometry.low_rank > 0 ? TokenEmbedding::Form::low_rank : TokenEmbedding::Form::plain;
}

}  // namespace

Depformer::WeightSet::WeightSet(const LmTensors& tensors, const LmGeometry& geometry, std::size_t set) {
    const std::size_t input_set = geometry.input_set_count == 1 ? 0 : set;
    input = block.add(tensors.tensor("depformer_in." + std::to_string(input_set) + ".weight"));
    for (std::size_t layer = 0; layer < geometry.depformer.layers; ++layer) {
        GatedMatrices& matrices = layers.emplace_back();
        matrices.add_attention(tensors, layer_path(layer), set, block);
        matrices.add_gating(tensors, layer_path(layer), set, block);
    }
}

Depformer::Level::Level(const LmTensors& tensors, const LmGeometry& geometry, std::size_t level)
    : embedding(tensors, embedding_name(level), embedding_form(geometry, level), embedding_block),
      head(head_block.add(tensors.tensor("linears." + std::to_string(level) + ".weight"))),
      in_stage("dep_in." + std::to_string(level)),
      out_stage("dep_out." + std::to_string(level)),
      logits_stage("audio_logits." + std::to_string(level)) {
    if (geometry.depformer_norm) norm = std::make_unique<LayerNormWeights>(tensors, "depformer_norms." + std::to_string(level));
}

Depformer::Depformer(const LmTensors& tensors, const LmGeometry& geometry) : geometry_(geometry) {
    const auto own = geometry.weight_sets.begin() + static_cast<std::ptrdiff_t>(geometry.own_levels);
    const std::size_t sets = 1 + *std::max_element(geometry.weight_sets.begin(), own);
    for (std::size_t set = 0; set < sets; ++set) sets_.emplace_back(tensors, geometry, set);
    for (std::size_t level = 0; level < geometry.own_levels; ++level) levels_.emplace_back(tensors, geometry, level);
    for (std::size_t layer = 0; layer < geometry.depformer.layers; ++layer)
        layers_.emplace_back(tensors, geometry.depformer, layer_path(layer));
    for (std::size_t level = 0; level < geometry.own_levels; ++level) slots_.push_back(static_cast<std::int32_t>(level));
}

std::vector<MatrixBlock*> Depformer::blocks() {
    std::vector<MatrixBlock*> blocks;
    std::size_t next_set = 0;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        if (!levels_[level].embedding_block.empty()) blocks.push_back(&levels_[level].embedding_block);
        while (next_set <= geometry_.weight_sets[level]) blocks.push_back(&sets_[next_set++].block);
        blocks.push_back(&levels_[level].head_block);
    }
    return blocks;
}

std::vector<EmbeddingTable*> Depformer::tables() {
    std::vector<EmbeddingTable*> tables;
    for (Level& level : levels_) tables.push_back(&level.embedding.table());
    return tables;
}

// Keys and values of one step: [layer][lane][keys, values][key head][level][head_dim].
AttentionPlace Depformer::place(float* memory, std::size_t lane, std::size_t lanes, std::size_t layer,
                                std::size_t level) const {
    const std::size_t half = geometry_.own_levels * geometry_.depformer.key_dim();
    float* keys = memory + (layer * lanes + lane) * 2 * half;
    const std::size_t head_floats = geometry_.own_levels * geometry_.depformer.head_dim;
    return {keys, keys + half, level, {keys, keys + half, head_floats, slots_.data(), level + 1}};
}

void Depformer::run_layers(const StepContext& context, TensorWindow& window, std::size_t level, const Activations& hidden,
                           float* memory, const Activations& z) const {
    const ScratchArena::Mark mark(context.scratch);
    const WeightSet& set = sets_[geometry_.weight_sets[level]];
    const MatrixBlock::Visit visit(set.block, window);
    const Activations input = context.take(1, z.channels);
    visit.multiply(set.input, context, hidden, input);
    // The projection first: z holds the embedding.
    context.each_lane([&](std::size_t lane) {
        for (std::size_t c = 0; c < z.channels; ++c) z.row(lane, 0)[c] = input.row(lane, 0)[c] + z.row(lane, 0)[c];
    });
    context.observe(levels_[level].in_stage.c_str(), z);
    auto* places = context.scratch.take_array<AttentionPlace>(z.lanes);
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        for (std::size_t lane = 0; lane < z.lanes; ++lane) places[lane] = place(memory, lane, z.lanes, layer, level);
        layers_[layer].attend(context, visit, set.layers[layer], z, places, {}, z.lanes);
        layers_[layer].gate(context, visit, set.layers[layer], z);
    }
    context.observe(levels_[level].out_stage.c_str(), z);
}

void Depformer::step(const StepContext& context, TensorWindow& window, const Activations& hidden, const std::int32_t* text,
                     CodeChooser& chooser) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t lanes = context.lanes.size();
    const Activations z = context.take(1, geometry_.depformer.dim);
    const Activations logits = context.take(1, geometry_.codebook_entries);
    float* memory = context.scratch.take(layers_.size() * lanes * 2 * geometry_.own_levels * geometry_.depformer.key_dim());
    auto* previous = context.scratch.take_array<std::int32_t>(lanes);
    std::copy_n(text, lanes, previous);
    for (std::size_t level = 0; level < levels_.size(); ++level) {
        const Level& own = levels_[level];
        {
            const MatrixBlock::Visit visit(own.embedding_block, window);
            own.embedding.look_up(context, visit, previous, z);
        }
        run_layers(context, window, level, hidden, memory, z);
        if (own.norm)
            context.each_lane([&](std::size_t lane) { own.norm->run(context.kernels, z.row(lane, 0), z.row(lane, 0)); });
        MatrixBlock::Visit(own.head_block, window).multiply(own.head, context, z, logits);
        context.observe(own.logits_stage.c_str(), logits);
        chooser.choose(level, logits, previous);
    }
}

std::size_t Depformer::step_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t level = 0; level < levels_.size(); ++level)
        bytes += levels_[level].embedding_block.packed_bytes() + levels_[level].head_block.packed_bytes() +
                 sets_[geometry_.weight_sets[level]].block.packed_bytes();
    return bytes;
}

std::size_t Depformer::size_bytes() const {
    std::size_t bytes = 0;
    for (const Level& level : levels_) bytes += level.norm ? level.norm->size_bytes() : 0;
    for (const GatedLayer& layer : layers_) bytes += layer.size_bytes();
    return bytes;
}

}  // namespace mimi

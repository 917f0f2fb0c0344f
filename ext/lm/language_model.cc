#include "lm/language_model.h"

#include <algorithm>
#include <vector>

#include "kernels/dispatch.h"
#include "weights/weight_file.h"

namespace mimi {

namespace {

using Blocks = std::vector<MatrixBlock*>;

void append(Blocks& blocks, const Blocks& more) {
    blocks.insert(blocks.end(), more.begin(), more.end());
}

// Everything a step visits, in order.
Blocks step_blocks(TemporalModel& temporal, Depformer* depformer) {
    Blocks blocks = temporal.blocks();
    if (depformer != nullptr) append(blocks, depformer->blocks());
    append(blocks, temporal.last_blocks());
    return blocks;
}

// One cycle of the window, in pieces of at most `most_bytes`; returns how many there are.
std::size_t add_cycle(TensorWindow& window, const Blocks& blocks, std::size_t most_bytes, std::size_t first_layer) {
    std::vector<std::vector<WindowPart>> layers;
    for (MatrixBlock* block : blocks) block->cut(most_bytes, first_layer + layers.size(), layers);
    if (!layers.empty()) window.add_cycle(layers);
    return layers.size();
}

// A slot has room for the largest piece. Cut at the largest matrix, slots are as small as can be, and pieces not needlessly so.
std::size_t add_cycles(TensorWindow& window, TemporalModel& temporal, Depformer* depformer) {
    const Blocks step = step_blocks(temporal, depformer), once = temporal.once_blocks();
    std::size_t most = 0;
    for (const Blocks* blocks : {&step, &once})
        for (const MatrixBlock* block : *blocks) most = std::max(most, block->largest_matrix_bytes());
    const std::size_t step_layers = add_cycle(window, step, most, 0);
    add_cycle(window, once, most, step_layers);
    return step_layers;
}

std::vector<EmbeddingTable*> tables_of(TemporalModel& temporal, Depformer* depformer) {
    std::vector<EmbeddingTable*> tables = temporal.tables();
    if (depformer == nullptr) return tables;
    const std::vector<EmbeddingTable*> more = depformer->tables();
    tables.insert(tables.end(), more.begin(), more.end());
    return tables;
}

WindowPlan plan_for(const TensorWindow& window, TemporalModel& temporal, Depformer* depformer, const WindowOptions& options) {
    std::size_t table_bytes = 0;
    for (const EmbeddingTable* table : tables_of(temporal, depformer)) table_bytes += table->size_bytes();
    const std::size_t fixed_bytes = temporal.size_bytes() + (depformer != nullptr ? depformer->size_bytes() : 0);
    return window.plan(fixed_bytes, options, table_bytes);
}

}  // namespace

std::shared_ptr<const LanguageModel> LanguageModel::open(const std::string& path, const LanguageModelOptions& options) {
    const GgufReader file(path);
    return std::make_shared<const LanguageModel>(file, options);
}

LanguageModel::LanguageModel(const GgufReader& file, const LanguageModelOptions& options)
    : geometry_(read_lm_geometry(file)),
      name_(file.text("general.name").value_or("")),
      conditioners_(file.text("moshi.lm.conditioners").value_or("")),
      kernels_(choose_kernels(options.isa).kyutai),
      pool_(checked_threads(options.threads)) {
    const LmTensors tensors(file, geometry_);
    weight_class_ = tensor_type_name(tensors.tensor("transformer.layers.0.self_attn.in_projs.0.weight").type);
    const auto layout = std::make_shared<StateLayout>();
    temporal_ = std::make_unique<TemporalModel>(tensors, geometry_, *layout);
    layout_ = layout;
    if (geometry_.own_levels > 0) depformer_ = std::make_unique<Depformer>(tensors, geometry_);
    step_layers_ = add_cycles(window_, *temporal_, depformer_.get());
    const WindowPlan plan = plan_for(window_, *temporal_, depformer_.get(), options.window);
    load_tables(file, plan.tables_stay);
    const PageCache page_cache = plan.streams() ? PageCache::bypass : PageCache::keep;
    window_.bind(std::make_unique<WeightFile>(file.path(), file.identity(), page_cache), plan);
}

void LanguageModel::load_tables(const GgufReader& file, bool stay) {
    if (!stay)
        rows_ = std::make_unique<const RowReader>(
            std::make_unique<const WeightFile>(file.path(), file.identity(), PageCache::sparse));
    for (EmbeddingTable* table : tables_of(*temporal_, depformer_.get())) {
        if (stay)
            table->keep(file);
        else
            table->leave_in_file(file, *rows_);
    }
}

WindowPlan plan_language_window(const GgufReader& file, const WindowOptions& options) {
    const LmGeometry geometry = read_lm_geometry(file);
    const LmTensors tensors(file, geometry);
    StateLayout layout;
    TemporalModel temporal(tensors, geometry, layout);
    std::unique_ptr<Depformer> depformer;
    if (geometry.own_levels > 0) depformer = std::make_unique<Depformer>(tensors, geometry);
    TensorWindow window;
    add_cycles(window, temporal, depformer.get());
    return plan_for(window, temporal, depformer.get(), options);
}

}  // namespace mimi

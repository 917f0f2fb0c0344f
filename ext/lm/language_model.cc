#include "lm/language_model.h"

#include <vector>

#include "kernels/dispatch.h"
#include "weights/weight_file.h"

namespace mimi {

namespace {

void add_blocks(TensorWindow& window, const std::vector<MatrixBlock*>& blocks) {
    if (blocks.empty()) return;
    std::vector<std::vector<WindowPart>> parts;
    for (const MatrixBlock* block : blocks) parts.push_back(block->parts());
    const std::size_t first = window.add_cycle(parts);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i]->set_layer(first + i);
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
    std::vector<MatrixBlock*> blocks = temporal_->blocks();
    if (depformer_)
        for (MatrixBlock* block : depformer_->blocks()) blocks.push_back(block);
    add_blocks(window_, blocks);
    add_blocks(window_, temporal_->once_blocks());
    const std::size_t fixed_bytes = temporal_->size_bytes() + (depformer_ ? depformer_->size_bytes() : 0);
    const WindowPlan plan = window_.plan(fixed_bytes, options.window);
    const PageCache page_cache = plan.streams() ? PageCache::bypass : PageCache::keep;
    window_.bind(std::make_unique<WeightFile>(file.path(), file.identity(), page_cache), plan);
}

}  // namespace mimi

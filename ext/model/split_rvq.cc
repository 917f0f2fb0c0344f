#include "model/split_rvq.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tensor_names.h"

namespace mimi {

namespace {

ResidualVq load_half(const NumericsPolicy& policy, const RvqGeometry& geometry, std::string_view half, std::size_t levels,
                     const WeightSource& source) {
    const std::string name = tensor_names::rvq(half);
    std::vector<Codebook> codebooks;
    for (std::size_t layer = 0; layer < levels; ++layer)
        codebooks.emplace_back(source.codewords(tensor_names::codebook(half, layer)), geometry.codebook_entries,
                               geometry.codebook_dim);
    const MatrixForm form{.conv_operands = true};
    return {Linear(policy, source.matrix(name + ".input_proj.weight"), geometry.codebook_dim, geometry.dim, form),
            Linear(policy, source.matrix(name + ".output_proj.weight"), geometry.dim, geometry.codebook_dim, form),
            std::move(codebooks)};
}

}  // namespace

SplitRvq::SplitRvq(const NumericsPolicy& policy, const RvqGeometry& geometry, const WeightSource& source)
    : geometry_(geometry),
      semantic_(load_half(policy, geometry, "rvq_first", geometry.semantic_levels, source)),
      acoustic_(load_half(policy, geometry, "rvq_rest", geometry.acoustic_levels, source)) {}

void SplitRvq::encode(const StepContext& context, const Activations& latent, std::size_t levels, std::int32_t* codes) const {
    const std::size_t semantic = std::min(levels, geometry_.semantic_levels);
    semantic_.encode(context, latent, semantic, codes, levels);
    if (levels > semantic) acoustic_.encode(context, latent, levels - semantic, codes + semantic, levels);
}

void SplitRvq::decode(const StepContext& context, const std::int32_t* codes, std::size_t levels,
                      const Activations& latent) const {
    const std::size_t semantic = std::min(levels, geometry_.semantic_levels);
    semantic_.decode(context, codes, levels, semantic, latent);
    if (levels == semantic) return;
    const ScratchArena::Mark mark(context.scratch);
    const Activations acoustic = context.take(1, geometry_.dim);
    acoustic_.decode(context, codes + semantic, levels, levels - semantic, acoustic);
    for (std::size_t lane = 0; lane < latent.lanes; ++lane) {
        float* sum = latent.row(lane, 0);
        const float* term = acoustic.row(lane, 0);
        for (std::size_t c = 0; c < geometry_.dim; ++c) sum[c] = sum[c] + term[c];
    }
}

}  // namespace mimi

#include "layers/residual_vq.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mimi {

namespace {

float widened(float value) {
    return value;
}
float widened(std::uint16_t half) {
    return half_to_float(half);
}

}  // namespace

Codebook::Codebook(const StoredCodewords& codewords, std::size_t entries, std::size_t dim)
    : entries_(entries),
      dim_(dim),
      is_half_(std::holds_alternative<std::vector<std::uint16_t>>(codewords)),
      // Blocks of halves fill whole floats.
      values_(count_blocks(entries) * dim * block_outputs / (is_half_ ? 2 : 1)),
      half_norms_(count_blocks(entries) * block_outputs) {
    std::visit([this](const auto& stored) { pack(stored); }, codewords);
}

template <class Element>
void Codebook::pack(const std::vector<Element>& codewords) {
    auto* packed = reinterpret_cast<Element*>(values_.data());
    std::fill_n(half_norms_.data(), half_norms_.size(), std::numeric_limits<float>::infinity());
    for (std::size_t entry = 0; entry < entries_; ++entry) {
        double norm = 0.0;
        for (std::size_t k = 0; k < dim_; ++k) {
            const Element element = codewords[entry * dim_ + k];
            packed[(entry / block_outputs * dim_ + k) * block_outputs + entry % block_outputs] = element;
            const double value = static_cast<double>(widened(element));
            norm += value * value;
        }
        half_norms_.data()[entry] = static_cast<float>(norm / 2.0);
        longest_half_norm_ = std::max(longest_half_norm_, half_norms_.data()[entry]);
    }
}

void Codebook::nearest(const KernelTable& kernels, const float* const* residuals, std::size_t count, float* scores,
                       std::int32_t* codes) const {
    const auto search = is_half_ ? kernels.nearest_codeword_f16 : kernels.nearest_codeword;
    search({values_.data(), half_norms_.data(), longest_half_norm_, entries_, dim_, residuals, count, scores, codes});
}

ResidualVq::ResidualVq(Linear input_projection, Linear output_projection, std::vector<Codebook> codebooks)
    : input_projection_(std::move(input_projection)),
      output_projection_(std::move(output_projection)),
      codebooks_(std::move(codebooks)) {}

std::size_t ResidualVq::size_bytes() const {
    std::size_t bytes = input_projection_.size_bytes() + output_projection_.size_bytes();
    for (const Codebook& codebook : codebooks_) bytes += codebook.size_bytes();
    return bytes;
}

void ResidualVq::encode(const StepContext& context, const Activations& latent, std::size_t levels, std::int32_t* codes,
                        std::size_t code_stride) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t dim = codebooks_.front().dim();
    const Activations residual = context.take(1, dim);
    input_projection_.step(context, latent, residual);
    const float** residuals = context.scratch.take_array<const float*>(latent.lanes);
    std::int32_t* chosen = context.scratch.take_array<std::int32_t>(latent.lanes);
    std::size_t score_floats = 0;
    for (const Codebook& codebook : codebooks_) score_floats = std::max(score_floats, codebook.score_floats());
    float* scores = context.scratch.take(latent.lanes * score_floats);
    for (std::size_t lane = 0; lane < latent.lanes; ++lane) residuals[lane] = residual.row(lane, 0);
    context.pool.run_ranges(latent.lanes, [&](std::size_t begin, std::size_t end) {
        for (std::size_t level = 0; level < levels; ++level) {
            const Codebook& codebook = codebooks_[level];
            codebook.nearest(context.kernels, residuals + begin, end - begin, scores + begin * score_floats, chosen + begin);
            for (std::size_t lane = begin; lane < end; ++lane) {
                codes[lane * code_stride + level] = chosen[lane];
                float* left = residual.row(lane, 0);
                for (std::size_t k = 0; k < dim; ++k) left[k] = left[k] - codebook.at(chosen[lane], k);
            }
        }
    });
}

void ResidualVq::decode(const StepContext& context, const std::int32_t* codes, std::size_t code_stride, std::size_t levels,
                        const Activations& latent) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t dim = codebooks_.front().dim();
    const Activations sum = context.take(1, dim);
    context.each_lane([&](std::size_t lane) {
        float* total = sum.row(lane, 0);
        const std::int32_t* chosen = codes + lane * code_stride;
        for (std::size_t k = 0; k < dim; ++k) total[k] = codebooks_[0].at(chosen[0], k);
        for (std::size_t level = 1; level < levels; ++level)
            for (std::size_t k = 0; k < dim; ++k) total[k] = total[k] + codebooks_[level].at(chosen[level], k);
    });
    output_projection_.step(context, sum, latent);
}

}  // namespace mimi

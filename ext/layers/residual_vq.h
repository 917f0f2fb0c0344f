// Residual vector quantiser: each level picks the nearest codeword of what the levels before it left over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/half_float.h"
#include "layers/linear.h"
#include "layers/step_context.h"

namespace mimi {

// Codewords [entries][dim] as the file stores them: values, or the bits of f16.
using StoredCodewords = std::variant<std::vector<float>, std::vector<std::uint16_t>>;

// One codebook in the kernels' packed form; the one copy serves search and look-up. What is stored in f16 stays so in memory
// and is widened, which is exact, where it is used: codes are those of the same values in f32.
class Codebook {
public:
    Codebook(const StoredCodewords& codewords, std::size_t entries, std::size_t dim);

    std::size_t dim() const { return dim_; }
    // Value k of a codeword; `code` is below the number of entries.
    float at(std::int32_t code, std::size_t k) const {
        const std::size_t entry = static_cast<std::size_t>(code);
        const std::size_t place = (entry / block_outputs * dim_ + k) * block_outputs + entry % block_outputs;
        return is_half_ ? half_to_float(elements<std::uint16_t>()[place]) : elements<float>()[place];
    }
    // codes[n] = nearest codeword of residuals[n] (dim() floats each); `scores` is scratch, score_floats() for each.
    void nearest(const KernelTable& kernels, const float* const* residuals, std::size_t count, float* scores,
                 std::int32_t* codes) const;
    std::size_t score_floats() const { return half_norms_.size(); }
    std::size_t size_bytes() const { return values_.size_bytes() + half_norms_.size_bytes(); }

private:
    template <class Element>
    const Element* elements() const {
        return reinterpret_cast<const Element*>(values_.data());
    }
    // Packs the codewords and sums their norms.
    template <class Element>
    void pack(const std::vector<Element>& codewords);

    std::size_t entries_;
    std::size_t dim_;
    bool is_half_;
    AlignedBuffer values_;      // [block][k][block_outputs] of f32 or f16
    AlignedBuffer half_norms_;  // |codeword|^2 / 2, summed in double and rounded once
    float longest_half_norm_ = 0.0f;
};

class ResidualVq {
public:
    ResidualVq(Linear input_projection, Linear output_projection, std::vector<Codebook> codebooks);

    std::size_t levels() const { return codebooks_.size(); }
    const Codebook& codebook(std::size_t level) const { return codebooks_[level]; }

    // latent: [lane][1][latent dim] -> codes[lane * code_stride + level], level < levels <= levels()
    void encode(const StepContext& context, const Activations& latent, std::size_t levels, std::int32_t* codes,
                std::size_t code_stride) const;
    // The projected sum of the chosen codewords, added in order of level. codes as above, in range; levels >= 1.
    void decode(const StepContext& context, const std::int32_t* codes, std::size_t code_stride, std::size_t levels,
                const Activations& latent) const;
    std::size_t size_bytes() const;

private:
    Linear input_projection_;
    Linear output_projection_;
    std::vector<Codebook> codebooks_;
};

}  // namespace mimi

// The split quantiser: semantic and acoustic halves read the same latent, each through its own projections; the acoustic half
// does not quantise what the semantic one left over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layers/residual_vq.h"
#include "model/geometry.h"
#include "model/weight_source.h"

namespace mimi {

class SplitRvq {
public:
    SplitRvq(const NumericsPolicy& policy, const RvqGeometry& geometry, const WeightSource& source);

    const RvqGeometry& geometry() const { return geometry_; }
    // level < geometry().levels(), the semantic ones first
    const Codebook& codebook(std::size_t level) const {
        const std::size_t semantic = geometry_.semantic_levels;
        return level < semantic ? semantic_.codebook(level) : acoustic_.codebook(level - semantic);
    }

    // latent: [lane][1][dim] -> codes[lane * levels + level], 1 <= levels <= geometry().levels()
    void encode(const StepContext& context, const Activations& latent, std::size_t levels, std::int32_t* codes) const;
    // codes as above, each in range -> latent: [lane][1][dim], with whatever room for history
    void decode(const StepContext& context, const std::int32_t* codes, std::size_t levels, const Activations& latent) const;
    std::size_t size_bytes() const { return semantic_.size_bytes() + acoustic_.size_bytes(); }

private:
    RvqGeometry geometry_;
    ResidualVq semantic_;
    ResidualVq acoustic_;
};

}  // namespace mimi

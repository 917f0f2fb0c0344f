// PCM to codes: SEANet, transformer, downsampling, split RVQ, in this order and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "layers/causal_conv1d.h"
#include "model/geometry.h"
#include "model/latent_transformer.h"
#include "model/seanet_encoder.h"
#include "model/split_rvq.h"
#include "state/state_layout.h"

namespace mimi {

class MimiEncoder {
public:
    // `rvq` and `window` must outlive the encoder; the window takes the transformer's layers, and must be bound before a step.
    MimiEncoder(const NumericsPolicy& policy, const Geometry& geometry, const SplitRvq& rvq, const WeightSource& source,
                TensorWindow& window);

    std::shared_ptr<const StateLayout> state_layout() const { return layout_; }

    // One frame of every lane: pcm[lane][frame_samples] -> codes[lane * levels + level]. Writes each state's future and
    // commits nothing. Error{numeric_overflow} naming the lane where the latent is not finite.
    void step(const StepContext& context, const float* const* pcm, std::size_t levels, std::int32_t* codes) const;
    // Of what is not in the window.
    std::size_t size_bytes() const { return seanet_.size_bytes() + transformer_.size_bytes() + downsample_.size_bytes(); }
    // Bytes of the file that one step reads.
    std::uint64_t streamed_file_bytes() const { return transformer_.streamed_file_bytes(); }

private:
    const Geometry geometry_;
    const SplitRvq& rvq_;
    std::shared_ptr<StateLayout> layout_;
    SeanetEncoder seanet_;
    LatentTransformer transformer_;
    CausalConv1d downsample_;
};

// Error{numeric_overflow} naming the lane and `what` where a value of the rows is not finite.
void require_finite(const Activations& activations, const char* what);

}  // namespace mimi

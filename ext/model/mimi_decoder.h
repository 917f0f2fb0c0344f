// Codes to PCM: split RVQ, upsampling, transformer, SEANet, in this order and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "layers/depthwise_upsample.h"
#include "model/geometry.h"
#include "model/latent_transformer.h"
#include "model/seanet_decoder.h"
#include "model/split_rvq.h"
#include "state/state_layout.h"

namespace mimi {

class MimiDecoder {
public:
    // `rvq` and `window` must outlive the decoder; the window takes the transformer's layers, and must be bound before a step.
    MimiDecoder(const NumericsPolicy& policy, const Geometry& geometry, const SplitRvq& rvq, const WeightSource& source,
                TensorWindow& window);

    std::shared_ptr<const StateLayout> state_layout() const { return layout_; }

    // One frame of every lane: codes[lane * levels + level], each in range -> pcm[lane][frame_samples], not clipped. Writes
    // each state's future and commits nothing. Error{numeric_overflow} naming the lane where the PCM is not finite.
    void step(const StepContext& context, const std::int32_t* codes, std::size_t levels, float* const* pcm) const;
    // Of what is not in the window.
    std::size_t size_bytes() const { return seanet_.size_bytes() + transformer_.size_bytes() + upsample_.size_bytes(); }
    // Bytes of the file that one step reads.
    std::uint64_t streamed_file_bytes() const { return transformer_.streamed_file_bytes(); }

private:
    const Geometry geometry_;
    const SplitRvq& rvq_;
    std::shared_ptr<StateLayout> layout_;
    DepthwiseUpsample upsample_;
    LatentTransformer transformer_;
    SeanetDecoder seanet_;
};

}  // namespace mimi

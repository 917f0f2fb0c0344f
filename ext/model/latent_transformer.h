// The causal transformer over latents at 25 Hz; encoder and decoder each have one.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/rotary.h"
#include "layers/attention_window.h"
#include "layers/transformer_layer.h"
#include "model/geometry.h"
#include "model/weight_source.h"
#include "state/state_layout.h"

namespace mimi {

class LatentTransformer {
public:
    // `side` is "encoder" or "decoder". Reserves the stream's ring in `layout`.
    LatentTransformer(const NumericsPolicy& policy, const TransformerGeometry& geometry, std::size_t steps_per_frame,
                      std::string_view side, const WeightSource& source, StateLayout& layout);

    // x: [lane][steps_per_frame][dim], changed in place.
    void step(const StepContext& context, const Activations& x) const;
    std::size_t size_bytes() const;

private:
    TransformerGeometry geometry_;
    AttentionView attention_view_;
    Rotary rotary_;
    std::vector<TransformerLayer> layers_;
};

}  // namespace mimi

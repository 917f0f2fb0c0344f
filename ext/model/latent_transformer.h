// The causal transformer over latents at 25 Hz; encoder and decoder each have one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/rotary.h"
#include "layers/attention_window.h"
#include "layers/transformer_layer.h"
#include "model/geometry.h"
#include "model/matrix_packer.h"
#include "model/weight_source.h"
#include "state/state_layout.h"
#include "weights/tensor_window.h"

namespace mimi {

class LatentTransformer {
public:
    // `side` is "encoder" or "decoder". Reserves the stream's ring in `layout`, and adds its layers to `window`, a cycle of
    // their own; the window must outlive the transformer, and be bound before the first step.
    LatentTransformer(const NumericsPolicy& policy, const TransformerGeometry& geometry, std::size_t steps_per_frame,
                      std::string_view side, const WeightSource& source, TensorWindow& window, StateLayout& layout);

    // x: [lane][steps_per_frame][dim], changed in place.
    // Errors of TensorWindow::acquire().
    void step(const StepContext& context, const Activations& x) const;
    // Of what is not in the window.
    std::size_t size_bytes() const;
    // Bytes of the file that one step reads.
    std::uint64_t streamed_file_bytes() const { return window_.streamed_file_bytes(first_layer_, layers_.size()); }

private:
    TransformerGeometry geometry_;
    AttentionView attention_view_;
    Rotary rotary_;
    TensorWindow& window_;
    std::size_t first_layer_ = 0;  // in the window
    std::shared_ptr<const TransformerMatrices> matrices_;
    std::vector<MatrixPacker> packers_;  // of the matrices, in order
    std::vector<TransformerLayer> layers_;
};

}  // namespace mimi

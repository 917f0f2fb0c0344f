// The temporal transformer with what stands before and behind it: tokens of all channels to the hidden state and the text's
// logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "kernels/rotary.h"
#include "layers/step_context.h"
#include "lm/conditions.h"
#include "lm/gated_layer.h"
#include "lm/geometry.h"
#include "lm/matrix_block.h"
#include "lm/tensors.h"
#include "lm/token_embedding.h"
#include "state/state_layout.h"
#include "weights/tensor_window.h"

namespace mimi {

class TemporalModel {
public:
    // Reserves the stream's ring in `layout`.
    TemporalModel(const LmTensors& tensors, const LmGeometry& geometry, StateLayout& layout);

    // In the order in which a step visits them, those without matrices left out. With them, what prepare() visits.
    std::vector<MatrixBlock*> blocks();
    std::vector<MatrixBlock*> once_blocks();

    // tokens: [lane][channels], text first; conditions: [lane] -> hidden [lane][1][dim] and text_logits
    // [lane][1][text_outputs]. Keys and values go into the rings at the streams' positions. Errors of TensorWindow::acquire(),
    // numeric_overflow.
    void step(const StepContext& context, TensorWindow& window, const std::int32_t* tokens, const Conditions* const* conditions,
              const Activations& hidden, const Activations& text_logits) const;
    // hidden -> softmax of each extra head: [lane][1][heads * head_dim].
    void extra_heads(const StepContext& context, TensorWindow& window, const Activations& hidden, const Activations& out) const;
    // Errors of ConditionProvider::provide().
    Conditions prepare(const StepContext& context, TensorWindow& window, const ConditionRequest& request) const;
    // Puts a stored sum and rows to use: the keys and values they lead to.
    void prepare_keys(const StepContext& context, TensorWindow& window, Conditions& conditions) const;
    // Of what is not in the window.
    std::size_t size_bytes() const;
    // Of the matrices that one step multiplies, as they are in memory.
    std::size_t step_bytes() const;

private:
    struct Layer {
        Layer(const LmTensors& tensors, const LmGeometry& geometry, std::size_t index, MatrixBlock& once);
        MatrixBlock block;
        GatedMatrices matrices;
        GatedLayer layer;
        std::unique_ptr<CrossAttention> cross;
        std::string stage;
    };

    void embed(const StepContext& context, TensorWindow& window, const std::int32_t* tokens,
               const Conditions* const* conditions, const Activations& x) const;

    LmGeometry geometry_;
    Rotary rotary_;
    MatrixBlock front_, once_, head_;
    std::deque<TokenEmbedding> audio_embeddings_;
    TokenEmbedding text_embedding_;
    ConditionProvider provider_;
    std::deque<Layer> layers_;
    RmsNorm out_norm_;
    std::size_t text_head_ = 0;
    std::vector<std::size_t> extra_heads_;
};

}  // namespace mimi

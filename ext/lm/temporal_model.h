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

    // In the order in which a step visits them, those without matrices left out: before the depformer, and after it. With
    // them, what prepare() visits.
    std::vector<MatrixBlock*> blocks();
    std::vector<MatrixBlock*> last_blocks();
    std::vector<MatrixBlock*> once_blocks();
    std::vector<EmbeddingTable*> tables();

    // What goes in, by lane. Lanes are positions of `streams` streams: first the present one of each, then the next one of
    // each, and so on.
    struct Input {
        std::size_t streams;
        const std::int32_t* tokens;           // [lane][channels], text first
        const float* const* sums;             // [lane]: [dim] in place of the sum of the tokens' embeddings, or nullptr
        const Conditions* const* conditions;  // [lane]
    };

    // -> hidden [lane][1][dim] and text_logits [lane][1][text_outputs]. Keys and values go into the rings at the streams'
    // positions. Errors of TensorWindow::acquire() and RowReader::read(), numeric_overflow.
    void step(const StepContext& context, TensorWindow& window, const Input& input, const Activations& hidden,
              const Activations& text_logits) const;
    // hidden -> softmax of each extra head: [lane][1][heads * head_dim].
    void extra_heads(const StepContext& context, TensorWindow& window, const Activations& hidden, const Activations& out) const;
    // Errors of ConditionProvider::provide().
    Conditions prepare(const StepContext& context, TensorWindow& window, const ConditionRequest& request) const;
    // Puts a stored sum and rows to use: the keys and values they lead to.
    void prepare_keys(const StepContext& context, TensorWindow& window, Conditions& conditions) const;
    // Of what is neither in the window nor a table.
    std::size_t size_bytes() const;
    // Of the matrices that one step multiplies, as they are in memory.
    std::size_t step_bytes() const;

private:
    struct Layer {
        Layer(const LmTensors& tensors, const LmGeometry& geometry, std::size_t index, MatrixBlock& once);
        MatrixBlock block;
        GatedMatrices matrices;
        std::unique_ptr<CrossAttention> cross;
        GatedLayer layer;
        std::string stage;
    };

    void embed(const StepContext& context, TensorWindow& window, const Input& input, const Activations& x) const;
    void find_places(const StepContext& context, std::size_t streams, AttentionPlace* places, float* cosine, float* sine,
                     std::int32_t* slots) const;

    LmGeometry geometry_;
    Rotary rotary_;
    MatrixBlock front_, once_, head_, extra_;
    std::deque<TokenEmbedding> audio_embeddings_;
    TokenEmbedding text_embedding_;
    ConditionProvider provider_;
    std::deque<Layer> layers_;
    RmsNorm out_norm_;
    std::size_t text_head_ = 0;
    std::vector<std::size_t> extra_heads_;
};

}  // namespace mimi

// The small transformer that chooses a step's codes one after another: sub-step q looks at the hidden state and at what was
// chosen before it, and has weights of its own. Its keys and values live for one step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "layers/step_context.h"
#include "lm/gated_layer.h"
#include "lm/geometry.h"
#include "lm/matrix_block.h"
#include "lm/tensors.h"
#include "lm/token_embedding.h"
#include "weights/tensor_window.h"

namespace mimi {

// Makes codes of a sub-step's logits.
class CodeChooser {
public:
    virtual ~CodeChooser() = default;
    // logits: [lane][1][codebook_entries] -> codes[lane], or zero_token
    virtual void choose(std::size_t level, const Activations& logits, std::int32_t* codes) = 0;
};

class Depformer {
public:
    // Only of the model's own levels; there must be some.
    Depformer(const LmTensors& tensors, const LmGeometry& geometry);

    // In the order in which a step first visits them, those without matrices left out.
    std::vector<MatrixBlock*> blocks();
    std::vector<EmbeddingTable*> tables();

    // hidden: [lane][1][dim]; text: [lane], an id or zero_token. Errors of TensorWindow::acquire() and of the chooser,
    // numeric_overflow.
    void step(const StepContext& context, TensorWindow& window, const Activations& hidden, const std::int32_t* text,
              CodeChooser& chooser) const;
    // Of what is neither in the window nor a table.
    std::size_t size_bytes() const;
    // Of the matrices that one step multiplies, as they are in memory; a weight set counts as often as it is used.
    std::size_t step_bytes() const;

private:
    struct WeightSet {
        WeightSet(const LmTensors& tensors, const LmGeometry& geometry, std::size_t set);
        MatrixBlock block;
        std::size_t input;
        std::vector<GatedMatrices> layers;
    };

    struct Level {
        Level(const LmTensors& tensors, const LmGeometry& geometry, std::size_t level);
        MatrixBlock embedding_block, head_block;
        TokenEmbedding embedding;
        std::size_t head;
        std::unique_ptr<LayerNormWeights> norm;
        std::string in_stage, out_stage, logits_stage;
    };

    void run_layers(const StepContext& context, TensorWindow& window, std::size_t level, const Activations& hidden,
                    float* memory, const Activations& z) const;
    AttentionPlace place(float* memory, std::size_t lane, std::size_t lanes, std::size_t layer, std::size_t level) const;

    LmGeometry geometry_;
    std::deque<WeightSet> sets_;
    std::deque<Level> levels_;
    std::deque<GatedLayer> layers_;
    std::vector<std::int32_t> slots_;  // 0, 1, 2 ...
};

}  // namespace mimi

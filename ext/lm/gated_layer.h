// One layer of the language model's transformers: x += Wo attention(rms(x)); x += Gout (silu(u) v), [u; v] = Gin rms(x). The
// keys and values lie wherever its caller keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "layers/step_context.h"
#include "lm/geometry.h"
#include "lm/matrix_block.h"
#include "lm/tensors.h"

namespace mimi {

// The keys and values that one lane's query sees.
struct KeyView {
    const float* keys;  // slot 0 of key head 0
    const float* values;
    std::size_t head_floats;    // from one key head to the next
    const std::int32_t* slots;  // [count], in the order of the sums
    std::size_t count;
};

// Where a lane keeps the keys and values of one layer, and what of them its query sees, this step's own included.
struct AttentionPlace {
    float* keys;  // slot 0 of key head 0
    float* values;
    std::size_t slot;  // where this step's own go
    KeyView seen;
};

// [lane][head_dim / 2]; nullptr where positions are not encoded.
struct RotaryAngle {
    const float* cosine = nullptr;
    const float* sine = nullptr;
};

// y = rms(x): x (a / sqrt(1e-8 + mean x^2)).
class RmsNorm {
public:
    RmsNorm(const LmTensors& tensors, const std::string& name);
    // A lane's row.
    void run(const KernelTable& kernels, const float* in, float* out) const;
    std::size_t size_bytes() const { return weight_.size_bytes(); }

private:
    AlignedBuffer weight_;
};

class LayerNormWeights {
public:
    // NAME.weight and NAME.bias
    LayerNormWeights(const LmTensors& tensors, const std::string& name);
    void run(const KernelTable& kernels, const float* in, float* out) const;
    std::size_t size_bytes() const { return 2 * weight_.size_bytes(); }

private:
    AlignedBuffer weight_, bias_;
};

// The weight set of a layer: where its matrices lie in a block.
struct GatedMatrices {
    // Each adds its half of `path`'s set number `set` to `block`.
    void add_attention(const LmTensors& tensors, const std::string& path, std::size_t set, MatrixBlock& block);
    void add_gating(const LmTensors& tensors, const std::string& path, std::size_t set, MatrixBlock& block);
    std::size_t attention_in = 0, attention_out = 0, gating_in = 0, gating_out = 0;
};

// softmax(query keys) values of every query head of every lane: query [lane][1][>= dim] and views [lane] -> mixed
// [lane][1][dim].
void look_back(const StepContext& context, const GatedTransformerGeometry& geometry, const Activations& query,
               const KeyView* views, const Activations& mixed);

class GatedLayer {
public:
    // `path` ends in a dot.
    GatedLayer(const LmTensors& tensors, const GatedTransformerGeometry& geometry, const std::string& path);

    // x: [lane][1][dim], changed in place. places: [lane]; this step's keys and values are written there. Lanes are positions
    // of `streams` streams: first one of each, then the next one of each, and so on. A position sees those before it.
    void attend(const StepContext& context, const MatrixBlock::Visit& visit, const GatedMatrices& matrices,
                const Activations& x, const AttentionPlace* places, const RotaryAngle& angle, std::size_t streams) const;
    void gate(const StepContext& context, const MatrixBlock::Visit& visit, const GatedMatrices& matrices,
              const Activations& x) const;
    std::size_t size_bytes() const { return norm1_.size_bytes() + norm2_.size_bytes(); }

private:
    void remember(float* row, const AttentionPlace& place, const float* cosine, const float* sine, std::size_t stream) const;

    GatedTransformerGeometry geometry_;
    RmsNorm norm1_, norm2_;
};

}  // namespace mimi

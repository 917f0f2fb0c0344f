// What a stream is told besides its tokens: a vector added to every input, and rows that cross attention looks at. Both are
// computed once, when the stream is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/aligned_buffer.h"
#include "layers/step_context.h"
#include "lm/gated_layer.h"
#include "lm/geometry.h"
#include "lm/matrix_block.h"
#include "lm/tensors.h"
#include "lm/token_embedding.h"

namespace mimi {

// Rows one condition may have. Keys and values of every layer are made of each.
constexpr std::size_t most_condition_rows = 65536;

// What a caller asks for.
struct ConditionRequest {
    // [conditioners]: row of the label, or nullopt for absent; unused where the conditioner takes rows.
    std::vector<std::optional<std::size_t>> labels;
    // [filled.size()][width of the conditioner that takes rows]
    std::vector<float> rows;
    // Which rows are there; the others stand for absent ones.
    std::vector<std::uint8_t> filled;
};

// Of one stream; never changes.
struct Conditions {
    std::vector<float> sum;    // [dim], or empty: nothing is added
    std::vector<float> cross;  // [cross_rows][dim]
    std::size_t cross_rows = 0;
    AlignedBuffer keys_values;        // [layer][keys, values][head][cross_rows][head_dim]
    std::vector<std::int32_t> slots;  // 0 .. cross_rows - 1
};

// Cross attention of one layer: x += Co attention(LN(x)), every row of the condition seen, no positions.
class CrossAttention {
public:
    // The matrix of queries and that of the output go to `block`, those of keys and values to `once`.
    CrossAttention(const LmTensors& tensors, const GatedTransformerGeometry& geometry, const std::string& path,
                   std::size_t layer, MatrixBlock& block, MatrixBlock& once);

    // conditions: [lane]
    void attend(const StepContext& context, const MatrixBlock::Visit& visit, const Conditions* const* conditions,
                const Activations& x) const;
    // Fills this layer's part of keys_values.
    void prepare(const StepContext& context, const MatrixBlock::Visit& once, Conditions& conditions) const;
    std::size_t size_bytes() const { return norm_.size_bytes(); }

private:
    std::size_t layer_floats(const Conditions& conditions) const { return 2 * conditions.cross_rows * geometry_.dim; }

    GatedTransformerGeometry geometry_;  // every head has keys of its own
    std::size_t layer_;
    LayerNormWeights norm_;
    std::size_t query_, out_, keys_values_;
};

// The conditioners' tables and projections.
class ConditionProvider {
public:
    // Their projections go to `once`.
    ConditionProvider(const LmTensors& tensors, const LmGeometry& geometry, MatrixBlock& once);

    // The sum and the rows, without keys and values. Error{setting} naming the conditioner where the request does not fit.
    Conditions provide(const StepContext& context, const MatrixBlock::Visit* once, const ConditionRequest& request) const;
    std::size_t size_bytes() const;

private:
    struct Conditioner {
        ConditionerGeometry geometry;
        std::unique_ptr<EmbeddingTable> table;  // nullptr: takes rows
        std::size_t projection;
        std::vector<float> padding;
    };

    void add_label(const StepContext& context, const MatrixBlock::Visit& once, const Conditioner& conditioner,
                   const std::optional<std::size_t>& label, Conditions& conditions) const;
    void take_rows(const StepContext& context, const MatrixBlock::Visit& once, const Conditioner& conditioner,
                   const ConditionRequest& request, Conditions& conditions) const;
    void add_positions(Conditions& conditions) const;

    std::size_t dim_;
    double position_scale_;
    std::vector<Conditioner> conditioners_;
};

}  // namespace mimi

// Matrices that are used one after another and lie side by side in one layer of the tensor window.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "layers/linear.h"
#include "layers/numerics_policy.h"
#include "layers/step_context.h"
#include "model/matrix_packer.h"
#include "weights/gguf_format.h"
#include "weights/tensor_window.h"
#include "weights/window_layer.h"

namespace mimi {

class MatrixBlock {
public:
    MatrixBlock() = default;
    MatrixBlock(const MatrixBlock&) = delete;
    MatrixBlock& operator=(const MatrixBlock&) = delete;

    // Appends a matrix [outputs][inputs] of any type but integers, with its place in the file; returns its number.
    std::size_t add(const GgufTensor& tensor);
    bool empty() const { return entries_.empty(); }
    // What the window reads and packs; refers to this block, which must stay where it is while the window is bound.
    std::vector<WindowPart> parts() const;
    // Of all matrices together.
    std::size_t packed_bytes() const;
    // The block's number in the window.
    void set_layer(std::size_t layer) { layer_ = layer; }

    // A lease on the block's weights for as long as this lives.
    class Visit {
    public:
        Visit(const MatrixBlock& block, TensorWindow& window) : block_(block), lease_(window.acquire(block.layer_)) {}
        // in: [lane][rows][inputs] -> out: [lane][rows][outputs]
        void multiply(std::size_t matrix, const StepContext& context, const Activations& in, const Activations& out) const;

    private:
        const MatrixBlock& block_;
        TensorWindow::Lease lease_;
    };

private:
    struct Entry {
        Entry(const GgufTensor& stored, std::size_t offset);
        GgufTensor tensor;
        Linear linear;
        MatrixPacker packer;
        std::size_t offset_bytes;
    };

    std::deque<Entry> entries_;
    std::size_t layer_ = 0;
};

}  // namespace mimi

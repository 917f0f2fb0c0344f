// Matrices that are used one after another. They pass through the tensor window in pieces of one or several whole matrices.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
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
    // Packed, of the largest matrix; 0 where there is none.
    std::size_t largest_matrix_bytes() const;
    // Packed, of all matrices together.
    std::size_t packed_bytes() const;
    // Cuts the block, in order, into pieces of at most `most_bytes`, which is at least largest_matrix_bytes(), and appends what
    // the window reads and packs of each to `layers`; the first of them will be number `first_layer` of the window. Refers to
    // this block, which must stay where it is while the window is bound.
    void cut(std::size_t most_bytes, std::size_t first_layer, std::vector<std::vector<WindowPart>>& layers);

    // Holds a lease on one piece at a time, that of the matrix last used, for as long as this lives. Of one thread.
    class Visit {
    public:
        Visit(const MatrixBlock& block, TensorWindow& window) : block_(block), window_(window) {}
        // in: [lane][rows][inputs] -> out: [lane][rows][outputs]. Errors of TensorWindow::acquire().
        void multiply(std::size_t matrix, const StepContext& context, const Activations& in, const Activations& out) const;

    private:
        const MatrixBlock& block_;
        TensorWindow& window_;
        mutable std::optional<TensorWindow::Lease> lease_;
        mutable std::size_t held_layer_ = 0;
    };

private:
    struct Entry {
        explicit Entry(const GgufTensor& stored);
        GgufTensor tensor;
        Linear linear;
        MatrixPacker packer;
        std::size_t layer = 0;
        std::size_t offset_bytes = 0;  // in its piece
    };

    std::deque<Entry> entries_;
};

}  // namespace mimi

// How one matrix product is shared out over the threads of a step.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/kernel_table.h"
#include "layers/step_context.h"

namespace mimi {

// A rectangle of one product: these blocks of outputs of these columns.
struct ProductPiece {
    std::size_t first_block, last_block;
    std::size_t first_column, last_column;
};

// Calls compute(piece) for pieces that cover all outputs of all columns once, several at a time where there are threads.
template <class Compute>
void share_product(const StepContext& context, std::size_t outputs, std::size_t inputs, std::size_t count,
                   const Compute& compute) {
    // Multiply-adds below which handing a piece to a thread costs more than it saves.
    constexpr std::size_t piece_multiply_adds = std::size_t{1} << 18;
    // Pieces for each thread: when one of them is held up by other processes the others take what it has left.
    constexpr std::size_t thread_pieces = 4;
    const std::size_t blocks = count_blocks(outputs);
    const std::size_t worthwhile = outputs * inputs * count / piece_multiply_adds;
    const std::size_t threads = context.pool.threads();
    const std::size_t pieces = threads == 1 ? 1 : std::clamp<std::size_t>(worthwhile, 1, threads * thread_pieces);
    // Few columns: split the weights, so that each is read once. Many columns: split those, and the weights stay in cache.
    const bool split_blocks = blocks >= pieces && count <= blocks * block_outputs;
    context.pool.run(pieces, [&](std::size_t piece) {
        const std::size_t total = split_blocks ? blocks : count;
        const std::size_t begin = total * piece / pieces;
        const std::size_t end = total * (piece + 1) / pieces;
        if (begin == end) return;
        if (split_blocks)
            compute(ProductPiece{begin, end, 0, count});
        else
            compute(ProductPiece{0, blocks, begin, end});
    });
}

}  // namespace mimi

// The matrix product over packed weights, in register tiles of `Blocks` x 16 outputs by `Columns` columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace mimi {

// Adds one segment's sums to the output rows, and the bias after the last segment.
template <class Vec>
static inline void add_segment(const MatmulTask& task, std::size_t block, float* row, Vec sum, bool first, bool last) {
    const std::size_t output = block * block_outputs;
    const std::size_t count = task.outputs - output < block_outputs ? task.outputs - output : block_outputs;
    if (!first) sum = Vec::load_partial(row + output, count) + sum;
    if (last && task.bias) sum = sum + Vec::load_partial(task.bias + output, count);
    sum.store_partial(row + output, count);
}

// How far ahead of their use weights are fetched where few columns share them.
constexpr std::size_t prefetch_floats = 256;

// Column tiles over the same weights up to which memory is slower than the sums.
constexpr std::size_t most_fetching_tiles = 16;

// Fetches the weights that come next into the second cache while the column tiles pass over the present ones, each tile its
// share: the sums then never wait for memory, and memory never for the sums.
class NextWeights {
public:
    // Of `tiles` tiles number `tile` runs over `rows` rows of weights; what comes next are as many rows at `next`.
    NextWeights(const void* next, std::size_t rows, std::size_t tile, std::size_t tiles,
                std::size_t row_bytes = block_outputs * sizeof(float))
        : step_(row_bytes / tiles), at_(static_cast<const char*>(next) + tile * rows * step_) {}

    // Once for each row a tile runs over.
    template <std::size_t Blocks>
    [[gnu::always_inline]] void fetch(std::size_t block_bytes) {
        for (std::size_t b = 0; b < Blocks; ++b) __builtin_prefetch(at_ + b * block_bytes, 0, 2);
        at_ += step_;
    }

private:
    std::size_t step_;
    const char* at_;
};

// For tiles whose weights are in the cache already, or which fetch their own.
struct NoWeights {
    template <std::size_t Blocks>
    [[gnu::always_inline]] void fetch(std::size_t) {}
};

// What a matrix's weights are stored as.
struct FloatWeights {
    static constexpr bool is_wide = true;
    using Element = float;
    template <class Vec>
    static Vec load(const Element* row) {
        return Vec::load(row);
    }
};

struct HalfWeights {
    static constexpr bool is_wide = false;
    using Element = std::uint16_t;
    template <class Vec>
    static Vec load(const Element* row) {
        return Vec::load_half_bits(reinterpret_cast<const std::uint8_t*>(row));
    }
};

struct Bfloat16Weights {
    static constexpr bool is_wide = false;
    using Element = std::uint16_t;
    template <class Vec>
    static Vec load(const Element* row) {
        return Vec::load_bfloat16_bits(reinterpret_cast<const std::uint8_t*>(row));
    }
};

template <class Vec, class Stored = FloatWeights>
struct ChainMatmul {
    static void run(const MatmulTask& task) {
        std::size_t block = task.first_block;
        if (task.count <= Vec::narrow_columns) {
            for (; block + Vec::narrow_blocks <= task.last_block; block += Vec::narrow_blocks)
                all_columns<Vec::narrow_blocks, Vec::narrow_columns>(task, block);
            for (; block < task.last_block; ++block) all_columns<1, Vec::narrow_columns>(task, block);
            return;
        }
        for (; block + Vec::wide_blocks <= task.last_block; block += Vec::wide_blocks)
            all_columns<Vec::wide_blocks, Vec::wide_columns>(task, block);
        for (; block < task.last_block; ++block) all_columns<1, Vec::wide_columns>(task, block);
    }

private:
    using Element = typename Stored::Element;
    static constexpr std::size_t row_bytes = block_outputs * sizeof(Element);

    // The rows of a segment's weights, of one block after the other.
    template <class Form>
    struct Rows {
        const typename Form::Element* first;
        std::size_t block_elements;  // from a block's rows to the next one's
    };

    // A segment's weights stay in the first cache while all columns pass over them, so each is fetched from memory once; narrow
    // ones are widened there once, where enough tiles follow to be worth it.
    template <std::size_t Blocks, std::size_t Columns>
    static void all_columns(const MatmulTask& task, std::size_t block) {
        const std::size_t block_elements = task.reduction * block_outputs;
        for (std::size_t begin = 0; begin < task.reduction; begin += task.segment) {
            const Element* first = static_cast<const Element*>(task.weights) + block * block_elements + begin * block_outputs;
            const Rows<Stored> rows{first, block_elements};
            if constexpr (Columns > 2 && !Stored::is_wide) {
                if (task.count / Columns >= fewest_widening_tiles && task.segment <= most_widened_rows) {
                    alignas(64) float room[Blocks * most_widened_rows * block_outputs];
                    segment_columns<Blocks, Columns>(task, widened<Blocks>(task, rows, begin, room), block, begin);
                    continue;
                }
            }
            segment_columns<Blocks, Columns>(task, rows, block, begin);
        }
    }

    // Tiles over the same narrow weights from which on these are widened for all.
    static constexpr std::size_t fewest_widening_tiles = 4;
    static constexpr std::size_t most_widened_rows = 256;

    static std::size_t segment_rows(const MatmulTask& task, std::size_t begin) {
        return begin + task.segment < task.reduction ? task.segment : task.reduction - begin;
    }

    template <std::size_t Blocks>
    static Rows<FloatWeights> widened(const MatmulTask& task, const Rows<Stored>& rows, std::size_t begin, float* room) {
        const std::size_t block_elements = segment_rows(task, begin) * block_outputs;
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t at = 0; at < block_elements; at += block_outputs)
                Stored::template load<Vec>(rows.first + b * rows.block_elements + at).store(room + b * block_elements + at);
        return {room, block_elements};
    }

    template <std::size_t Blocks, std::size_t Columns, class Form>
    static void segment_columns(const MatmulTask& task, const Rows<Form>& rows, std::size_t block, std::size_t begin) {
        const std::size_t tiles = task.count / Columns;
        const bool fetching = Columns > 2 && tiles <= most_fetching_tiles;
        const Element* next = next_weights(task, block, Blocks, begin);
        std::size_t column = 0;
        for (std::size_t n = 0; n < tiles; ++n, column += Columns) {
            if (fetching)
                tile<Blocks, Columns>(task, rows, block, column, begin, NextWeights(next, task.segment, n, tiles, row_bytes));
            else
                tile<Blocks, Columns>(task, rows, block, column, begin, NoWeights());
        }
        if constexpr (Columns > 2) {
            for (; column + 2 <= task.count; column += 2) tile<Blocks, 2>(task, rows, block, column, begin, NoWeights());
        }
        for (; column < task.count; ++column) tile<Blocks, 1>(task, rows, block, column, begin, NoWeights());
    }

    // Where the rows lie that follow this segment: of the same blocks, or the first of those after them.
    static const Element* next_weights(const MatmulTask& task, std::size_t block, std::size_t blocks, std::size_t begin) {
        const std::size_t row = begin + task.segment;
        const auto* weights = static_cast<const Element*>(task.weights);
        if (row < task.reduction) return weights + (block * task.reduction + row) * block_outputs;
        return weights + (block + blocks) * task.reduction * block_outputs;
    }

    template <std::size_t Blocks, std::size_t Columns, class Form, class Ahead>
    static void tile(const MatmulTask& task, const Rows<Form>& rows, std::size_t block, std::size_t column, std::size_t begin,
                     Ahead ahead) {
        const std::size_t count = segment_rows(task, begin);
        const std::size_t stored_block_elements = task.reduction * block_outputs;
        // Where both are one the compiler shall know it: the largest tiles leave no register to spare.
        const std::size_t block_elements = Form::is_wide == Stored::is_wide ? stored_block_elements : rows.block_elements;
        const float* x[Columns];
        for (std::size_t n = 0; n < Columns; ++n) x[n] = task.columns[column + n] + begin;
        Vec sum[Blocks][Columns];
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t n = 0; n < Columns; ++n) sum[b][n] = Vec::broadcast(0.0f);
        for (std::size_t k = 0; k < count; ++k) {
            ahead.template fetch<Blocks>(stored_block_elements * sizeof(Element));
            Vec w[Blocks];
            for (std::size_t b = 0; b < Blocks; ++b) {
                const auto* row = rows.first + b * block_elements + k * block_outputs;
                // Few columns: the sums wait for memory, and a fetch ahead of the hardware's own is worth its instruction.
                if constexpr (Columns <= 2) __builtin_prefetch(row + prefetch_floats);
                w[b] = Form::template load<Vec>(row);
            }
            for (std::size_t n = 0; n < Columns; ++n) {
                const Vec value = Vec::broadcast(x[n][k]);
                for (std::size_t b = 0; b < Blocks; ++b) sum[b][n] = Vec::fma(w[b], value, sum[b][n]);
            }
        }
        const bool last = begin + count == task.reduction;
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t n = 0; n < Columns; ++n)
                add_segment(task, block + b, task.rows[column + n], sum[b][n], begin == 0, last);
    }
};

}  // namespace mimi

// The matrix product in ggml's order. One output per lane turns the 32 partial sums of its dot product into independent
// chains: eight passes over the weights, each with four chains per output, reduced in the reference's tree.
#pragma once

#include <cstddef>

#include "kernels/body_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

// Tail in f32: DOT32 of the reference.
struct FusedTail {
    template <class Vec>
    struct Sum {
        Vec value;
        static Sum start(Vec sum) { return {sum}; }
        void add(Vec weight, Vec x) { value = Vec::fma(weight, x, value); }
        Vec result() const { return value; }
    };
};

// Tail in double: DOT16 of the reference.
struct WideTail {
    template <class Vec>
    struct Sum {
        typename Vec::Wide value;
        static Sum start(Vec sum) { return {Vec::Wide::widen(sum)}; }
        void add(Vec weight, Vec x) { value.add(weight * x); }
        Vec result() const { return value.narrow(); }
    };
};

template <class Vec, class Tail>
struct TreeMatmul {
    static void run(const MatmulTask& task) {
        if (task.segment < short_segment) return all_blocks<1, Vec::short_columns, 4>(task);
        if (task.count <= Vec::narrow_columns) return all_blocks<1, Vec::narrow_columns, 4>(task);
        all_blocks<Vec::wide_blocks, Vec::wide_columns, 1>(task);
    }

private:
    // Chains of so few elements that storing each costs more than computing it.
    static constexpr std::size_t short_segment = 3 * tree_elements;

    template <std::size_t Blocks, std::size_t Columns, std::size_t Chains>
    static void all_blocks(const MatmulTask& task) {
        std::size_t block = task.first_block;
        for (; block + Blocks <= task.last_block; block += Blocks) all_columns<Blocks, Columns, Chains>(task, block);
        for (; block < task.last_block; ++block) all_columns<1, Columns, Chains>(task, block);
    }

    template <std::size_t Blocks, std::size_t Columns, std::size_t Chains>
    static void all_columns(const MatmulTask& task, std::size_t block) {
        const std::size_t tiles = task.count / Columns;
        const bool fetching = Columns > 2 && tiles <= most_fetching_tiles;
        const float* next = static_cast<const float*>(task.weights) + (block + Blocks) * task.reduction * block_outputs;
        std::size_t column = 0;
        for (std::size_t n = 0; n < tiles; ++n, column += Columns) {
            if (fetching)
                tile<Blocks, Columns, Chains>(task, block, column, NextWeights(next, task.reduction, n, tiles));
            else
                tile<Blocks, Columns, Chains>(task, block, column, NoWeights());
        }
        if constexpr (Columns > 2) {
            for (; column + 2 <= task.count; column += 2) tile<Blocks, 2, Chains>(task, block, column, NoWeights());
        }
        for (; column < task.count; ++column) tile<Blocks, 1, Chains>(task, block, column, NoWeights());
    }

    template <std::size_t Blocks, std::size_t Columns, std::size_t Chains, class Ahead>
    static void tile(const MatmulTask& task, std::size_t block, std::size_t column, Ahead ahead) {
        for (std::size_t begin = 0; begin < task.reduction; begin += task.segment) {
            const std::size_t end = begin + task.segment < task.reduction ? begin + task.segment : task.reduction;
            Vec sum[Blocks][Columns];
            if (task.offsets)
                segment<Chains>(task, block, column, begin, end, sum, ahead,
                                [&task](std::size_t k) { return task.offsets[k]; });
            else
                segment<Chains>(task, block, column, begin, end, sum, ahead, [](std::size_t k) { return k; });
            for (std::size_t b = 0; b < Blocks; ++b)
                for (std::size_t n = 0; n < Columns; ++n)
                    add_segment(task, block + b, task.rows[column + n], sum[b][n], begin == 0, end == task.reduction);
        }
    }

    // Few outputs in flight or short chains: the four chains of a lane place side by side (`Chains` = 4), each a stream of
    // weights of its own. Otherwise one chain at a time over a large tile, and the partial sums wait in the first cache.
    template <std::size_t Chains, std::size_t Blocks, std::size_t Columns, class Ahead, class Offset>
    [[gnu::always_inline]] static void segment(const MatmulTask& task, std::size_t block, std::size_t column, std::size_t begin,
                                               std::size_t end, Vec (&sum)[Blocks][Columns], Ahead& ahead, Offset offset) {
        const std::size_t block_floats = task.reduction * block_outputs;
        const float* weights = static_cast<const float*>(task.weights) + block * block_floats;
        const float* x[Columns];
        for (std::size_t n = 0; n < Columns; ++n) x[n] = task.columns[column + n];
        const std::size_t length = (end - begin) / tree_elements;
        Vec t[4][Blocks][Columns];
        for (std::size_t l = 0; l < 8; ++l) {
            Vec a[4][Blocks][Columns];
            const std::size_t first = begin + 4 * l * length;
            if constexpr (Chains == 4) {
                run_chains(weights, block_floats, x, first, length, a, ahead, offset);
            } else {
                for (std::size_t j = 0; j < 4; ++j) {
                    Vec chain[1][Blocks][Columns];
                    run_chains(weights, block_floats, x, first + j * length, length, chain, ahead, offset);
                    copy(chain[0], a[j]);
                }
            }
            for (std::size_t b = 0; b < Blocks; ++b) {
                for (std::size_t n = 0; n < Columns; ++n) {
                    const Vec s = (a[0][b][n] + a[2][b][n]) + (a[1][b][n] + a[3][b][n]);
                    t[l % 4][b][n] = l < 4 ? s : t[l % 4][b][n] + s;
                }
            }
        }
        for (std::size_t b = 0; b < Blocks; ++b) {
            for (std::size_t n = 0; n < Columns; ++n) {
                auto total = Tail::template Sum<Vec>::start((t[0][b][n] + t[1][b][n]) + (t[2][b][n] + t[3][b][n]));
                for (std::size_t k = begin + length * tree_elements; k < end; ++k)
                    total.add(Vec::load(weights + b * block_floats + k * block_outputs), Vec::broadcast(x[n][offset(k)]));
                sum[b][n] = total.result();
            }
        }
    }

    template <std::size_t Blocks, std::size_t Columns>
    [[gnu::always_inline]] static void copy(const Vec (&from)[Blocks][Columns], Vec (&to)[Blocks][Columns]) {
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t n = 0; n < Columns; ++n) to[b][n] = from[b][n];
    }

    // Neighbouring chains, `length` elements each, of every output of the tile.
    template <std::size_t Chains, std::size_t Blocks, std::size_t Columns, class Ahead, class Offset>
    [[gnu::always_inline]] static void run_chains(const float* weights, std::size_t block_floats,
                                                  const float* const (&x)[Columns], std::size_t first, std::size_t length,
                                                  Vec (&chain)[Chains][Blocks][Columns], Ahead& ahead, Offset offset) {
        for (auto& blocks : chain)
            for (auto& columns : blocks)
                for (Vec& partial : columns) partial = Vec::broadcast(0.0f);
        for (std::size_t i = 0; i < length; ++i) {
            for (std::size_t c = 0; c < Chains; ++c) {
                const std::size_t k = first + c * length + i;
                const std::size_t at = offset(k);
                ahead.template fetch<Blocks>(block_floats * sizeof(float));
                Vec w[Blocks];
                for (std::size_t b = 0; b < Blocks; ++b) {
                    const float* row = weights + b * block_floats + k * block_outputs;
                    if constexpr (Columns <= 2) __builtin_prefetch(row + prefetch_floats);
                    w[b] = Vec::load(row);
                }
                for (std::size_t n = 0; n < Columns; ++n) {
                    const Vec value = Vec::broadcast(x[n][at]);
                    for (std::size_t b = 0; b < Blocks; ++b) chain[c][b][n] = Vec::fma(w[b], value, chain[c][b][n]);
                }
            }
        }
    }
};

}  // namespace mimi

// The matrix product in ggml's order. One output per lane turns the 32 partial sums of its dot product into independent
// chains: eight passes over the weights, each with four chains per output, reduced in the reference's tree.
#pragma once

#include <cstddef>

#include "kernels/body_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

constexpr std::size_t tree_elements = 32;

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
        for (std::size_t block = task.first_block; block < task.last_block; ++block) {
            std::size_t column = 0;
            for (; column + Vec::tree_columns <= task.count; column += Vec::tree_columns)
                tile<Vec::tree_columns>(task, block, column);
            if constexpr (Vec::tree_columns > 2) {
                for (; column + 2 <= task.count; column += 2) tile<2>(task, block, column);
            }
            for (; column < task.count; ++column) tile<1>(task, block, column);
        }
    }

private:
    template <std::size_t Columns>
    static void tile(const MatmulTask& task, std::size_t block, std::size_t column) {
        const float* x[Columns];
        for (std::size_t n = 0; n < Columns; ++n) x[n] = task.columns[column + n];
        for (std::size_t begin = 0; begin < task.reduction; begin += task.segment) {
            const std::size_t end = begin + task.segment < task.reduction ? begin + task.segment : task.reduction;
            Vec sum[Columns];
            if (task.offsets)
                segment<Columns>(task, block, x, begin, end, sum, [&task](std::size_t k) { return task.offsets[k]; });
            else
                segment<Columns>(task, block, x, begin, end, sum, [](std::size_t k) { return k; });
            for (std::size_t n = 0; n < Columns; ++n)
                add_segment(task, block, task.rows[column + n], sum[n], begin == 0, end == task.reduction);
        }
    }

    template <std::size_t Columns, class Offset>
    static void segment(const MatmulTask& task, std::size_t block, const float* const* x, std::size_t begin, std::size_t end,
                        Vec* sum, Offset offset) {
        const float* weights = task.weights + block * task.reduction * block_outputs;
        const std::size_t whole = begin + (end - begin) / tree_elements * tree_elements;
        Vec t[4][Columns];
        for (std::size_t l = 0; l < 8; ++l) {
            Vec a[4][Columns];
            for (auto& chain : a)
                for (Vec& partial : chain) partial = Vec::broadcast(0.0f);
            for (std::size_t i = begin + l; i < whole; i += tree_elements) {
                for (std::size_t j = 0; j < 4; ++j) {
                    const Vec w = Vec::load(weights + (i + 8 * j) * block_outputs);
                    const std::size_t at = offset(i + 8 * j);
                    for (std::size_t n = 0; n < Columns; ++n) a[j][n] = Vec::fma(w, Vec::broadcast(x[n][at]), a[j][n]);
                }
            }
            for (std::size_t n = 0; n < Columns; ++n) {
                const Vec s = (a[0][n] + a[2][n]) + (a[1][n] + a[3][n]);
                t[l % 4][n] = l < 4 ? s : t[l % 4][n] + s;
            }
        }
        for (std::size_t n = 0; n < Columns; ++n) {
            auto total = Tail::template Sum<Vec>::start((t[0][n] + t[1][n]) + (t[2][n] + t[3][n]));
            for (std::size_t k = whole; k < end; ++k)
                total.add(Vec::load(weights + k * block_outputs), Vec::broadcast(x[n][offset(k)]));
            sum[n] = total.result();
        }
    }
};

}  // namespace mimi

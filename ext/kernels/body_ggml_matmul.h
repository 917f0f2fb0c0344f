// The matrix product in ggml's order. One output per lane turns the 32 partial sums of its dot product into independent
// chains, whose sums go up the reference's tree.
#pragma once

#include <cstddef>

#include "kernels/body_matmul.h"
#include "kernels/indices.h"
#include "kernels/kernel_table.h"

namespace mimi {

// Tail in f32: DOT32 of the reference.
struct FusedTail {
    // Whether f32 holds the product of any two operands.
    static constexpr bool exact_products = false;

    template <class Vec>
    struct Sum {
        Vec value;
        static Sum start(Vec sum) { return {sum}; }
        void add(const float* weights, float x) { value = Vec::fma(Vec::load(weights), Vec::broadcast(x), value); }
        Vec result() const { return value; }
    };
};

// Tail in double: DOT16 of the reference.
struct WideTail {
    static constexpr bool exact_products = true;

    template <class Vec>
    struct Sum {
        typename Vec::Wide value;
        static Sum start(Vec sum) { return {Vec::Wide::widen(sum)}; }
        void add(const float* weights, float x) { value.add_product(weights, x); }
        Vec result() const { return value.narrow(); }
    };
};

// What is computed at a time: `Leaves` neighbouring chains of Blocks x 16 outputs and `Columns` columns, `Chains` of them side
// by side. `Length` is that of a chain, or 0 where it is known only then.
template <std::size_t Blocks, std::size_t Columns, std::size_t Chains, std::size_t Leaves, std::size_t Length = 0>
struct TreeShape {
    static constexpr std::size_t blocks = Blocks, columns = Columns, chains = Chains, leaves = Leaves, length = Length;
    static constexpr std::size_t sums = Blocks * Columns;
    using one_block = TreeShape<1, Columns, Chains, Leaves, Length>;
    using one_column = TreeShape<Blocks, 1, Chains, Leaves, Length>;
};

template <class Vec, class Tail>
struct TreeMatmul {
    static void run(const MatmulTask& task) {
        // Plain loops gain nothing by the larger tiles.
        if constexpr (!Vec::in_registers)
            all_blocks<TreeShape<1, Vec::short_columns, 4, tree_chains>>(task);
        else
            choose_tile(task);
    }

private:
    static void choose_tile(const MatmulTask& task) {
        constexpr std::size_t blocks = Vec::wide_blocks;
        if (task.count <= Vec::narrow_columns) return all_blocks<TreeShape<1, Vec::narrow_columns, 4, tree_chains>>(task);
        if (Tail::exact_products && task.reduction == tree_elements && task.segment == tree_elements)
            return all_blocks<TreeShape<blocks, Vec::short_columns, 2, tree_chains, 1>>(task);
        if (task.segment <= short_segment) return all_blocks<TreeShape<blocks, Vec::short_columns, 2, tree_chains>>(task);
        if (task.segment < long_segment) return all_blocks<TreeShape<blocks, Vec::wide_columns, 1, tree_chains / 4>>(task);
        all_blocks<TreeShape<blocks, Vec::wide_columns, 1, 2>>(task);
    }

    // Chains of so few elements that storing each costs more than computing it: two side by side, over a smaller tile.
    static constexpr std::size_t short_segment = 4 * tree_elements;
    // Chains of which two at a time are as many weights as the first cache holds.
    static constexpr std::size_t long_segment = 64 * tree_elements;
    // Columns that pass over a part of the weights together.
    static constexpr std::size_t most_columns = 64;
    // Sums that wait for their neighbours, one on each level of the tree.
    static constexpr std::size_t most_waiting = 4;

    // What is computed of a group of columns at a time: the sum of neighbouring chains of one segment.
    struct Part {
        std::size_t block;
        std::size_t begin, end;  // the segment
        std::size_t length;      // of its chains
        std::size_t step;        // which chains
        Vec* waiting;            // for what the next steps add
    };

    // Of every output of a tile.
    template <std::size_t Count>
    struct Sums {
        Vec of[Count];
    };

    // Calls function(index) for every index below Count. Written out, so that what it fills stays in registers, where there are
    // registers.
    template <std::size_t Count, class Function>
    [[gnu::always_inline]] static void unrolled(const Function& function) {
        if constexpr (Vec::in_registers) {
            [&]<std::size_t... Index>(Indices<Index...>)
                __attribute__((always_inline)) { (function(Index), ...); }(typename IndicesBelow<Count>::type());
        } else {
            for (std::size_t index = 0; index < Count; ++index) function(index);
        }
    }

    template <class Shape>
    static void all_blocks(const MatmulTask& task) {
        std::size_t block = task.first_block;
        for (; block + Shape::blocks <= task.last_block; block += Shape::blocks) all_columns<Shape>(task, block);
        for (; block < task.last_block; ++block) all_columns<typename Shape::one_block>(task, block);
    }

    template <class Shape>
    static void all_columns(const MatmulTask& task, std::size_t block) {
        Vec waiting[most_waiting * most_columns * Shape::blocks];
        Part part{block, 0, 0, 0, 0, waiting};
        for (std::size_t first = 0; first < task.count; first += most_columns) {
            const std::size_t last = task.count - first < most_columns ? task.count : first + most_columns;
            for (part.begin = 0; part.begin < task.reduction; part.begin += task.segment) {
                part.end = task.reduction - part.begin < task.segment ? task.reduction : part.begin + task.segment;
                part.length = (part.end - part.begin) / tree_elements;
                const std::size_t steps = part.length > 0 ? tree_chains / Shape::leaves : 1;
                for (part.step = 0; part.step < steps; ++part.step) some_columns<Shape>(task, part, first, last);
            }
        }
    }

    template <class Shape>
    static void some_columns(const MatmulTask& task, const Part& part, std::size_t first, std::size_t last) {
        const std::size_t tiles = (last - first) / Shape::columns;
        const bool fetching = Shape::columns > 2 && task.count <= most_fetching_tiles * Shape::columns;
        const std::size_t rows = part.length * Shape::leaves;
        const float* next = next_weights<Shape>(task, part, part.begin + (part.step + 1) * rows);
        std::size_t column = first;
        Vec* waiting = part.waiting;
        for (std::size_t n = 0; n < tiles; ++n, column += Shape::columns, waiting += most_waiting * Shape::sums) {
            if (fetching)
                tile<Shape>(task, part, column, waiting, NextWeights(next, rows, n, tiles));
            else
                tile<Shape>(task, part, column, waiting, NoWeights());
        }
        for (; column < last; ++column, waiting += most_waiting * Shape::blocks)
            tile<typename Shape::one_column>(task, part, column, waiting, NoWeights());
    }

    // Where the rows lie that follow `row`: of the same blocks, or the first of those after them.
    template <class Shape>
    static const float* next_weights(const MatmulTask& task, const Part& part, std::size_t row) {
        const auto* weights = static_cast<const float*>(task.weights);
        if (row < task.reduction) return weights + (part.block * task.reduction + row) * block_outputs;
        return weights + (part.block + Shape::blocks) * task.reduction * block_outputs;
    }

    template <class Shape, class Ahead>
    static void tile(const MatmulTask& task, const Part& part, std::size_t column, Vec* waiting, Ahead ahead) {
        const float* x[Shape::columns];
        for (std::size_t n = 0; n < Shape::columns; ++n) x[n] = task.columns[column + n];
        const std::uint32_t* offsets = task.offsets;
        if (offsets)
            compute<Shape>(task, part, column, x, waiting, ahead, [offsets](std::size_t k) { return offsets[k]; });
        else
            compute<Shape>(task, part, column, x, waiting, ahead, [](std::size_t k) { return k; });
    }

    template <class Shape, class Ahead, class Offset>
    [[gnu::always_inline]] static void compute(const MatmulTask& task, const Part& part, std::size_t column,
                                               const float* const (&x)[Shape::columns], Vec* waiting, Ahead& ahead,
                                               Offset offset) {
        const std::size_t block_floats = task.reduction * block_outputs;
        const float* weights = static_cast<const float*>(task.weights) + part.block * block_floats;
        const std::size_t first = part.begin + part.step * Shape::leaves * part.length;
        Sums<Shape::sums> sum;
        if (part.length == 0) {
            for (Vec& zero : sum.of) zero = Vec::broadcast(0.0f);
        } else if constexpr (Shape::leaves == tree_chains) {
            sum = whole_tree<Shape>(weights, block_floats, x, first, part.length, ahead, offset);
        } else {
            sum = subtree<Shape, Shape::leaves>(weights, block_floats, x, first, part.length, ahead, offset);
            const std::size_t level = climb<Shape>(part.step, waiting, sum);
            if (part.step + 1 < tree_chains / Shape::leaves) return store(sum, waiting + level * Shape::sums);
        }
        const std::size_t tail = part.begin + part.length * tree_elements;
        for (std::size_t b = 0; b < Shape::blocks; ++b) {
            for (std::size_t n = 0; n < Shape::columns; ++n) {
                Vec& result = sum.of[b * Shape::columns + n];
                if (tail < part.end) {
                    auto total = Tail::template Sum<Vec>::start(result);
                    for (std::size_t k = tail; k < part.end; ++k)
                        total.add(weights + b * block_floats + k * block_outputs, x[n][offset(k)]);
                    result = total.result();
                }
                add_segment(task, part.block + b, task.rows[column + n], result, part.begin == 0, part.end == task.reduction);
            }
        }
    }

    // Adds what waits for the sum of this step; returns the level of the tree that the sum has then reached.
    template <class Shape>
    [[gnu::always_inline]] static std::size_t climb(std::size_t step, const Vec* waiting, Sums<Shape::sums>& sum) {
        constexpr std::size_t steps = tree_chains / Shape::leaves;
        if (step % 2 != 1) return 0;
        add(waiting, sum);
        if (steps == 2 || step % 4 != 3) return 1;
        add(waiting + Shape::sums, sum);
        if (steps == 4 || step % 8 != 7) return 2;
        add(waiting + 2 * Shape::sums, sum);
        if (steps == 8 || step % 16 != 15) return 3;
        add(waiting + 3 * Shape::sums, sum);
        return 4;
    }

    // All 32 chains: t[0] to t[3] of the reference, and their sum.
    template <class Shape, class Ahead, class Offset>
    [[gnu::always_inline]] static Sums<Shape::sums> whole_tree(const float* weights, std::size_t block_floats,
                                                               const float* const (&x)[Shape::columns], std::size_t first,
                                                               std::size_t length, Ahead& ahead, Offset offset) {
        constexpr std::size_t sums = Shape::sums;
        Vec t[4 * sums];
        for (std::size_t l = 0; l < 4; ++l) {
            const std::size_t begin = first + l * tree_chains / 4 * length;
            store(subtree<Shape, tree_chains / 4>(weights, block_floats, x, begin, length, ahead, offset), t + l * sums);
        }
        Sums<sums> total;
        unrolled<sums>([&](std::size_t i) __attribute__((always_inline)) {
            total.of[i] = (t[i] + t[i + sums]) + (t[i + 2 * sums] + t[i + 3 * sums]);
        });
        return total;
    }

    template <std::size_t Count>
    [[gnu::always_inline]] static void store(const Sums<Count>& sums, Vec* target) {
        unrolled<Count>([&](std::size_t i) __attribute__((always_inline)) { target[i] = sums.of[i]; });
    }

    template <std::size_t Count>
    [[gnu::always_inline]] static void add(const Vec* terms, Sums<Count>& sums) {
        unrolled<Count>([&](std::size_t i) __attribute__((always_inline)) { sums.of[i] = terms[i] + sums.of[i]; });
    }

    // The sum of `Leaves` neighbouring chains.
    template <class Shape, std::size_t Leaves, class Ahead, class Offset>
    [[gnu::always_inline]] static Sums<Shape::sums> subtree(const float* weights, std::size_t block_floats,
                                                            const float* const (&x)[Shape::columns], std::size_t first,
                                                            std::size_t length, Ahead& ahead, Offset offset) {
        if constexpr (Leaves == Shape::chains) {
            return run_chains<Shape>(weights, block_floats, x, first, length, ahead, offset);
        } else {
            const auto left = subtree<Shape, Leaves / 2>(weights, block_floats, x, first, length, ahead, offset);
            const std::size_t second = first + (Leaves == 2 ? 1 : Leaves / 2 * length);
            auto sum = subtree<Shape, Leaves / 2>(weights, block_floats, x, second, length, ahead, offset);
            add(left.of, sum);
            return sum;
        }
    }

    // The sum of neighbouring chains, `length` elements each. Of single products that f32 holds exactly, the second of a pair
    // is added to the first by the fma that multiplies it: the same one rounding.
    template <class Shape, class Ahead, class Offset>
    [[gnu::always_inline]] static Sums<Shape::sums> run_chains(const float* weights, std::size_t block_floats,
                                                               const float* const (&x)[Shape::columns], std::size_t first,
                                                               std::size_t length, Ahead& ahead, Offset offset) {
        constexpr std::size_t accumulators = Shape::length == 1 ? 1 : Shape::chains;
        Sums<Shape::sums> chain[accumulators];
        unrolled<accumulators>([&](std::size_t c) __attribute__((always_inline)) {
            unrolled<Shape::sums>([&](std::size_t i) __attribute__((always_inline)) { chain[c].of[i] = Vec::broadcast(0.0f); });
        });
        std::size_t i = 0;
        do {
            unrolled<Shape::chains>([&](std::size_t c) __attribute__((always_inline)) {
                const std::size_t k = first + c / 2 * 2 * length + 2 * i + c % 2;
                const std::size_t at = offset(k);
                ahead.template fetch<Shape::blocks>(block_floats * sizeof(float));
                Vec w[Shape::blocks];
                unrolled<Shape::blocks>([&](std::size_t b) __attribute__((always_inline)) {
                    const float* row = weights + b * block_floats + k * block_outputs;
                    if constexpr (Shape::columns <= 2) __builtin_prefetch(row + prefetch_floats);
                    w[b] = Vec::load(row);
                });
                unrolled<Shape::columns>([&](std::size_t n) __attribute__((always_inline)) {
                    const Vec value = Vec::broadcast(x[n][at]);
                    unrolled<Shape::blocks>([&](std::size_t b) __attribute__((always_inline)) {
                        Vec& partial = chain[c % accumulators].of[b * Shape::columns + n];
                        partial = Vec::fma(w[b], value, partial);
                    });
                });
            });
        } while (Shape::length != 1 && ++i < length);
        if constexpr (accumulators == 4) {
            add(chain[1].of, chain[0]);
            add(chain[3].of, chain[2]);
            add(chain[2].of, chain[0]);
        }
        if constexpr (accumulators == 2) add(chain[1].of, chain[0]);
        return chain[0];
    }
};

}  // namespace mimi

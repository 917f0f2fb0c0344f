// The matrix product over quantised weights and inputs: integers within a group, one chain of f32 over the groups. Here are the
// inputs, the way over a matrix, and weights of q8_0; body_nibble_matmul.h has those of four bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec>
struct QuantiseColumn {
    static void run(const float* in, std::size_t count, const QuantisedColumn& out) {
        for (std::size_t group = 0; group < count / quantised_group; ++group) {
            const float* values = in + group * quantised_group;
            std::int8_t* quantised = out.values + group * quantised_group;
            const Vec low = Vec::load(values);
            const Vec high = Vec::load(values + 16);
            const float largest = Vec::max_lanes(Vec::max(Vec::absolute(low), Vec::absolute(high)));
            // A maximum may overlook NaN; a sum does not.
            const Vec zero = Vec::broadcast(0.0f);
            const float finite = Vec::sum_lanes(low * zero + high * zero);
            const Vec inverse = Vec::broadcast(largest < smallest_maximum ? 0.0f : 127.0f / largest);
            round(low, inverse).store_low_bytes(quantised);
            round(high, inverse).store_low_bytes(quantised + 16);
            out.scales[group] = largest / 127.0f + finite;
            std::int32_t sum = 0;
            for (std::size_t i = 0; i < quantised_group; ++i) sum += quantised[i];
            out.shifts[group] = -128 * sum;
        }
    }

private:
    static constexpr float smallest_maximum = 0x1p-100f;

    // Leaves the integer in the low bits of a value near 1.5 * 2^23.
    static Vec round(Vec values, Vec inverse) { return values * inverse + Vec::broadcast(0x1.8p23f); }
};

// Fetches a tile's own weights a little ahead of their use, where one tile takes all columns: then nothing is read twice, and
// streams side by side reach what memory gives. Further ahead, or one stream alone, was slower.
class OwnWeights {
public:
    explicit OwnWeights(const std::uint8_t* weights) : at_(weights + ahead_bytes) {}

    // Once for each row a tile runs over.
    template <std::size_t Blocks>
    [[gnu::always_inline]] void fetch(std::size_t block_bytes) {
        for (std::size_t b = 0; b < Blocks; ++b) __builtin_prefetch(at_ + b * block_bytes);
        at_ += quantised_row_bytes;
    }

private:
    static constexpr std::size_t ahead_bytes = 2048;

    const std::uint8_t* at_;
};

// `Form` is how the weights lie: block_rows(groups), Dots for the sizes of its tiles, and add_all(task, weights, column, sum,
// ahead), which adds a tile's products to `sum` and calls ahead.fetch() once for each row it passes.
template <class Vec, class Form>
struct QuantisedMatmul {
    static void run(const QuantisedMatmulTask& task) {
        if (task.count <= Dots::narrow_columns) return all_blocks<Dots::narrow_blocks, Dots::narrow_columns>(task);
        all_blocks<Dots::wide_blocks, Dots::wide_columns>(task);
    }

private:
    using Dots = typename Form::Dots;

    template <std::size_t Blocks, std::size_t Columns>
    static void all_blocks(const QuantisedMatmulTask& task) {
        std::size_t block = task.first_block;
        for (; block + Blocks <= task.last_block; block += Blocks) all_columns<Blocks, Columns>(task, block);
        for (; block < task.last_block; ++block) all_columns<1, Columns>(task, block);
    }

    // The blocks' weights stay in the second cache while all columns pass over them, and the next blocks' come in meanwhile.
    template <std::size_t Blocks, std::size_t Columns>
    static void all_columns(const QuantisedMatmulTask& task, std::size_t block) {
        const std::size_t rows = Form::block_rows(task.groups);
        const std::uint8_t* own = task.weights + block * rows * quantised_row_bytes;
        if (task.count == 1) return tile<Blocks, 1>(task, block, 0, OwnWeights(own));
        if (task.count == Columns) return tile<Blocks, Columns>(task, block, 0, OwnWeights(own));
        const std::uint8_t* next = task.weights + (block + Blocks) * rows * quantised_row_bytes;
        const std::size_t tiles = (task.count + Columns - 1) / Columns;
        std::size_t column = 0;
        for (std::size_t n = 0; n < task.count / Columns; ++n, column += Columns) {
            if (tiles <= most_fetching_tiles)
                tile<Blocks, Columns>(task, block, column, NextWeights(next, rows, n, tiles));
            else
                tile<Blocks, Columns>(task, block, column, NoWeights());
        }
        if constexpr (Columns > 4) {
            for (; column + 4 <= task.count; column += 4) rest<Blocks, 4>(task, block, column, own);
        }
        if constexpr (Columns > 2) {
            for (; column + 2 <= task.count; column += 2) rest<Blocks, 2>(task, block, column, own);
        }
        for (; column < task.count; ++column) tile<Blocks, 1>(task, block, column, NextWeights(next, rows, 0, 1));
    }

    // Columns that no wide tile takes. The first of them meet weights that nobody has fetched.
    template <std::size_t Blocks, std::size_t Columns>
    static void rest(const QuantisedMatmulTask& task, std::size_t block, std::size_t column, const std::uint8_t* own) {
        if (column == 0)
            tile<Blocks, Columns>(task, block, column, OwnWeights(own));
        else
            tile<Blocks, Columns>(task, block, column, NoWeights());
    }

    template <std::size_t Blocks, std::size_t Columns, class Ahead>
    static void tile(const QuantisedMatmulTask& task, std::size_t block, std::size_t column, Ahead ahead) {
        const std::uint8_t* weights = task.weights + block * Form::block_rows(task.groups) * quantised_row_bytes;
        Vec sum[Blocks][Columns];
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t n = 0; n < Columns; ++n) sum[b][n] = Vec::broadcast(0.0f);
        Form::template add_all<Blocks, Columns>(task, weights, column, sum, ahead);
        for (std::size_t b = 0; b < Blocks; ++b) {
            const std::size_t output = (block + b) * block_outputs;
            const std::size_t count = task.outputs - output < block_outputs ? task.outputs - output : block_outputs;
            for (std::size_t n = 0; n < Columns; ++n) sum[b][n].store_partial(task.rows[column + n] + output, count);
        }
    }
};

// A group's integers times the scales of weights, f16 [16] at `scales` of each block, and of inputs, added to the chains.
template <class Vec, std::size_t Blocks, std::size_t Columns>
[[gnu::always_inline]] static inline void add_scaled(const QuantisedColumn* x, std::size_t group, const std::uint8_t* scales,
                                                     std::size_t block_bytes, const Vec (&integer)[Blocks][Columns],
                                                     Vec (&sum)[Blocks][Columns]) {
    for (std::size_t b = 0; b < Blocks; ++b) {
        const Vec weight_scale = Vec::load_half_bits(scales + b * block_bytes);
        for (std::size_t n = 0; n < Columns; ++n)
            sum[b][n] = Vec::fma(integer[b][n], weight_scale * Vec::broadcast(x[n].scales[group]), sum[b][n]);
    }
}

// Weights of q8_0. `DotsOfBytes` is sixteen exact integer sums: start(value), load(64 weights), broadcast(4 values),
// add(weights, values) and sum().
template <class Vec, class DotsOfBytes>
struct ByteForm {
    using Dots = DotsOfBytes;

    static constexpr std::size_t block_rows(std::size_t groups) { return byte_block_rows(groups); }

    template <std::size_t Blocks, std::size_t Columns, class Ahead>
    static void add_all(const QuantisedMatmulTask& task, const std::uint8_t* weights, std::size_t column,
                        Vec (&sum)[Blocks][Columns], Ahead& ahead) {
        const std::size_t block_bytes = block_rows(task.groups) * quantised_row_bytes;
        const std::uint8_t* scales = weights + task.groups * 8 * quantised_row_bytes;
        for (std::size_t group = 0; group < task.groups; ++group) {
            if (group % 2 == 0) ahead.template fetch<Blocks>(block_bytes);
            Vec integer[Blocks][Columns];
            add_group<Blocks, Columns>(task, weights, group, column, integer, ahead);
            add_scaled(task.columns + column, group, scales + group * quantised_row_bytes / 2, block_bytes, integer, sum);
        }
    }

private:
    template <std::size_t Blocks, std::size_t Columns, class Ahead>
    [[gnu::always_inline]] static void add_group(const QuantisedMatmulTask& task, const std::uint8_t* weights,
                                                 std::size_t group, std::size_t column, Vec (&integer)[Blocks][Columns],
                                                 Ahead& ahead) {
        const std::size_t block_bytes = block_rows(task.groups) * quantised_row_bytes;
        const QuantisedColumn* x = task.columns + column;
        Dots dot[Blocks][Columns];
        for (std::size_t n = 0; n < Columns; ++n)
            for (std::size_t b = 0; b < Blocks; ++b) dot[b][n] = Dots::start(x[n].shifts[group]);
        const std::uint8_t* row = weights + group * 8 * quantised_row_bytes;
        for (std::size_t i = 0; i < 8; ++i, row += quantised_row_bytes) {
            ahead.template fetch<Blocks>(block_bytes);
            typename Dots::Weights w[Blocks];
            for (std::size_t b = 0; b < Blocks; ++b) w[b] = Dots::load(row + b * block_bytes);
            for (std::size_t n = 0; n < Columns; ++n) {
                const typename Dots::Values values = Dots::broadcast(x[n].values + group * quantised_group + 4 * i);
                for (std::size_t b = 0; b < Blocks; ++b) dot[b][n].add(w[b], values);
            }
        }
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t n = 0; n < Columns; ++n) integer[b][n] = dot[b][n].sum();
    }
};

}  // namespace mimi

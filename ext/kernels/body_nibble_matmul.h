// The matrix product over quantised inputs and weights of four bits, which are told apart where they are multiplied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_quantised_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

// The integer sums of one group, whose four rows begin at `row` of each block. `Dots` is sixteen exact sums over weights of
// 0 .. 15: start(), load(64 bytes) with the low and the high four bits of each, broadcast(4 values), add(weights, values),
// which may be called eight times, and sum(shift), which adds `shift` to each.
template <class Dots, std::size_t Blocks, std::size_t Columns, class Ahead>
[[gnu::always_inline]] static inline void add_nibbles(const QuantisedColumn* x, std::size_t group, const std::uint8_t* row,
                                                      std::size_t block_bytes, Dots (&dot)[Blocks][Columns], Ahead& ahead) {
    for (std::size_t n = 0; n < Columns; ++n)
        for (std::size_t b = 0; b < Blocks; ++b) dot[b][n] = Dots::start();
    for (std::size_t i = 0; i < 4; ++i, row += quantised_row_bytes) {
        ahead.template fetch<Blocks>(block_bytes);
        typename Dots::Pair w[Blocks];
        for (std::size_t b = 0; b < Blocks; ++b) w[b] = Dots::load(row + b * block_bytes);
        for (std::size_t n = 0; n < Columns; ++n) {
            const std::int8_t* values = x[n].values + group * quantised_group + 4 * i;
            const typename Dots::Values low = Dots::broadcast(values);
            const typename Dots::Values high = Dots::broadcast(values + 16);
            for (std::size_t b = 0; b < Blocks; ++b) {
                dot[b][n].add(w[b].low, low);
                dot[b][n].add(w[b].high, high);
            }
        }
    }
}

// Weights of q4_0, which lie 8 too high.
template <class Vec, class DotsOfNibbles>
struct NibbleForm {
    using Dots = DotsOfNibbles;

    static constexpr std::size_t block_rows(std::size_t groups) { return nibble_block_rows(groups); }

    template <std::size_t Blocks, std::size_t Columns, class Ahead>
    static void add_all(const QuantisedMatmulTask& task, const std::uint8_t* weights, std::size_t column,
                        Vec (&sum)[Blocks][Columns], Ahead& ahead) {
        const std::size_t block_bytes = block_rows(task.groups) * quantised_row_bytes;
        const QuantisedColumn* x = task.columns + column;
        const std::uint8_t* scales = weights + task.groups * 4 * quantised_row_bytes;
        for (std::size_t group = 0; group < task.groups; ++group) {
            if (group % 2 == 0) ahead.template fetch<Blocks>(block_bytes);
            Dots dot[Blocks][Columns];
            add_nibbles(x, group, weights + group * 4 * quantised_row_bytes, block_bytes, dot, ahead);
            Vec integer[Blocks][Columns];
            for (std::size_t n = 0; n < Columns; ++n)
                for (std::size_t b = 0; b < Blocks; ++b) integer[b][n] = dot[b][n].sum(x[n].shifts[group] / 16);
            add_scaled(x, group, scales + group * quantised_row_bytes / 2, block_bytes, integer, sum);
        }
    }
};

// Weights of q4_k.
template <class Vec, class DotsOfNibbles>
struct SuperNibbleForm {
    using Dots = DotsOfNibbles;

    static constexpr std::size_t block_rows(std::size_t groups) { return super_nibble_block_rows(groups); }

    template <std::size_t Blocks, std::size_t Columns, class Ahead>
    static void add_all(const QuantisedMatmulTask& task, const std::uint8_t* weights, std::size_t column,
                        Vec (&sum)[Blocks][Columns], Ahead& ahead) {
        const std::size_t block_bytes = block_rows(task.groups) * quantised_row_bytes;
        const QuantisedColumn* x = task.columns + column;
        for (std::size_t first = 0; first < task.groups; first += super_block_groups) {
            const std::uint8_t* row = weights + first / super_block_groups * super_block_rows * quantised_row_bytes;
            Factors factors[Blocks];
            for (std::size_t b = 0; b < Blocks; ++b)
                factors[b].read(row + super_block_groups * 4 * quantised_row_bytes + b * block_bytes);
            for (std::size_t i = 0; i < 4; ++i) ahead.template fetch<Blocks>(block_bytes);
            for (std::size_t i = 0; i < super_block_groups; ++i, row += 4 * quantised_row_bytes) {
                Dots dot[Blocks][Columns];
                add_nibbles(x, first + i, row, block_bytes, dot, ahead);
                add_factored<Blocks, Columns>(x, first + i, i, factors, dot, sum);
            }
        }
    }

private:
    // Of the sixteen outputs of a block.
    struct Factors {
        Vec scale, minimum;
        std::uint8_t scales[super_block_groups * block_outputs];  // [group][output]
        std::uint8_t minima[super_block_groups * block_outputs];

        // From the row of f16 and the three of packed bytes behind it. NibbleSuperBlock says how the bits are packed.
        [[gnu::always_inline]] void read(const std::uint8_t* row) {
            scale = Vec::load_half_bits(row);
            minimum = Vec::load_half_bits(row + quantised_row_bytes / 2);
            const std::uint8_t* first = row + quantised_row_bytes;
            const std::uint8_t* second = first + quantised_row_bytes;
            const std::uint8_t* third = second + quantised_row_bytes;
            for (std::size_t i = 0; i < quantised_row_bytes; ++i) {
                scales[i] = first[i] & 63u;
                minima[i] = second[i] & 63u;
                scales[quantised_row_bytes + i] = static_cast<std::uint8_t>((third[i] & 15u) | (first[i] >> 6) << 4);
                minima[quantised_row_bytes + i] = static_cast<std::uint8_t>(third[i] >> 4 | (second[i] >> 6) << 4);
            }
        }
    };

    template <std::size_t Blocks, std::size_t Columns>
    [[gnu::always_inline]] static void add_factored(const QuantisedColumn* x, std::size_t group, std::size_t place,
                                                    const Factors (&factors)[Blocks], const Dots (&dot)[Blocks][Columns],
                                                    Vec (&sum)[Blocks][Columns]) {
        for (std::size_t b = 0; b < Blocks; ++b) {
            const Vec scale = factors[b].scale * Vec::load_bytes(factors[b].scales + place * block_outputs);
            const Vec minimum = factors[b].minimum * Vec::load_bytes(factors[b].minima + place * block_outputs);
            for (std::size_t n = 0; n < Columns; ++n) {
                const float input_scale = x[n].scales[group];
                const float negative_sum = input_scale * static_cast<float>(x[n].shifts[group] / 128);
                sum[b][n] = Vec::fma(dot[b][n].sum(0), scale * Vec::broadcast(input_scale), sum[b][n]);
                sum[b][n] = Vec::fma(minimum, Vec::broadcast(negative_sum), sum[b][n]);
            }
        }
    }
};

}  // namespace mimi

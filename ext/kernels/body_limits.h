// What an instruction set can do at most: sums that wait for nothing, and reading that computes next to nothing. For
// measurements, which name their results' limit; the codec calls neither.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec>
struct Limits {
    // As many independent sums as the widest tile of the matrix product keeps in registers.
    static constexpr std::size_t chains = Vec::wide_blocks * Vec::wide_columns;
    static constexpr std::size_t flop_per_round = 2 * block_outputs * chains;

    static float multiply_add(std::size_t rounds) {
        const Vec factor = Vec::broadcast(0.5f), term = Vec::broadcast(1.0f);
        Vec sum[chains];
        for (std::size_t i = 0; i < chains; ++i) sum[i] = Vec::broadcast(static_cast<float>(i));
        for (std::size_t round = 0; round < rounds; ++round)
            for (std::size_t i = 0; i < chains; ++i) sum[i] = Vec::fma(sum[i], factor, term);
        return total<chains>(sum);
    }

    static float read(const float* values, std::size_t count) {
        constexpr std::size_t width = 4;
        Vec sum[width];
        for (std::size_t i = 0; i < width; ++i) sum[i] = Vec::broadcast(0.0f);
        for (std::size_t at = 0; at + width * block_outputs <= count; at += width * block_outputs)
            for (std::size_t i = 0; i < width; ++i) {
                const float* row = values + at + i * block_outputs;
                __builtin_prefetch(row + prefetch_floats_of_read);
                sum[i] = sum[i] + Vec::load(row);
            }
        return total<width>(sum);
    }

private:
    static constexpr std::size_t prefetch_floats_of_read = 512;

    template <std::size_t Count>
    static float total(const Vec* sum) {
        Vec all = sum[0];
        for (std::size_t i = 1; i < Count; ++i) all = all + sum[i];
        return Vec::sum_lanes(all);
    }
};

}  // namespace mimi

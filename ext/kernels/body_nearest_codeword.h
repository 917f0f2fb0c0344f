// Exhaustive search of a codebook, sixteen entries side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec>
struct NearestCodeword {
    static void run(const NearestTask& task) {
        std::size_t n = 0;
        for (; n + 4 <= task.count; n += 4) search<4>(task, n);
        for (; n < task.count; ++n) search<1>(task, n);
    }

private:
    template <std::size_t Columns>
    struct Best {
        float score[Columns];
        std::int32_t code[Columns];
    };

    template <std::size_t Columns>
    static void search(const NearestTask& task, std::size_t n) {
        constexpr std::size_t together = Columns == 1 ? Vec::narrow_blocks : 1;
        Best<Columns> best;
        for (std::size_t c = 0; c < Columns; ++c) {
            best.score[c] = __builtin_inff();
            best.code[c] = 0;
        }
        const std::size_t blocks = count_blocks(task.entries);
        std::size_t block = 0;
        for (; block + together <= blocks; block += together) scan<together, Columns>(task, n, block, best);
        for (; block < blocks; ++block) scan<1, Columns>(task, n, block, best);
        for (std::size_t c = 0; c < Columns; ++c) task.codes[n + c] = best.code[c];
    }

    template <std::size_t Blocks, std::size_t Columns>
    static void scan(const NearestTask& task, std::size_t n, std::size_t block, Best<Columns>& best) {
        const std::size_t block_floats = task.dim * block_outputs;
        const float* entries = task.codebook + block * block_floats;
        Vec sum[Blocks][Columns];
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t c = 0; c < Columns; ++c) sum[b][c] = Vec::broadcast(0.0f);
        for (std::size_t k = 0; k < task.dim; ++k) {
            for (std::size_t b = 0; b < Blocks; ++b) {
                const float* row = entries + b * block_floats + k * block_outputs;
                if constexpr (Columns == 1) __builtin_prefetch(row + prefetch_floats);
                const Vec entry = Vec::load(row);
                for (std::size_t c = 0; c < Columns; ++c)
                    sum[b][c] = Vec::fma(entry, Vec::broadcast(task.residuals[n + c][k]), sum[b][c]);
            }
        }
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t c = 0; c < Columns; ++c)
                keep_best(Vec::load(task.half_norms + (block + b) * block_outputs) - sum[b][c], (block + b) * block_outputs,
                          best.score[c], best.code[c]);
    }

    static void keep_best(Vec scores, std::size_t first_entry, float& best, std::int32_t& code) {
        float score[block_outputs];
        scores.store(score);
        for (std::size_t l = 0; l < block_outputs; ++l) {
            if (score[l] < best) {
                best = score[l];
                code = static_cast<std::int32_t>(first_entry + l);
            }
        }
    }
};

}  // namespace mimi

// Exhaustive search of a codebook, sixteen entries side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

// Scores of all entries for all vectors: half_norm - chain over k of e[k] r[k].
template <class Vec, class Stored>
struct CodewordScores {
    using Element = typename Stored::Element;

    // The first of a block's rows.
    static const Element* block_rows(const NearestTask& task, std::size_t block) {
        return static_cast<const Element*>(task.codebook) + block * task.dim * block_outputs;
    }

    // Calls keep(scores of sixteen entries, their block, n) for `count` vectors from `n` on, blocks in ascending order.
    template <class Keep>
    static void run(const NearestTask& task, std::size_t n, std::size_t count, const Keep& keep) {
        const std::size_t blocks = count_blocks(task.entries);
        std::size_t block = 0;
        if (count < Vec::wide_columns) {
            for (; block + Vec::narrow_blocks <= blocks; block += Vec::narrow_blocks)
                all_columns<Vec::narrow_blocks>(task, n, count, block, keep);
        } else {
            for (; block + Vec::wide_blocks <= blocks; block += Vec::wide_blocks)
                all_columns<Vec::wide_blocks>(task, n, count, block, keep);
        }
        for (; block < blocks; ++block) all_columns<1>(task, n, count, block, keep);
    }

private:
    static constexpr std::size_t row_bytes = block_outputs * sizeof(Element);

    template <std::size_t Blocks, class Keep>
    static void all_columns(const NearestTask& task, std::size_t n, std::size_t count, std::size_t block, const Keep& keep) {
        constexpr std::size_t wide = Blocks == Vec::narrow_blocks ? Vec::narrow_columns : Vec::wide_columns;
        const std::size_t tiles = count / wide;
        const Element* next = block_rows(task, block + Blocks);
        std::size_t c = 0;
        for (std::size_t tile = 0; tile < tiles; ++tile, c += wide)
            scan<Blocks, wide>(task, n + c, block, keep, NextWeights(next, task.dim, tile, tiles, row_bytes));
        for (; c < count; ++c) scan<Blocks, 1>(task, n + c, block, keep, NoWeights());
    }

    template <std::size_t Blocks, std::size_t Columns, class Keep, class Ahead>
    static void scan(const NearestTask& task, std::size_t n, std::size_t block, const Keep& keep, Ahead ahead) {
        const std::size_t block_elements = task.dim * block_outputs;
        const Element* entries = block_rows(task, block);
        const float* residuals[Columns];
        for (std::size_t c = 0; c < Columns; ++c) residuals[c] = task.residuals[n + c];
        Vec sum[Blocks][Columns];
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t c = 0; c < Columns; ++c) sum[b][c] = Vec::broadcast(0.0f);
        for (std::size_t k = 0; k < task.dim; ++k) {
            ahead.template fetch<Blocks>(block_elements * sizeof(Element));
            Vec entry[Blocks];
            for (std::size_t b = 0; b < Blocks; ++b) {
                const Element* row = entries + b * block_elements + k * block_outputs;
                if constexpr (Columns == 1) __builtin_prefetch(row + prefetch_floats);
                entry[b] = Stored::template load<Vec>(row);
            }
            for (std::size_t c = 0; c < Columns; ++c) {
                const Vec value = Vec::broadcast(residuals[c][k]);
                for (std::size_t b = 0; b < Blocks; ++b) sum[b][c] = Vec::fma(entry[b], value, sum[b][c]);
            }
        }
        for (std::size_t b = 0; b < Blocks; ++b)
            for (std::size_t c = 0; c < Columns; ++c)
                keep(Vec::load(task.half_norms + (block + b) * block_outputs) - sum[b][c], block + b, n + c);
    }
};

template <class Vec, class Stored>
struct NearestCodeword {
    static void run(const NearestTask& task) {
        for (std::size_t n = 0; n < task.count; n += most_columns)
            search(task, n, task.count - n < most_columns ? task.count - n : most_columns);
    }

private:
    // Vectors that pass over the codebook together, so that it is fetched from memory once for all of them.
    static constexpr std::size_t most_columns = 64;

    // The best of each lane's entries: every sixteenth of the codebook.
    struct Best {
        Vec score = Vec::broadcast(__builtin_inff());
        Vec block = Vec::broadcast(0.0f);
    };

    static void search(const NearestTask& task, std::size_t n, std::size_t count) {
        Best best[most_columns];
        CodewordScores<Vec, Stored>::run(task, n, count, [&](Vec scores, std::size_t block, std::size_t column) {
            keep_best(scores, block, best[column - n]);
        });
        for (std::size_t c = 0; c < count; ++c) task.codes[n + c] = best_of_lanes(best[c]);
    }

    // Blocks come in order, so that of equal scores a lane keeps the first.
    static void keep_best(Vec scores, std::size_t block, Best& best) {
        best.block = Vec::if_less(scores, best.score, Vec::broadcast(static_cast<float>(block)), best.block);
        best.score = Vec::if_less(scores, best.score, scores, best.score);
    }

    static std::int32_t best_of_lanes(const Best& best) {
        float score[block_outputs];
        float block[block_outputs];
        best.score.store(score);
        best.block.store(block);
        float least = __builtin_inff();
        std::int32_t code = 0;
        for (std::size_t l = 0; l < block_outputs; ++l) {
            const std::int32_t entry =
                static_cast<std::int32_t>(block[l]) * static_cast<std::int32_t>(block_outputs) + static_cast<std::int32_t>(l);
            if (score[l] < least || (score[l] == least && entry < code)) {
                least = score[l];
                code = entry;
            }
        }
        return code;
    }
};

}  // namespace mimi

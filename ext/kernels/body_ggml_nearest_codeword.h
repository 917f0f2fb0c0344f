// The codeword search of `ggml` numerics: distances summed in double, but only of entries that can be the nearest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_nearest_codeword.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec, class Stored>
struct GgmlNearestCodeword {
    static void run(const NearestTask& task) {
        const std::size_t padded = count_blocks(task.entries) * block_outputs;
        Scores::run(task, 0, task.count, [&](Vec scores, std::size_t block, std::size_t column) {
            scores.store(task.scores + column * padded + block * block_outputs);
        });
        for (std::size_t n = 0; n < task.count; ++n) task.codes[n] = search(task, task.residuals[n], task.scores + n * padded);
    }

private:
    using Scores = CodewordScores<Vec, Stored>;

    // Whatever has no candidate cannot win, so the order and the ties are those of a search of all entries.
    static std::int32_t search(const NearestTask& task, const float* residual, const float* scores) {
        const std::size_t blocks = count_blocks(task.entries);
        const double slack = candidate_slack(task, residual);
        const Vec limit = Vec::broadcast(static_cast<float>(static_cast<double>(least_of(scores, blocks)) + slack));
        float best = -__builtin_inff();
        std::size_t code = 0;
        for (std::size_t block = 0; block < blocks; ++block) {
            if (slack < no_bound && Vec::max_lanes(limit - Vec::load(scores + block * block_outputs)) < 0.0f) continue;
            float closeness[block_outputs];
            closeness_of(task, block, residual).store(closeness);
            const std::size_t first = block * block_outputs;
            for (std::size_t l = 0; l < block_outputs && first + l < task.entries; ++l) {
                if (closeness[l] >= best) {
                    best = closeness[l];
                    code = first + l;
                }
            }
        }
        return static_cast<std::int32_t>(code);
    }

    // Lengths whose squares come near the end of f32's range: then the scores say nothing, and every entry is a candidate.
    static constexpr double no_bound = 0x1p100;

    // How far above the least score the winner's can lie. With u = 2^-24, K = dim, E the longest entry and R = |residual|, the
    // errors of what is computed against the true half squared distance, less R^2 / 2, and the true squared distance D are:
    //   a score: K u E R for the chain, u E^2 / 2 for the half norm, u (E^2 / 2 + E R) for their difference
    //   the distance that decides: 4.1 u D, for two rounded operations (one of them squared) and the sum's rounding to f32
    //   1 / (1 + d): equal only where 1 + d is equal within 4.3 u
    // Two scores, hence twice the first; the others are of D / 2 with D <= (E + R)^2, for the winner and for the least score:
    // below 6.5 u (1 + (E + R)^2). Rounding the limit itself to f32 adds u (E + R)^2 at most. The factors below are larger.
    static double candidate_slack(const NearestTask& task, const float* residual) {
        constexpr double u = 0x1p-24;
        double square = 0.0;
        for (std::size_t k = 0; k < task.dim; ++k)
            square += static_cast<double>(residual[k]) * static_cast<double>(residual[k]);
        const double longest = __builtin_sqrt(2.0 * static_cast<double>(task.longest_half_norm));
        const double length = __builtin_sqrt(square);
        const double reach = (longest + length) * (longest + length);
        if (!(reach < no_bound)) return no_bound;
        const double score = (1.01 * static_cast<double>(task.dim) + 4.0) * longest * length + 2.0 * longest * longest;
        return 2.0 * u * score + 10.0 * u * (1.0 + reach);
    }

    static float least_of(const float* scores, std::size_t blocks) {
        Vec least = Vec::load(scores);
        for (std::size_t block = 1; block < blocks; ++block) {
            const Vec next = Vec::load(scores + block * block_outputs);
            least = Vec::if_less(next, least, next, least);
        }
        return -Vec::max_lanes(Vec::broadcast(0.0f) - least);
    }

    static Vec closeness_of(const NearestTask& task, std::size_t block, const float* residual) {
        const auto* entries = Scores::block_rows(task, block);
        typename Vec::Wide sum = Vec::Wide::zero();
        for (std::size_t k = 0; k < task.dim; ++k) {
            const Vec difference = Stored::template load<Vec>(entries + k * block_outputs) - Vec::broadcast(residual[k]);
            sum.add(difference * difference);
        }
        const Vec one = Vec::broadcast(1.0f);
        return one / (sum.narrow() + one);
    }
};

}  // namespace mimi

// Layer norm and attention of one query: the kernels whose sums run across lanes.
#pragma once

#include <cstddef>

#include "kernels/body_elementary.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec>
struct LayerNorm {
    static constexpr float epsilon = 1e-5f;

    static void run(const float* in, const float* weight, const float* bias, float* out, std::size_t dim) {
        const Vec zero = Vec::broadcast(0.0f);
        Vec sum = zero;
        for (std::size_t i = 0; i < dim; i += 16) sum = sum + Vec::load_partial(in + i, dim - i);
        const float mean = Vec::sum_lanes(sum) / static_cast<float>(dim);
        Vec squares = zero;
        for (std::size_t i = 0; i < dim; i += 16) {
            const Vec centred = Vec::load_partial(in + i, dim - i) - Vec::broadcast(mean);
            centred.store_partial(out + i, dim - i);
            const Vec kept = Vec::load_partial(out + i, dim - i);
            squares = Vec::fma(kept, kept, squares);
        }
        const float variance = Vec::sum_lanes(squares) / static_cast<float>(dim);
        const Vec scale = Vec::broadcast(1.0f / __builtin_sqrtf(variance + epsilon));
        for (std::size_t i = 0; i < dim; i += 16) {
            const Vec normal = Vec::load_partial(out + i, dim - i) * scale;
            Vec::fma(normal, Vec::load_partial(weight + i, dim - i), Vec::load_partial(bias + i, dim - i))
                .store_partial(out + i, dim - i);
        }
    }
};

template <class Vec>
struct Attention {
    static void run(const AttentionTask& task) {
        softmax(task, score(task));
        if (task.head_dim <= 16)
            mix<1>(task);
        else if (task.head_dim <= 32)
            mix<2>(task);
        else
            mix<4>(task);
    }

private:
    // Returns the largest score.
    static float score(const AttentionTask& task) {
        float largest = 0.0f;
        for (std::size_t i = 0; i < task.count; ++i) {
            const float* key = task.keys + static_cast<std::size_t>(task.slots[i]) * task.slot_stride;
            Vec sum = Vec::broadcast(0.0f);
            for (std::size_t d = 0; d < task.head_dim; d += 16) {
                const std::size_t left = task.head_dim - d;
                sum = Vec::fma(Vec::load_partial(task.query + d, left), Vec::load_partial(key + d, left), sum);
            }
            const float value = Vec::sum_lanes(sum) * task.scale;
            task.weights[i] = value;
            largest = i == 0 || value > largest ? value : largest;
        }
        return largest;
    }

    static void softmax(const AttentionTask& task, float largest) {
        Vec total = Vec::broadcast(0.0f);
        for (std::size_t i = 0; i < task.count; i += 16) {
            const std::size_t left = task.count - i;
            exp_not_positive(Vec::load_partial(task.weights + i, left) - Vec::broadcast(largest))
                .store_partial(task.weights + i, left);
            total = total + Vec::load_partial(task.weights + i, left);
        }
        const Vec sum = Vec::broadcast(Vec::sum_lanes(total));
        for (std::size_t i = 0; i < task.count; i += 16) {
            const std::size_t left = task.count - i;
            (Vec::load_partial(task.weights + i, left) / sum).store_partial(task.weights + i, left);
        }
    }

    template <std::size_t Vectors>
    static void mix(const AttentionTask& task) {
        for (std::size_t begin = 0; begin < task.head_dim; begin += Vectors * 16) {
            Vec sum[Vectors];
            for (std::size_t v = 0; v < Vectors; ++v) sum[v] = Vec::broadcast(0.0f);
            for (std::size_t i = 0; i < task.count; ++i) {
                const float* value = task.values + static_cast<std::size_t>(task.slots[i]) * task.slot_stride;
                const Vec weight = Vec::broadcast(task.weights[i]);
                for (std::size_t v = 0; v < Vectors; ++v) {
                    const std::size_t d = begin + v * 16;
                    if (d < task.head_dim) sum[v] = Vec::fma(weight, Vec::load_partial(value + d, task.head_dim - d), sum[v]);
                }
            }
            for (std::size_t v = 0; v < Vectors; ++v) {
                const std::size_t d = begin + v * 16;
                if (d < task.head_dim) sum[v].store_partial(task.out + d, task.head_dim - d);
            }
        }
    }
};

}  // namespace mimi

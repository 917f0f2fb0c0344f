// Layer norm and attention of one query: the kernels whose sums run across lanes.
#pragma once

#include <cstddef>

#include "kernels/body_elementary.h"
#include "kernels/kernel_table.h"

namespace mimi {

// Keys that are fetched before their turn; values are fetched while their keys are looked at.
constexpr std::size_t keys_ahead = 12;

// Into the first cache (`Locality` 3) or the second (2). The processor's own look-ahead ends at every page.
template <int Locality>
static inline void fetch_row(const float* row, std::size_t head_dim) {
    for (std::size_t d = 0; d < head_dim; d += 16) __builtin_prefetch(row + d, 0, Locality);
}

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

// The language model's norm: no mean is taken off, and a smaller epsilon.
template <class Vec>
struct RmsNormRow {
    static constexpr float epsilon = 1e-8f;

    static void run(const float* in, const float* weight, float* out, std::size_t dim) {
        Vec squares = Vec::broadcast(0.0f);
        for (std::size_t i = 0; i < dim; i += 16) {
            const Vec x = Vec::load_partial(in + i, dim - i);
            squares = Vec::fma(x, x, squares);
        }
        const float mean = Vec::sum_lanes(squares) / static_cast<float>(dim);
        const Vec scale = Vec::broadcast(1.0f / __builtin_sqrtf(epsilon + mean));
        for (std::size_t i = 0; i < dim; i += 16) {
            const Vec factor = Vec::load_partial(weight + i, dim - i) * scale;
            (Vec::load_partial(in + i, dim - i) * factor).store_partial(out + i, dim - i);
        }
    }
};

// Head widths of whole vectors keep the query and the result in registers; other widths go the general way.
template <class Vec>
struct Attention {
    static void run(const AttentionTask& task) {
        switch (task.head_dim) {
            case 16: return run_whole<1>(task);
            case 32: return run_whole<2>(task);
            case 64: return run_whole<4>(task);
            case 128: return run_whole<8>(task);
            default: break;
        }
        for (std::size_t i = 0; i < task.count; ++i) {
            Vec sum = Vec::broadcast(0.0f);
            for (std::size_t d = 0; d < task.head_dim; d += 16) {
                const std::size_t left = task.head_dim - d;
                sum = Vec::fma(Vec::load_partial(task.query + d, left), Vec::load_partial(key(task, i) + d, left), sum);
            }
            task.weights[i] = Vec::sum_lanes(sum);
        }
        softmax(task);
        for (std::size_t d = 0; d < task.head_dim; d += 16) {
            const std::size_t left = task.head_dim - d;
            Vec sum = Vec::broadcast(0.0f);
            for (std::size_t i = 0; i < task.count; ++i)
                sum = Vec::fma(Vec::broadcast(task.weights[i]), Vec::load_partial(value(task, i) + d, left), sum);
            sum.store_partial(task.out + d, left);
        }
    }

private:
    static const float* key(const AttentionTask& task, std::size_t i) {
        return task.keys + static_cast<std::size_t>(task.slots[i]) * task.slot_stride;
    }
    static const float* value(const AttentionTask& task, std::size_t i) {
        return task.values + static_cast<std::size_t>(task.slots[i]) * task.slot_stride;
    }

    template <std::size_t Vectors>
    static void run_whole(const AttentionTask& task) {
        Vec query[Vectors];
        for (std::size_t v = 0; v < Vectors; ++v) query[v] = Vec::load(task.query + 16 * v);
        for (std::size_t i = 0; i < task.count; ++i) {
            const float* row = key(task, i);
            fetch_row<3>(key(task, i + keys_ahead < task.count ? i + keys_ahead : i), task.head_dim);
            fetch_row<2>(value(task, i), task.head_dim);
            Vec sum = Vec::broadcast(0.0f);
            for (std::size_t v = 0; v < Vectors; ++v) sum = Vec::fma(query[v], Vec::load(row + 16 * v), sum);
            task.weights[i] = Vec::sum_lanes(sum);
        }
        softmax(task);
        Vec sum[Vectors];
        for (std::size_t v = 0; v < Vectors; ++v) sum[v] = Vec::broadcast(0.0f);
        for (std::size_t i = 0; i < task.count; ++i) {
            const float* row = value(task, i);
            if (task.next_keys) fetch_row<2>(task.next_keys + (row - task.values), task.head_dim);
            const Vec weight = Vec::broadcast(task.weights[i]);
            for (std::size_t v = 0; v < Vectors; ++v) sum[v] = Vec::fma(weight, Vec::load(row + 16 * v), sum[v]);
        }
        for (std::size_t v = 0; v < Vectors; ++v) sum[v].store(task.out + 16 * v);
    }

    // Raw scores to weights that add up to one.
    static void softmax(const AttentionTask& task) {
        const Vec scale = Vec::broadcast(task.scale);
        // Every lane starts from the first score, so lanes beyond the last hold nothing foreign.
        const Vec first = Vec::broadcast(task.weights[0] * task.scale);
        Vec most = first;
        for (std::size_t i = 0; i < task.count; i += 16) {
            const std::size_t left = task.count - i;
            const Vec scaled = Vec::load_partial(task.weights + i, left) * scale;
            scaled.store_partial(task.weights + i, left);
            most = Vec::max(left < 16 ? Vec::keep_first(scaled, first, left) : scaled, most);
        }
        const float largest = Vec::max_lanes(most);
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
};

}  // namespace mimi

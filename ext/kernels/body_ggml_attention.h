// Layer norm and attention under `ggml` numerics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/body_attention.h"
#include "kernels/body_ggml_elementary.h"
#include "kernels/ggml_libm.h"
#include "kernels/kernel_table.h"

namespace mimi {

// HSUM8 of the reference: g[l] = v[l+4] + v[l]; (g[0] + g[2]) + (g[1] + g[3]).
template <class Vec>
static inline float sum_of_eight(const float* v) {
    return ((v[4] + v[0]) + (v[6] + v[2])) + ((v[5] + v[1]) + (v[7] + v[3]));
}

template <class Vec>
struct GgmlLayerNorm {
    static void run(const float* in, const float* weight, const float* bias, float* out, std::size_t dim) {
        double sum = 0.0;
        for (std::size_t i = 0; i < dim; ++i) sum += static_cast<double>(in[i]);
        const float mean = static_cast<float>(sum) / static_cast<float>(dim);
        for (std::size_t i = 0; i < dim; ++i) out[i] = in[i] - mean;
        double squares = 0.0;
        std::size_t i = 0;
        for (; i + 8 <= dim; i += 8) {
            float square[8];
            for (std::size_t l = 0; l < 8; ++l) square[l] = out[i + l] * out[i + l];
            squares += static_cast<double>(sum_of_eight<Vec>(square));
        }
        for (; i < dim; ++i) squares += static_cast<double>(out[i] * out[i]);
        const float variance = static_cast<float>(squares / static_cast<double>(dim));
        const float scale = 1.0f / __builtin_sqrtf(variance + 1e-5f);
        for (std::size_t c = 0; c < dim; ++c) {
            const float normal = out[c] * scale;
            out[c] = normal * weight[c] + bias[c];
        }
    }
};

// Operands hold bf16 values: their products are exact in f32, and multiplied and added like the reference's.
template <class Vec>
struct GgmlAttention {
    static void run(const AttentionTask& task) {
        softmax(task, score(task));
        for (std::size_t i = 0; i < task.count; i += 16)
            Vec::round_to_bf16(Vec::load_partial(task.weights + i, task.count - i))
                .store_partial(task.weights + i, task.count - i);
        std::size_t d = 0;
        for (; d + 64 <= task.head_dim; d += 64) mix<4>(task, d);
        for (; d < task.head_dim; d += 16) mix<1>(task, d);
    }

private:
    static constexpr std::size_t step = 32;

    static const float* row(const float* base, const AttentionTask& task, std::size_t i) {
        // A hidden place has weight zero; any finite row serves.
        const std::int32_t slot = task.slots[i] < 0 ? 0 : task.slots[i];
        return base + static_cast<std::size_t>(slot) * task.slot_stride;
    }

    static float dot(const float* key, const float* query, std::size_t dim) {
        Vec low = Vec::broadcast(0.0f);
        Vec high = low;
        const std::size_t whole = dim / step * step;
        for (std::size_t d = 0; d < whole; d += step) {
            low = Vec::load(key + d) * Vec::load(query + d) + low;
            high = Vec::load(key + d + 16) * Vec::load(query + d + 16) + high;
        }
        double sum = static_cast<double>(Vec::sum_lanes(low + high));
        for (std::size_t d = whole; d < dim; ++d) sum += static_cast<double>(key[d] * query[d]);
        return static_cast<float>(sum);
    }

    // Hidden places get minus infinity; returns the largest score.
    static float score(const AttentionTask& task) {
        float largest = -__builtin_inff();
        for (std::size_t i = 0; i < task.count; ++i) {
            float value = -__builtin_inff();
            fetch_row<3>(row(task.keys, task, i + keys_ahead < task.count ? i + keys_ahead : i), task.head_dim);
            fetch_row<2>(row(task.values, task, i), task.head_dim);
            if (task.next_keys) fetch_row<2>(row(task.next_keys, task, i), task.head_dim);
            if (task.slots[i] >= 0) value = dot(row(task.keys, task, i), task.query, task.head_dim) * task.scale;
            task.weights[i] = value;
            largest = largest > value ? largest : value;
        }
        return largest;
    }

    static void softmax(const AttentionTask& task, float largest) {
        const std::size_t whole = task.count / 8 * 8;
        double sum = 0.0;
        for (std::size_t i = 0; i < whole; i += 16) {
            const std::size_t left = whole - i;
            ggml_exp(Vec::load_partial(task.weights + i, left) - Vec::broadcast(largest)).store_partial(task.weights + i, left);
            for (std::size_t eight = i; eight < i + 16 && eight < whole; eight += 8)
                sum += static_cast<double>(sum_of_eight<Vec>(task.weights + eight));
        }
        for (std::size_t i = whole; i < task.count; ++i) {
            task.weights[i] = ggml_expf(task.weights[i] - largest);
            sum += static_cast<double>(task.weights[i]);
        }
        const float inverse = static_cast<float>(1.0 / sum);
        for (std::size_t i = 0; i < task.count; ++i) task.weights[i] = task.weights[i] * inverse;
    }

    // Values d .. d + 16 Vectors - 1 of the result, as far as there are so many.
    template <std::size_t Vectors>
    static void mix(const AttentionTask& task, std::size_t d) {
        const std::size_t whole = task.count / step * step;
        Vec g[4][Vectors];
        for (std::size_t l = 0; l < 8; ++l) {
            Vec a[4][Vectors];
            for (auto& lane : a)
                for (Vec& partial : lane) partial = Vec::broadcast(0.0f);
            for (std::size_t i = l; i < whole; i += step)
                for (std::size_t j = 0; j < 4; ++j) add_weighted(task, i + 8 * j, d, a[j]);
            for (std::size_t v = 0; v < Vectors; ++v) {
                const Vec s = (a[0][v] + a[2][v]) + (a[1][v] + a[3][v]);
                g[l % 4][v] = l < 4 ? s : s + g[l % 4][v];
            }
        }
        for (std::size_t v = 0; v < Vectors; ++v) {
            const std::size_t left = task.head_dim - d - 16 * v;
            typename Vec::Wide sum = Vec::Wide::widen((g[0][v] + g[2][v]) + (g[1][v] + g[3][v]));
            for (std::size_t i = whole; i < task.count; ++i)
                sum.add(Vec::load_partial(row(task.values, task, i) + d + 16 * v, left) * Vec::broadcast(task.weights[i]));
            sum.narrow().store_partial(task.out + d + 16 * v, left);
        }
    }

    template <std::size_t Vectors>
    static void add_weighted(const AttentionTask& task, std::size_t i, std::size_t d, Vec (&sum)[Vectors]) {
        const float* value = row(task.values, task, i) + d;
        const Vec weight = Vec::broadcast(task.weights[i]);
        for (std::size_t v = 0; v < Vectors; ++v) {
            const Vec part = Vectors > 1 ? Vec::load(value + 16 * v) : Vec::load_partial(value, task.head_dim - d);
            sum[v] = part * weight + sum[v];
        }
    }
};

}  // namespace mimi

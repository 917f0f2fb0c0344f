// Layer norm, attention and codeword search under `ggml` numerics.
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
        for (std::size_t d = 0; d < task.head_dim; d += 16) mix(task, d);
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

    // Values d .. d + 15 of the result.
    static void mix(const AttentionTask& task, std::size_t d) {
        const std::size_t left = task.head_dim - d;
        const std::size_t whole = task.count / step * step;
        Vec g[4];
        for (std::size_t l = 0; l < 8; ++l) {
            Vec a[4];
            for (std::size_t j = 0; j < 4; ++j) {
                a[j] = Vec::broadcast(0.0f);
                for (std::size_t i = 8 * j + l; i < whole; i += step) a[j] = weighted(task, i, d, left) + a[j];
            }
            const Vec s = (a[0] + a[2]) + (a[1] + a[3]);
            g[l % 4] = l < 4 ? s : s + g[l % 4];
        }
        typename Vec::Wide sum = Vec::Wide::widen((g[0] + g[2]) + (g[1] + g[3]));
        for (std::size_t i = whole; i < task.count; ++i) sum.add(weighted(task, i, d, left));
        sum.narrow().store_partial(task.out + d, left);
    }

    static Vec weighted(const AttentionTask& task, std::size_t i, std::size_t d, std::size_t left) {
        return Vec::load_partial(row(task.values, task, i) + d, left) * Vec::broadcast(task.weights[i]);
    }
};

template <class Vec>
struct GgmlNearestCodeword {
    static void run(const NearestTask& task) {
        for (std::size_t n = 0; n < task.count; ++n) task.codes[n] = search(task, task.residuals[n]);
    }

private:
    static std::int32_t search(const NearestTask& task, const float* residual) {
        float best = -__builtin_inff();
        std::size_t code = 0;
        for (std::size_t block = 0; block < count_blocks(task.entries); ++block) {
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

    static Vec closeness_of(const NearestTask& task, std::size_t block, const float* residual) {
        const float* entries = task.codebook + block * task.dim * block_outputs;
        typename Vec::Wide sum = Vec::Wide::zero();
        for (std::size_t k = 0; k < task.dim; ++k) {
            const Vec difference = Vec::load(entries + k * block_outputs) - Vec::broadcast(residual[k]);
            sum.add(difference * difference);
        }
        const Vec one = Vec::broadcast(1.0f);
        return one / (sum.narrow() + one);
    }
};

}  // namespace mimi

// Activations and operand rounding under `ggml` numerics, over sixteen lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/float_bits.h"
#include "kernels/body_elementary.h"
#include "kernels/ggml_libm.h"

namespace mimi {

// ggml_expm1f for x <= 0.
template <class Vec>
static inline Vec ggml_expm1_not_positive(Vec x) {
    const auto constant = [](std::uint32_t bits) { return Vec::broadcast(float_of(bits)); };
    const Vec one = Vec::broadcast(1.0f);
    const Vec half = Vec::broadcast(0.5f);
    const Vec magnitude = Vec::absolute(x);
    const Vec far = Vec::truncate(constant(0x3fb8aa3bu) * x - half);
    Vec k = Vec::if_less(magnitude, constant(0x3f851592u), Vec::broadcast(-1.0f), far);
    k = Vec::if_less(constant(0x3eb17218u), magnitude, k, Vec::broadcast(0.0f));
    const Vec high = x - k * constant(0x3f317180u);
    const Vec low = k * constant(0x3717f7d1u);
    const Vec r = high - low;
    const Vec c = (high - r) - low;
    const Vec half_r = half * r;
    const Vec square = r * half_r;
    Vec series = constant(0x36867e54u) + square * constant(0xb457edbbu);
    series = constant(0xb8a670cdu) + square * series;
    series = constant(0x3ad00d01u) + square * series;
    series = constant(0xbd088889u) + square * series;
    series = one + square * series;
    const Vec t = Vec::broadcast(3.0f) - series * half_r;
    const Vec e = square * ((series - t) / (Vec::broadcast(6.0f) - r * t));
    // The published text writes this three times, with c = 0 where k = 0; only signs that are exact differ.
    const Vec small = r - ((r * (e - c) - c) - square);
    const Vec one_halving = half * small - half;
    const Vec many_halvings = Vec::add_exponent(one + small, k) - one;
    Vec result = Vec::if_less(k, Vec::broadcast(-1.0f), many_halvings, one_halving);
    result = Vec::if_less(k, Vec::broadcast(-0.5f), result, small);
    // From 2^-25 down it is x; so is NaN, which adding to an exponent may have lost.
    result = Vec::if_less(constant(0x32ffffffu), magnitude, result, x);
    return Vec::if_less(constant(0x4195b843u), magnitude, Vec::broadcast(-1.0f), result);
}

template <class Vec>
static inline Vec ggml_elu(Vec x) {
    const Vec zero = Vec::broadcast(0.0f);
    return Vec::if_less(zero, x, x, ggml_expm1_not_positive(Vec::if_less(zero, x, zero, x)));
}

// ggml's vector exponential, for x <= 0 and -inf.
template <class Vec>
static inline Vec ggml_exp(Vec x) {
    const Vec magic = Vec::broadcast(round_magic);
    const Vec z = Vec::fma(x, Vec::broadcast(0x1.715476p+0f), magic);
    const Vec n = z - magic;
    const Vec minus_n = Vec::broadcast(0.0f) - n;
    const Vec b = Vec::fma(minus_n, Vec::broadcast(0x1.7f7d1cp-20f), Vec::fma(minus_n, Vec::broadcast(0x1.62e4p-1f), x));
    const Vec u = b * b;
    const Vec first = Vec::fma(Vec::broadcast(0x1.0e4020p-7f), b, Vec::broadcast(0x1.573e2ep-5f));
    const Vec second = Vec::fma(Vec::broadcast(0x1.555e66p-3f), b, Vec::broadcast(0x1.fffdb6p-2f));
    const Vec j = Vec::fma(Vec::fma(first, u, second), u, Vec::broadcast(0x1.ffffecp-1f) * b);
    const Vec k = Vec::exponent_of(z, 0x3f800000u);
    const Vec small_scale = Vec::broadcast(float_of(0x01000000u));
    const Vec rest = Vec::exponent_of(z, 0x7e000000u);
    const Vec distance = Vec::absolute(n);
    const Vec tiny =
        Vec::if_less(Vec::broadcast(192.0f), distance, small_scale * small_scale, Vec::fma(rest, j, rest) * small_scale);
    return Vec::if_less(Vec::broadcast(126.0f), distance, tiny, Vec::fma(k, j, k));
}

template <class Vec>
struct GgmlElementary {
    static void elu_array(const float* in, float* out, std::size_t count) {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16) ggml_elu(Vec::load(in + i)).store(out + i);
        if (i < count) ggml_elu(Vec::load_partial(in + i, count - i)).store_partial(out + i, count - i);
    }

    static void gelu_array(const float* in, float* out, std::size_t count) {
        const float* table = ggml_gelu_table();
        for (std::size_t i = 0; i < count; i += 16) {
            const Vec x = Vec::load_partial(in + i, count - i);
            std::uint16_t index[16];
            x.store_half_bits(index);
            float looked_up[16];
            for (std::size_t l = 0; l < 16; ++l) looked_up[l] = table[index[l]];
            const Vec ten = Vec::broadcast(10.0f);
            const Vec y = Vec::if_less(x, ten, Vec::load(looked_up), x);
            Vec::if_less(Vec::broadcast(0.0f) - ten, x, y, Vec::max(Vec::broadcast(0.0f), x)).store_partial(out + i, count - i);
        }
    }

    static void round_to_half(float* values, std::size_t count) {
        for (std::size_t i = 0; i < count; i += 16)
            Vec::round_to_half(Vec::load_partial(values + i, count - i)).store_partial(values + i, count - i);
    }

    static void round_to_bf16(float* values, std::size_t count) {
        for (std::size_t i = 0; i < count; i += 16)
            Vec::round_to_bf16(Vec::load_partial(values + i, count - i)).store_partial(values + i, count - i);
    }
};

}  // namespace mimi

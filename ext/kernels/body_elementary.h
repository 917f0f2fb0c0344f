// exp, expm1 and erf as fixed sequences of IEEE operations over sixteen lanes, and the activations made of them.
// Polynomials: minimax fits on the stated intervals, rounded to f32.
#pragma once

#include <cstddef>

#include "kernels/kernel_table.h"

namespace mimi {

// Adding and subtracting it rounds |x| < 2^22 to the nearest integer, ties to even.
constexpr float round_magic = 0x1.8p23f;

// x = n ln 2 + r with |r| <= ln 2 / 2 (ln 2 split so that n * ln2_high is exact for |n| < 2^9).
template <class Vec>
struct ExponentialSplit {
    Vec expm1_r;  // expm1(r)
    Vec scale;    // 2^n
};

template <class Vec>
static inline ExponentialSplit<Vec> split_exponential(Vec x) {
    const Vec shifted = Vec::fma(x, Vec::broadcast(0x1.715476p+0f), Vec::broadcast(round_magic));
    const Vec n = shifted - Vec::broadcast(round_magic);
    Vec r = Vec::fma(n, Vec::broadcast(-0x1.62e4p-1f), x);
    r = Vec::fma(n, Vec::broadcast(-0x1.7f7d1cp-20f), r);
    Vec q = Vec::broadcast(0x1.a1a2e2p-13f);
    q = Vec::fma(q, r, Vec::broadcast(0x1.6d75dap-10f));
    q = Vec::fma(q, r, Vec::broadcast(0x1.11108ep-7f));
    q = Vec::fma(q, r, Vec::broadcast(0x1.5554acp-5f));
    q = Vec::fma(q, r, Vec::broadcast(0x1.555556p-3f));
    q = Vec::fma(q, r, Vec::broadcast(0x1.0p-1f));
    return {Vec::fma(r * r, q, r), Vec::exponent_of(shifted, 0x3f800000u)};
}

// exp(x) for x <= 0, within 1 ULP; 0 below -87, where it is under 2^-125. NaN stays NaN here and below: max(low, x) gives x.
template <class Vec>
static inline Vec exp_not_positive(Vec x) {
    const Vec lowest = Vec::broadcast(-87.0f);
    const ExponentialSplit<Vec> split = split_exponential(Vec::max(lowest, x));
    return Vec::if_less(x, lowest, Vec::broadcast(0.0f), Vec::fma(split.expm1_r, split.scale, split.scale));
}

// expm1(x) for x <= 0, within 2 ULP; -1 from -18 down.
template <class Vec>
static inline Vec expm1_not_positive(Vec x) {
    const ExponentialSplit<Vec> split = split_exponential(Vec::max(Vec::broadcast(-18.0f), x));
    return Vec::fma(split.expm1_r, split.scale, split.scale - Vec::broadcast(1.0f));
}

template <class Vec>
static inline Vec elu(Vec x) {
    const Vec zero = Vec::broadcast(0.0f);
    return Vec::if_less(zero, x, x, expm1_not_positive(Vec::if_less(zero, x, zero, x)));
}

// erf(x) within 3 ULP: x P(x^2) below 0.921875, 1 - exp(-R(|x|)) above with R = -log(erfc) fitted on 0.9 .. 4, 1 from 4 on.
template <class Vec>
static inline Vec erf(Vec x) {
    const Vec magnitude = Vec::absolute(x);
    const Vec u = x * x;
    Vec p = Vec::broadcast(0x1.5ebd9ep-14f);
    p = Vec::fma(p, u, Vec::broadcast(-0x1.aad91cp-11f));
    p = Vec::fma(p, u, Vec::broadcast(0x1.54da22p-8f));
    p = Vec::fma(p, u, Vec::broadcast(-0x1.b8108cp-6f));
    p = Vec::fma(p, u, Vec::broadcast(0x1.ce2e22p-4f));
    p = Vec::fma(p, u, Vec::broadcast(-0x1.812744p-2f));
    p = Vec::fma(p, u, Vec::broadcast(0x1.20dd76p+0f));
    const Vec four = Vec::broadcast(4.0f);
    const Vec t = Vec::if_less(magnitude, four, magnitude, four);
    Vec rate = Vec::broadcast(0x1.5d71eep-16f);
    rate = Vec::fma(rate, t, Vec::broadcast(-0x1.c45920p-12f));
    rate = Vec::fma(rate, t, Vec::broadcast(0x1.106254p-8f));
    rate = Vec::fma(rate, t, Vec::broadcast(-0x1.9aebb2p-6f));
    rate = Vec::fma(rate, t, Vec::broadcast(0x1.bb454ap-4f));
    rate = Vec::fma(rate, t, Vec::broadcast(0x1.444d1ep-1f));
    rate = Vec::fma(rate, t, Vec::broadcast(0x1.212626p+0f));
    rate = Vec::fma(rate, t, Vec::broadcast(-0x1.62d8e2p-13f));
    const Vec far = Vec::broadcast(1.0f) - exp_not_positive(Vec::broadcast(0.0f) - rate);
    return Vec::if_less(magnitude, Vec::broadcast(0.921875f), x * p, Vec::copy_sign(far, x));
}

template <class Vec>
static inline Vec gelu(Vec x) {
    const Vec half_x = Vec::broadcast(0.5f) * x;
    return half_x * (Vec::broadcast(1.0f) + erf(x * Vec::broadcast(0x1.6a09e6p-1f)));
}

// u / (1 + exp(-u)), by the exponential of a number that is not positive on either side of zero.
template <class Vec>
static inline Vec silu(Vec u) {
    const Vec zero = Vec::broadcast(0.0f);
    const Vec e = exp_not_positive(zero - Vec::absolute(u));
    return Vec::if_less(u, zero, u * e, u) / (Vec::broadcast(1.0f) + e);
}

template <class Vec>
struct Elementary {
    static void elu_array(const float* in, float* out, std::size_t count) {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16) elu(Vec::load(in + i)).store(out + i);
        if (i < count) elu(Vec::load_partial(in + i, count - i)).store_partial(out + i, count - i);
    }
    static void silu_gate(const float* u, const float* v, float* out, std::size_t count) {
        for (std::size_t i = 0; i < count; i += 16) {
            const std::size_t left = count - i;
            (silu(Vec::load_partial(u + i, left)) * Vec::load_partial(v + i, left)).store_partial(out + i, left);
        }
    }
    static void gelu_array(const float* in, float* out, std::size_t count) {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16) gelu(Vec::load(in + i)).store(out + i);
        if (i < count) gelu(Vec::load_partial(in + i, count - i)).store_partial(out + i, count - i);
    }
};

}  // namespace mimi

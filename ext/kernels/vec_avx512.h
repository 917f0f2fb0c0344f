// Sixteen floats in one AVX-512 register (F, DQ, VL).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mimi {

struct Avx512Vec {
    static constexpr std::size_t wide_blocks = 2, wide_columns = 8, narrow_blocks = 4, narrow_columns = 2;

    __m512 v;

    static __mmask16 first_lanes(std::size_t count) {
        return static_cast<__mmask16>(count >= 16 ? 0xffffu : (1u << count) - 1u);
    }

    static Avx512Vec broadcast(float value) { return {_mm512_set1_ps(value)}; }
    static Avx512Vec load(const float* source) { return {_mm512_loadu_ps(source)}; }
    static Avx512Vec load_partial(const float* source, std::size_t count) {
        return {_mm512_maskz_loadu_ps(first_lanes(count), source)};
    }
    void store(float* target) const { _mm512_storeu_ps(target, v); }
    void store_partial(float* target, std::size_t count) const { _mm512_mask_storeu_ps(target, first_lanes(count), v); }

    friend Avx512Vec operator+(Avx512Vec a, Avx512Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
    friend Avx512Vec operator-(Avx512Vec a, Avx512Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
    friend Avx512Vec operator*(Avx512Vec a, Avx512Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
    friend Avx512Vec operator/(Avx512Vec a, Avx512Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
    static Avx512Vec fma(Avx512Vec a, Avx512Vec b, Avx512Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    static Avx512Vec max(Avx512Vec a, Avx512Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Avx512Vec if_less(Avx512Vec a, Avx512Vec b, Avx512Vec yes, Avx512Vec no) {
        return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), no.v, yes.v)};
    }
    static Avx512Vec absolute(Avx512Vec a) { return {_mm512_abs_ps(a.v)}; }
    static Avx512Vec copy_sign(Avx512Vec a, Avx512Vec b) {
        return {_mm512_or_ps(a.v, _mm512_and_ps(b.v, _mm512_set1_ps(-0.0f)))};
    }
    static Avx512Vec power_of_two(Avx512Vec shifted) {
        const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
        return {_mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(0x3f800000)))};
    }
    static float sum_lanes(Avx512Vec a) {
        const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }
    static float max_lanes(Avx512Vec a) { return _mm512_reduce_max_ps(a.v); }
};

}  // namespace mimi

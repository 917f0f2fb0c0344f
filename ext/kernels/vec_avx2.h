// Sixteen floats in two AVX2 registers, with FMA.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace mimi {

struct Avx2Vec {
    static constexpr std::size_t wide_blocks = 1, wide_columns = 6, narrow_blocks = 2, narrow_columns = 2;

    __m256 low, high;

    // All ones in the lanes below `count`, for lanes first .. first + 7.
    static __m256i lane_mask(std::size_t count, int first) {
        const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
    }

    static Avx2Vec broadcast(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
    static Avx2Vec load(const float* source) { return {_mm256_loadu_ps(source), _mm256_loadu_ps(source + 8)}; }
    static Avx2Vec load_partial(const float* source, std::size_t count) {
        return {_mm256_maskload_ps(source, lane_mask(count, 0)), _mm256_maskload_ps(source + 8, lane_mask(count, 8))};
    }
    void store(float* target) const {
        _mm256_storeu_ps(target, low);
        _mm256_storeu_ps(target + 8, high);
    }
    void store_partial(float* target, std::size_t count) const {
        _mm256_maskstore_ps(target, lane_mask(count, 0), low);
        _mm256_maskstore_ps(target + 8, lane_mask(count, 8), high);
    }

    friend Avx2Vec operator+(Avx2Vec a, Avx2Vec b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
    friend Avx2Vec operator-(Avx2Vec a, Avx2Vec b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
    friend Avx2Vec operator*(Avx2Vec a, Avx2Vec b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
    friend Avx2Vec operator/(Avx2Vec a, Avx2Vec b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
    static Avx2Vec fma(Avx2Vec a, Avx2Vec b, Avx2Vec c) {
        return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
    }
    static Avx2Vec max(Avx2Vec a, Avx2Vec b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
    static Avx2Vec if_less(Avx2Vec a, Avx2Vec b, Avx2Vec yes, Avx2Vec no) {
        return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
                _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
    }
    static Avx2Vec absolute(Avx2Vec a) {
        const __m256 sign = _mm256_set1_ps(-0.0f);
        return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
    }
    static Avx2Vec copy_sign(Avx2Vec a, Avx2Vec b) {
        const __m256 sign = _mm256_set1_ps(-0.0f);
        return {_mm256_or_ps(a.low, _mm256_and_ps(sign, b.low)), _mm256_or_ps(a.high, _mm256_and_ps(sign, b.high))};
    }
    static __m256 power_of_two_half(__m256 shifted) {
        const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
        return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(0x3f800000)));
    }
    static Avx2Vec power_of_two(Avx2Vec shifted) { return {power_of_two_half(shifted.low), power_of_two_half(shifted.high)}; }
    static float sum_lanes(Avx2Vec a) {
        const __m256 eight = _mm256_add_ps(a.low, a.high);
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }
    static float max_lanes(Avx2Vec a) {
        const __m256 eight = _mm256_max_ps(a.low, a.high);
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    }
};

}  // namespace mimi

// Sixteen floats in one AVX-512 register (F, DQ, VL).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/indices.h"

namespace mimi {

struct Avx512Vec {
    static constexpr bool in_registers = written_out;
    static constexpr std::size_t wide_blocks = 2, wide_columns = 8, narrow_blocks = 4, narrow_columns = 2, short_columns = 4;

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
    static Avx512Vec exponent_of(Avx512Vec shifted, std::uint32_t bias) {
        const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
        return {_mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(static_cast<int>(bias))))};
    }
    static Avx512Vec add_exponent(Avx512Vec a, Avx512Vec n) {
        const __m512i exponent = _mm512_slli_epi32(_mm512_cvttps_epi32(n.v), 23);
        return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), exponent))};
    }
    static Avx512Vec truncate(Avx512Vec a) { return {_mm512_cvtepi32_ps(_mm512_cvttps_epi32(a.v))}; }
    static Avx512Vec round_to_half(Avx512Vec a) {
        return {_mm512_cvtph_ps(_mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))};
    }
    static Avx512Vec round_to_bf16(Avx512Vec a) {
        const __m512i bits = _mm512_castps_si512(a.v);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
        const __mmask16 is_nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
        const __m512i chosen = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
        return {_mm512_castsi512_ps(_mm512_and_si512(chosen, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
    }
    void store_half_bits(std::uint16_t* target) const {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(target),
                            _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }

    static Avx512Vec load_half_bits(const std::uint8_t* source) {
        return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)))};
    }
    static Avx512Vec load_bfloat16_bits(const std::uint8_t* source) {
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
    }
    static Avx512Vec load_bytes(const std::uint8_t* source) {
        return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source))))};
    }
    void store_low_bytes(std::int8_t* target) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm512_cvtepi32_epi8(_mm512_castps_si512(v)));
    }

    struct Wide {
        __m512d low, high;
        static Wide zero() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
        static Wide widen(Avx512Vec a) {
            return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))};
        }
        void add(Avx512Vec a) {
            const Wide wide = widen(a);
            low = _mm512_add_pd(low, wide.low);
            high = _mm512_add_pd(high, wide.high);
        }
        // Adds weights[l] x, whose product double holds exactly.
        void add_product(const float* weights, float x) {
            const __m512d value = _mm512_set1_pd(static_cast<double>(x));
            low = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(weights)), value, low);
            high = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(weights + 8)), value, high);
        }
        Avx512Vec narrow() const {
            return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1)};
        }
    };

    static Avx512Vec keep_first(Avx512Vec a, Avx512Vec b, std::size_t count) {
        return {_mm512_mask_blend_ps(first_lanes(count), b.v, a.v)};
    }
    static float sum_lanes(Avx512Vec a) {
        const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }
    static float max_lanes(Avx512Vec a) { return _mm512_reduce_max_ps(a.v); }
};

// Sixteen exact sums of products of bytes, widened to 16 bits: a product of bytes alone would saturate.
struct Avx512Dots {
    static constexpr std::size_t wide_blocks = 2, wide_columns = 4, narrow_blocks = 4, narrow_columns = 2;

    // Even and odd ones of each lane's four.
    struct Weights {
        __m512i even, odd;
    };
    using Values = Weights;

    __m512i v;

    static Avx512Dots start(std::int32_t value) { return {_mm512_set1_epi32(value)}; }
    static Weights load(const std::uint8_t* source) {
        const __m512i bytes = _mm512_loadu_si512(source);
        return {_mm512_and_si512(bytes, _mm512_set1_epi16(0xff)), _mm512_srli_epi16(bytes, 8)};
    }
    static Values broadcast(const std::int8_t* source) {
        std::int32_t four;
        __builtin_memcpy(&four, source, sizeof(four));
        const __m512i values = _mm512_set1_epi32(four);
        return {_mm512_srai_epi16(_mm512_slli_epi16(values, 8), 8), _mm512_srai_epi16(values, 8)};
    }
    void add(const Weights& weights, const Values& values) {
        v = _mm512_add_epi32(
            v, _mm512_add_epi32(_mm512_madd_epi16(weights.even, values.even), _mm512_madd_epi16(weights.odd, values.odd)));
    }
    Avx512Vec sum() const { return {_mm512_cvtepi32_ps(v)}; }
};

// Sixty-four bytes as their low and their high four bits.
struct Avx512NibblePair {
    __m512i low, high;

    static Avx512NibblePair load(const std::uint8_t* source) {
        const __m512i nibble = _mm512_set1_epi8(15);
        const __m512i bytes = _mm512_loadu_si512(source);
        return {_mm512_and_si512(bytes, nibble), _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble)};
    }
};

// Sixteen exact sums of products of weights of 0 .. 15 and values of -127 .. 127, kept in 16 bits: what eight additions of two
// products each come to stays below 2^15.
struct Avx512NibbleDots {
    static constexpr std::size_t wide_blocks = 2, wide_columns = 4, narrow_blocks = 4, narrow_columns = 2;

    using Pair = Avx512NibblePair;
    using Values = __m512i;

    __m512i v;

    static Avx512NibbleDots start() { return {_mm512_setzero_si512()}; }
    static Pair load(const std::uint8_t* source) { return Pair::load(source); }
    static Values broadcast(const std::int8_t* source) {
        std::int32_t four;
        __builtin_memcpy(&four, source, sizeof(four));
        return _mm512_set1_epi32(four);
    }
    void add(__m512i weights, Values values) { v = _mm512_add_epi16(v, _mm512_maddubs_epi16(weights, values)); }
    Avx512Vec sum(std::int32_t shift) const {
        const __m512i pairs = _mm512_madd_epi16(v, _mm512_set1_epi16(1));
        return {_mm512_cvtepi32_ps(_mm512_add_epi32(pairs, _mm512_set1_epi32(shift)))};
    }
};

}  // namespace mimi

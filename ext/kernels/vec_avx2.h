// Sixteen floats in two AVX2 registers, with FMA.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/indices.h"

namespace mimi {

struct Avx2Vec {
    static constexpr bool in_registers = written_out;
    static constexpr std::size_t wide_blocks = 1, wide_columns = 6, narrow_blocks = 2, narrow_columns = 2, short_columns = 3;

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
    template <class Function>
    static Avx2Vec both(Avx2Vec a, Function function) {
        return {function(a.low), function(a.high)};
    }
    static Avx2Vec exponent_of(Avx2Vec shifted, std::uint32_t bias) {
        return both(shifted, [bias](__m256 half) {
            const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(half), 23);
            return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(static_cast<int>(bias))));
        });
    }
    static __m256 add_exponent(__m256 a, __m256 n) {
        const __m256i exponent = _mm256_slli_epi32(_mm256_cvttps_epi32(n), 23);
        return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent));
    }
    static Avx2Vec add_exponent(Avx2Vec a, Avx2Vec n) { return {add_exponent(a.low, n.low), add_exponent(a.high, n.high)}; }
    static Avx2Vec truncate(Avx2Vec a) {
        return both(a, [](__m256 half) { return _mm256_cvtepi32_ps(_mm256_cvttps_epi32(half)); });
    }
    static Avx2Vec round_to_half(Avx2Vec a) {
        return both(a, [](__m256 half) { return _mm256_cvtph_ps(_mm256_cvtps_ph(half, _MM_FROUND_TO_NEAREST_INT)); });
    }
    static Avx2Vec round_to_bf16(Avx2Vec a) {
        return both(a, [](__m256 half) {
            const __m256i bits = _mm256_castps_si256(half);
            const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
            const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
            const __m256 is_nan = _mm256_cmp_ps(half, half, _CMP_UNORD_Q);
            const __m256 chosen = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), is_nan);
            return _mm256_and_ps(chosen, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000u))));
        });
    }
    void store_half_bits(std::uint16_t* target) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm256_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(target + 8), _mm256_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
    }

    static Avx2Vec load_half_bits(const std::uint8_t* source) {
        return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source))),
                _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + 16)))};
    }
    static __m256 widen_bfloat16(const std::uint8_t* source) {
        const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
    static Avx2Vec load_bfloat16_bits(const std::uint8_t* source) {
        return {widen_bfloat16(source), widen_bfloat16(source + 16)};
    }
    static __m256 widen_bytes(const std::uint8_t* source) {
        const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
    }
    static Avx2Vec load_bytes(const std::uint8_t* source) { return {widen_bytes(source), widen_bytes(source + 8)}; }
    void store_low_bytes(std::int8_t* target) const {
        const __m256i byte = _mm256_set1_epi32(0xff);
        const __m256i words = _mm256_packus_epi32(_mm256_and_si256(_mm256_castps_si256(low), byte),
                                                  _mm256_and_si256(_mm256_castps_si256(high), byte));
        const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(target),
                         _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
    }

    struct Wide {
        __m256d part[4];
        static Wide zero() { return widen(broadcast(0.0f)); }
        static Wide widen(Avx2Vec a) {
            return {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.low)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.low, 1)),
                     _mm256_cvtps_pd(_mm256_castps256_ps128(a.high)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.high, 1))}};
        }
        void add(Avx2Vec a) {
            const Wide wide = widen(a);
            for (int i = 0; i < 4; ++i) part[i] = _mm256_add_pd(part[i], wide.part[i]);
        }
        // Adds weights[l] x, whose product double holds exactly.
        void add_product(const float* weights, float x) {
            const __m256d value = _mm256_set1_pd(static_cast<double>(x));
            for (int i = 0; i < 4; ++i)
                part[i] = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm_loadu_ps(weights + 4 * i)), value, part[i]);
        }
        Avx2Vec narrow() const {
            return {_mm256_set_m128(_mm256_cvtpd_ps(part[1]), _mm256_cvtpd_ps(part[0])),
                    _mm256_set_m128(_mm256_cvtpd_ps(part[3]), _mm256_cvtpd_ps(part[2]))};
        }
    };

    static Avx2Vec keep_first(Avx2Vec a, Avx2Vec b, std::size_t count) {
        return {_mm256_blendv_ps(b.low, a.low, _mm256_castsi256_ps(lane_mask(count, 0))),
                _mm256_blendv_ps(b.high, a.high, _mm256_castsi256_ps(lane_mask(count, 8)))};
    }
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

// Sixteen exact sums of products of bytes, widened to 16 bits: a product of bytes alone would saturate.
struct Avx2Dots {
    static constexpr std::size_t wide_blocks = 1, wide_columns = 4, narrow_blocks = 1, narrow_columns = 2;

    // Even and odd ones of each lane's four.
    struct Weights {
        __m256i low_even, low_odd, high_even, high_odd;
    };
    struct Values {
        __m256i even, odd;
    };

    __m256i low, high;

    static Avx2Dots start(std::int32_t value) { return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
    static Weights load(const std::uint8_t* source) {
        const __m256i byte = _mm256_set1_epi16(0xff);
        const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
        const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32));
        return {_mm256_and_si256(first, byte), _mm256_srli_epi16(first, 8), _mm256_and_si256(second, byte),
                _mm256_srli_epi16(second, 8)};
    }
    static Values broadcast(const std::int8_t* source) {
        std::int32_t four;
        __builtin_memcpy(&four, source, sizeof(four));
        const __m256i values = _mm256_set1_epi32(four);
        return {_mm256_srai_epi16(_mm256_slli_epi16(values, 8), 8), _mm256_srai_epi16(values, 8)};
    }
    void add(const Weights& weights, const Values& values) {
        low = _mm256_add_epi32(low, _mm256_add_epi32(_mm256_madd_epi16(weights.low_even, values.even),
                                                     _mm256_madd_epi16(weights.low_odd, values.odd)));
        high = _mm256_add_epi32(high, _mm256_add_epi32(_mm256_madd_epi16(weights.high_even, values.even),
                                                       _mm256_madd_epi16(weights.high_odd, values.odd)));
    }
    Avx2Vec sum() const { return {_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)}; }
};

// Sixteen exact sums of products of weights of 0 .. 15 and values of -127 .. 127, kept in 16 bits: what eight additions of two
// products each come to stays below 2^15.
struct Avx2NibbleDots {
    static constexpr std::size_t wide_blocks = 1, wide_columns = 4, narrow_blocks = 1, narrow_columns = 2;

    struct Weights {
        __m256i first, second;
    };
    struct Pair {
        Weights low, high;
    };
    using Values = __m256i;

    __m256i first, second;

    static Avx2NibbleDots start() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    static Pair load(const std::uint8_t* source) {
        const __m256i nibble = _mm256_set1_epi8(15);
        const __m256i one = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
        const __m256i two = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + 32));
        return {{_mm256_and_si256(one, nibble), _mm256_and_si256(two, nibble)},
                {_mm256_and_si256(_mm256_srli_epi16(one, 4), nibble), _mm256_and_si256(_mm256_srli_epi16(two, 4), nibble)}};
    }
    static Values broadcast(const std::int8_t* source) {
        std::int32_t four;
        __builtin_memcpy(&four, source, sizeof(four));
        return _mm256_set1_epi32(four);
    }
    void add(const Weights& weights, Values values) {
        first = _mm256_add_epi16(first, _mm256_maddubs_epi16(weights.first, values));
        second = _mm256_add_epi16(second, _mm256_maddubs_epi16(weights.second, values));
    }
    Avx2Vec sum(std::int32_t shift) const {
        const __m256i one = _mm256_set1_epi16(1);
        const __m256i all = _mm256_set1_epi32(shift);
        return {_mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(first, one), all)),
                _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_madd_epi16(second, one), all))};
    }
};

}  // namespace mimi

// Sixteen exact sums of products of bytes, and of weights of four bits, by the instruction made for them (AVX-512 VNNI).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/vec_avx512.h"

namespace mimi {

struct Avx512VnniDots {
    static constexpr std::size_t wide_blocks = 2, wide_columns = 6, narrow_blocks = 4, narrow_columns = 2;

    using Weights = __m512i;
    using Values = __m512i;

    __m512i v;

    static Avx512VnniDots start(std::int32_t value) { return {_mm512_set1_epi32(value)}; }
    static Weights load(const std::uint8_t* source) { return _mm512_loadu_si512(source); }
    static Values broadcast(const std::int8_t* source) {
        std::int32_t four;
        __builtin_memcpy(&four, source, sizeof(four));
        return _mm512_set1_epi32(four);
    }
    void add(Weights weights, Values values) { v = _mm512_dpbusd_epi32(v, weights, values); }
    Avx512Vec sum() const { return {_mm512_cvtepi32_ps(v)}; }
};

struct Avx512VnniNibbleDots {
    static constexpr std::size_t wide_blocks = 2, wide_columns = 6, narrow_blocks = 4, narrow_columns = 2;

    using Pair = Avx512NibblePair;
    using Values = __m512i;

    __m512i v;

    static Avx512VnniNibbleDots start() { return {_mm512_setzero_si512()}; }
    static Pair load(const std::uint8_t* source) { return Pair::load(source); }
    static Values broadcast(const std::int8_t* source) { return Avx512VnniDots::broadcast(source); }
    void add(__m512i weights, Values values) { v = _mm512_dpbusd_epi32(v, weights, values); }
    Avx512Vec sum(std::int32_t shift) const { return {_mm512_cvtepi32_ps(_mm512_add_epi32(v, _mm512_set1_epi32(shift)))}; }
};

}  // namespace mimi

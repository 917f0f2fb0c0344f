// Sixteen floats as plain loops: the definition of every lane operation. No intrinsics; fma is one rounding on any machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/float_bits.h"
#include "base/half_float.h"

namespace mimi {

struct ScalarVec {
    static constexpr bool in_registers = false;
    // Register tile of the matrix product: blocks of 16 outputs by columns.
    static constexpr std::size_t wide_blocks = 1, wide_columns = 4, narrow_blocks = 1, narrow_columns = 1, short_columns = 2;

    float lane[16];

    static ScalarVec broadcast(float value) {
        return make([=](int) { return value; });
    }
    static ScalarVec load(const float* source) {
        return make([=](int l) { return source[l]; });
    }
    // Lanes from `count` on are zero; a count above 16 means all.
    static ScalarVec load_partial(const float* source, std::size_t count) {
        return make([=](int l) { return static_cast<std::size_t>(l) < count ? source[l] : 0.0f; });
    }
    void store(float* target) const { store_partial(target, 16); }
    void store_partial(float* target, std::size_t count) const {
        for (std::size_t l = 0; l < 16 && l < count; ++l) target[l] = lane[l];
    }

    friend ScalarVec operator+(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return a.lane[l] + b.lane[l]; });
    }
    friend ScalarVec operator-(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return a.lane[l] - b.lane[l]; });
    }
    friend ScalarVec operator*(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return a.lane[l] * b.lane[l]; });
    }
    friend ScalarVec operator/(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return a.lane[l] / b.lane[l]; });
    }
    // a * b + c, one rounding.
    static ScalarVec fma(ScalarVec a, ScalarVec b, ScalarVec c) {
        return make([&](int l) { return __builtin_fmaf(a.lane[l], b.lane[l], c.lane[l]); });
    }
    // a > b ? a : b, so b where either is NaN.
    static ScalarVec max(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l]; });
    }
    // a < b ? yes : no
    static ScalarVec if_less(ScalarVec a, ScalarVec b, ScalarVec yes, ScalarVec no) {
        return make([&](int l) { return a.lane[l] < b.lane[l] ? yes.lane[l] : no.lane[l]; });
    }
    static ScalarVec absolute(ScalarVec a) {
        return make([&](int l) { return float_of(bits_of(a.lane[l]) & 0x7fffffffu); });
    }
    // Magnitude of `a` (not negative) with the sign of `b`.
    static ScalarVec copy_sign(ScalarVec a, ScalarVec b) {
        return make([&](int l) { return float_of(bits_of(a.lane[l]) | (bits_of(b.lane[l]) & 0x80000000u)); });
    }
    // The float with bits (bits(shifted) << 23) + bias. With bias 0x3f800000 and a value rounded by adding 1.5 * 2^23, which
    // leaves the integer n in its low bits, that is 2^n.
    static ScalarVec exponent_of(ScalarVec shifted, std::uint32_t bias) {
        return make([&](int l) { return float_of((bits_of(shifted.lane[l]) << 23) + bias); });
    }
    // a 2^n by adding n, a whole number, to the exponent field.
    static ScalarVec add_exponent(ScalarVec a, ScalarVec n) {
        return make([&](int l) { return float_of(bits_of(a.lane[l]) + (static_cast<std::uint32_t>(whole(n.lane[l])) << 23)); });
    }
    // Toward zero; -2^31 for what is not within 32 bits, NaN and infinities among it, as the vector instructions have it.
    static std::int32_t whole(float a) { return a >= -0x1p31f && a < 0x1p31f ? static_cast<std::int32_t>(a) : -2147483647 - 1; }
    static ScalarVec truncate(ScalarVec a) {
        return make([&](int l) { return static_cast<float>(whole(a.lane[l])); });
    }
    static ScalarVec round_to_half(ScalarVec a) {
        return make([&](int l) { return half_to_float(float_to_half(a.lane[l])); });
    }
    static ScalarVec round_to_bf16(ScalarVec a) {
        return make([&](int l) { return round_to_bfloat16(a.lane[l]); });
    }
    void store_half_bits(std::uint16_t* target) const {
        for (int l = 0; l < 16; ++l) target[l] = float_to_half(lane[l]);
    }
    // Sixteen halves, least significant byte first.
    static ScalarVec load_half_bits(const std::uint8_t* source) {
        return make([=](int l) { return half_to_float(static_cast<std::uint16_t>(source[2 * l] | source[2 * l + 1] << 8)); });
    }
    // Sixteen values of bfloat16, the same way.
    static ScalarVec load_bfloat16_bits(const std::uint8_t* source) {
        return make(
            [=](int l) { return bfloat16_to_float(static_cast<std::uint16_t>(source[2 * l] | source[2 * l + 1] << 8)); });
    }
    // Sixteen unsigned bytes as numbers.
    static ScalarVec load_bytes(const std::uint8_t* source) {
        return make([=](int l) { return static_cast<float>(source[l]); });
    }
    // The low byte of each lane's bits.
    void store_low_bytes(std::int8_t* target) const {
        for (int l = 0; l < 16; ++l) target[l] = static_cast<std::int8_t>(bits_of(lane[l]) & 0xffu);
    }

    // Sixteen sums in double.
    struct Wide {
        double lane[16];
        static Wide zero() { return widen(broadcast(0.0f)); }
        static Wide widen(ScalarVec a) {
            Wide result;
            for (int l = 0; l < 16; ++l) result.lane[l] = static_cast<double>(a.lane[l]);
            return result;
        }
        void add(ScalarVec a) {
            for (int l = 0; l < 16; ++l) lane[l] = lane[l] + static_cast<double>(a.lane[l]);
        }
        // Adds weights[l] x, whose product double holds exactly.
        void add_product(const float* weights, float x) {
            for (int l = 0; l < 16; ++l) lane[l] = lane[l] + static_cast<double>(weights[l]) * static_cast<double>(x);
        }
        ScalarVec narrow() const {
            return make([&](int l) { return static_cast<float>(lane[l]); });
        }
    };

    // The first `count` lanes of a, the others of b.
    static ScalarVec keep_first(ScalarVec a, ScalarVec b, std::size_t count) {
        return make([&](int l) { return static_cast<std::size_t>(l) < count ? a.lane[l] : b.lane[l]; });
    }
    // The tree of lanes16.
    static float sum_lanes(ScalarVec a) {
        for (int half = 8; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) a.lane[l] = a.lane[l] + a.lane[l + half];
        return a.lane[0];
    }
    static float max_lanes(ScalarVec a) {
        float best = a.lane[0];
        for (int l = 1; l < 16; ++l) best = a.lane[l] > best ? a.lane[l] : best;
        return best;
    }

private:
    template <class Function>
    static ScalarVec make(Function function) {
        ScalarVec result;
        for (int l = 0; l < 16; ++l) result.lane[l] = function(l);
        return result;
    }

    friend struct ScalarDots;
    friend struct ScalarNibbleDots;
};

// Sixteen exact sums of products of bytes: weights that lie 128 too high, and values of -127 .. 127.
struct ScalarDots {
    static constexpr std::size_t wide_blocks = 1, wide_columns = 4, narrow_blocks = 1, narrow_columns = 1;

    using Weights = const std::uint8_t*;  // [16][4]
    using Values = const std::int8_t*;    // [4]

    std::int32_t lane[16];

    static ScalarDots start(std::int32_t value) {
        ScalarDots dots;
        for (std::int32_t& sum : dots.lane) sum = value;
        return dots;
    }
    static Weights load(const std::uint8_t* source) { return source; }
    static Values broadcast(const std::int8_t* source) { return source; }
    void add(Weights weights, Values values) {
        for (int l = 0; l < 16; ++l)
            for (int i = 0; i < 4; ++i) lane[l] += weights[4 * l + i] * values[i];
    }
    // A sum of 32 products is exact in f32.
    ScalarVec sum() const {
        return ScalarVec::make([this](int l) { return static_cast<float>(lane[l]); });
    }
};

// Sixteen exact sums of products of weights of 0 .. 15, two to a byte, and values of -127 .. 127.
struct ScalarNibbleDots {
    static constexpr std::size_t wide_blocks = 1, wide_columns = 4, narrow_blocks = 1, narrow_columns = 1;

    struct Weights {
        const std::uint8_t* bytes;  // [16][4]
        unsigned shift;
    };
    struct Pair {
        Weights low, high;
    };
    using Values = const std::int8_t*;  // [4]

    std::int32_t lane[16];

    static ScalarNibbleDots start() { return {}; }
    static Pair load(const std::uint8_t* source) { return {{source, 0}, {source, 4}}; }
    static Values broadcast(const std::int8_t* source) { return source; }
    void add(const Weights& weights, Values values) {
        for (int l = 0; l < 16; ++l)
            for (int i = 0; i < 4; ++i) lane[l] += ((weights.bytes[4 * l + i] >> weights.shift) & 15) * values[i];
    }
    ScalarVec sum(std::int32_t shift) const {
        return ScalarVec::make([this, shift](int l) { return static_cast<float>(lane[l] + shift); });
    }
};

}  // namespace mimi

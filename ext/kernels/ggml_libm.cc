#include "kernels/ggml_libm.h"

#include <array>
#include <cmath>

#include "base/float_bits.h"
#include "base/half_float.h"
#include "kernels/rotary.h"

namespace mimi {

namespace {

// 2^(i / 32), rounded to double.
constexpr std::array<double, 32> thirty_second_powers = {
    0x1.0000000000000p+0, 0x1.059b0d3158574p+0, 0x1.0b5586cf9890fp+0, 0x1.11301d0125b51p+0, 0x1.172b83c7d517bp+0,
    0x1.1d4873168b9aap+0, 0x1.2387a6e756238p+0, 0x1.29e9df51fdee1p+0, 0x1.306fe0a31b715p+0, 0x1.371a7373aa9cbp+0,
    0x1.3dea64c123422p+0, 0x1.44e086061892dp+0, 0x1.4bfdad5362a27p+0, 0x1.5342b569d4f82p+0, 0x1.5ab07dd485429p+0,
    0x1.6247eb03a5585p+0, 0x1.6a09e667f3bcdp+0, 0x1.71f75e8ec5f74p+0, 0x1.7a11473eb0187p+0, 0x1.82589994cce13p+0,
    0x1.8ace5422aa0dbp+0, 0x1.93737b0cdc5e5p+0, 0x1.9c49182a3f090p+0, 0x1.a5503b23e255dp+0, 0x1.ae89f995ad3adp+0,
    0x1.b7f76f2fb5e47p+0, 0x1.c199bdd85529cp+0, 0x1.cb720dcef9069p+0, 0x1.d5818dcfba487p+0, 0x1.dfc97337b9b5fp+0,
    0x1.ea4afa2a490dap+0, 0x1.f50765b6e4540p+0};

float scale_by_power_of_two(float value, int power) {
    return float_of(bits_of(value) + (static_cast<std::uint32_t>(power) << 23));
}

// The last step of expm1: x is the reduced argument, e its correction, k the power of two taken out.
float expm1_from_parts(float x, float e, int k) {
    if (k == -1) return 0.5f * (x - e) - 0.5f;
    if (k == 1) return x < -0.25f ? -2.0f * (e - (x + 0.5f)) : 1.0f + 2.0f * (x - e);
    if (k <= -2 || k > 56) {
        const float y = 1.0f - (e - x);
        return (k == 128 ? y * 2.0f * 0x1p127f : scale_by_power_of_two(y, k)) - 1.0f;
    }
    if (k < 23) return scale_by_power_of_two((1.0f - std::ldexp(1.0f, -k)) - (e - x), k);
    return scale_by_power_of_two((x - (e + std::ldexp(1.0f, -k))) + 1.0f, k);
}

// angle = n pi/2 + r, pi/2 in one double.
double reduce_small(float angle, std::int64_t& n) {
    const double x = static_cast<double>(angle);
    const double quarters = std::nearbyint(x * 0x1.45f306dc9c883p-1);
    n = static_cast<std::int64_t>(quarters);
    return std::fma(-quarters, 0x1.921fb54442d18p0, x);
}

// The same in 64-bit fixed point: the mantissa times 96 bits of 2/pi, of which the leading whole turns fall off the top.
double reduce_large(float angle, std::int64_t& n) {
    // Windows of 2/pi = 0x0.a2f9836e4e441529fc27..., one byte apart.
    constexpr std::array<std::uint32_t, 11> two_over_pi = {0x000000a2u, 0x0000a2f9u, 0x00a2f983u, 0xa2f9836eu,
                                                           0xf9836e4eu, 0x836e4e44u, 0x6e4e4415u, 0x4e441529u,
                                                           0x441529fcu, 0x1529fc27u, 0x29fc2757u};
    const std::uint32_t bits = bits_of(angle);
    const std::size_t window = (bits >> 26) & 15u;
    const std::uint32_t mantissa = ((bits & 0x00ffffffu) | 0x00800000u) << ((bits >> 23) & 7u);
    const std::uint64_t high = static_cast<std::uint64_t>(mantissa * two_over_pi[window]) << 32;
    const std::uint64_t middle = static_cast<std::uint64_t>(mantissa) * two_over_pi[window + 4];
    const std::uint64_t low = static_cast<std::uint64_t>(mantissa) * two_over_pi[window + 8];
    std::uint64_t turns = (high | (low >> 32)) + middle;
    const std::uint64_t quarters = (turns + (std::uint64_t{1} << 61)) >> 62;
    turns -= quarters << 62;
    n = static_cast<std::int64_t>(quarters);
    return static_cast<double>(static_cast<std::int64_t>(turns)) * 0x1.921fb54442d18p-62;
}

}  // namespace

float ggml_expf(float x) {
    // NaN stays, and beyond these ends there is nothing but 0 and infinity.
    if (!(x >= -104.0f && x <= 104.0f)) return x < 0.0f ? 0.0f : x > 0.0f ? HUGE_VALF : x;
    constexpr double inverse = 0x1.71547652b82fep+0 * 32;
    const double wide = static_cast<double>(x);
    const double n = std::nearbyint(inverse * wide);
    const double r = std::fma(inverse, wide, -n);
    const auto index = static_cast<std::int64_t>(n);
    const double power = std::ldexp(thirty_second_powers[static_cast<std::size_t>(index & 31)], static_cast<int>(index >> 5));
    constexpr double c0 = 0x1.c6af84b912394p-5 / 32 / 32 / 32;
    constexpr double c1 = 0x1.ebfce50fac4f3p-3 / 32 / 32;
    constexpr double c2 = 0x1.62e42ff0c52d6p-1 / 32;
    return static_cast<float>(std::fma(std::fma(c0, r, c1), r * r, std::fma(c2, r, 1.0)) * power);
}

float ggml_expm1f(float x) {
    constexpr float ln2_high = 0x1.62e300p-1f, ln2_low = 0x1.2fefa2p-17f, inverse = 0x1.715476p+0f;
    const std::uint32_t magnitude = bits_of(x) & 0x7fffffffu;
    const bool negative = (bits_of(x) >> 31) != 0;
    if (magnitude > 0x7f800000u) return x;
    if (negative && magnitude >= 0x4195b844u) return -1.0f;
    if (!negative && magnitude >= 0x42b17218u) return HUGE_VALF;
    if (magnitude < 0x33000000u) return x;
    int k = 0;
    float c = 0.0f;
    if (magnitude > 0x3eb17218u) {
        float high = 0.0f;
        float low = 0.0f;
        if (magnitude < 0x3f851592u) {
            k = negative ? -1 : 1;
            high = negative ? x + ln2_high : x - ln2_high;
            low = negative ? -ln2_low : ln2_low;
        } else {
            k = static_cast<int>(inverse * x + (negative ? -0.5f : 0.5f));
            high = x - static_cast<float>(k) * ln2_high;
            low = static_cast<float>(k) * ln2_low;
        }
        x = high - low;
        c = (high - x) - low;
    }
    const float half = 0.5f * x;
    const float square = x * half;
    constexpr float q1 = -0x1.111112p-5f, q2 = 0x1.a01a02p-10f, q3 = -0x1.4ce19ap-14f, q4 = 0x1.0cfca8p-18f,
                    q5 = -0x1.afb7b6p-23f;
    const float series = 1.0f + square * (q1 + square * (q2 + square * (q3 + square * (q4 + square * q5))));
    const float t = 3.0f - series * half;
    float e = square * ((series - t) / (6.0f - x * t));
    if (k == 0) return x - (x * e - square);
    e = x * (e - c) - c;
    return expm1_from_parts(x, e - square, k);
}

float ggml_tanhf(float x) {
    const std::uint32_t magnitude = bits_of(x) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return x;
    float result = 1.0f;
    if (magnitude < 0x41b00000u) {
        if (magnitude < 0x24000000u) return x * (1.0f + x);
        if (magnitude >= 0x3f800000u) {
            const float t = ggml_expm1f(2.0f * float_of(magnitude));
            result = 1.0f - 2.0f / (t + 2.0f);
        } else {
            const float t = ggml_expm1f(-2.0f * float_of(magnitude));
            result = -t / (t + 2.0f);
        }
    }
    return (bits_of(x) >> 31) != 0 ? -result : result;
}

void ggml_sincosf(float angle, float& sine, float& cosine) {
    constexpr double c1 = -0x1.ffffffd0c621cp-2, c2 = 0x1.55553e1068f19p-5, c3 = -0x1.6c087e89a359dp-10,
                     c4 = 0x1.99343027bf8c3p-16;
    constexpr double s1 = -0x1.555545995a603p-3, s2 = 0x1.1107605230bc4p-7, s3 = -0x1.994eb3774cf24p-13;
    std::int64_t n = 0;
    const double r = angle < 120.0f ? reduce_small(angle, n) : reduce_large(angle, n);
    const double square = r * r;
    const double cube = r * square;
    const double sine_value = std::fma(cube * square, std::fma(square, s3, s2), std::fma(cube, s1, r));
    const double fourth = square * square;
    const double cosine_value =
        std::fma(fourth * square, std::fma(square, c4, c3), std::fma(fourth, c2, std::fma(square, c1, 1.0)));
    const std::int64_t quadrant = n & 3;
    const double first = (quadrant & 1) != 0 ? cosine_value : sine_value;
    const double second = (quadrant & 1) != 0 ? sine_value : cosine_value;
    sine = static_cast<float>(quadrant >= 2 ? -first : first);
    cosine = static_cast<float>(quadrant == 1 || quadrant == 2 ? -second : second);
}

std::vector<float> ggml_rotary_frequencies(std::size_t pairs, double max_period) {
    const auto logarithm = static_cast<float>(natural_logarithm(max_period));
    std::vector<float> frequencies(pairs);
    for (std::size_t j = 0; j < pairs; ++j) {
        const float exponent = -logarithm * static_cast<float>(j) / static_cast<float>(pairs);
        frequencies[j] = static_cast<float>(exponential(static_cast<double>(exponent)));
    }
    return frequencies;
}

const float* ggml_gelu_table() {
    static const std::vector<float> table = [] {
        std::vector<float> values(std::size_t{1} << 16);
        for (std::size_t bits = 0; bits < values.size(); ++bits) {
            const float x = half_to_float(static_cast<std::uint16_t>(bits));
            const float cubic = std::fma(0.044715f * x, x, 1.0f);
            const float angle = 0.79788456080286535587989211986876f * x * cubic;
            values[bits] = half_to_float(float_to_half(0.5f * x * (1.0f + ggml_tanhf(angle))));
        }
        return values;
    }();
    return table.data();
}

}  // namespace mimi

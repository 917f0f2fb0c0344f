#include "kernels/rotary.h"

#include <cmath>

#include "kernels/ggml_libm.h"

namespace mimi {

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh((m - 1) / (m + 1)).
double natural_logarithm(double x) {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2.0;
        exponent -= 1;
    }
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = s * s;
    double series = 0.0;
    for (int odd = 29; odd >= 1; odd -= 2) series = std::fma(series, square, 1.0 / odd);
    return std::fma(static_cast<double>(exponent), 0.69314718055994531, 2.0 * s * series);
}

// x = n ln 2 + r, Taylor series in r.
double exponential(double x) {
    const double n = std::nearbyint(x * 1.4426950408889634);
    const double r = std::fma(-n, 1.9082149292705877e-10, std::fma(-n, 0.69314718036912382, x));
    double series = 1.0;
    for (int k = 18; k >= 1; --k) series = std::fma(series * r, 1.0 / k, 1.0);
    return std::ldexp(series, static_cast<int>(n));
}

// angle = n pi/2 + r, Taylor series in r.
void sine_cosine(float angle, float& sine, float& cosine) {
    const double x = static_cast<double>(angle);
    const double n = std::nearbyint(x * 0.63661977236758134);
    const double r = std::fma(-n, 6.123233995736766e-17, std::fma(-n, 1.5707963267948966, x));
    const double square = r * r;
    double sine_series = 1.0;
    double cosine_series = 1.0;
    for (int k = 9; k >= 1; --k) {
        sine_series = std::fma(-square * sine_series, 1.0 / ((2 * k) * (2 * k + 1)), 1.0);
        cosine_series = std::fma(-square * cosine_series, 1.0 / ((2 * k) * (2 * k - 1)), 1.0);
    }
    sine_series *= r;
    const bool swap = (static_cast<std::int64_t>(n) & 1) != 0;
    const double first = swap ? cosine_series : sine_series;
    const double second = swap ? sine_series : cosine_series;
    const std::int64_t quadrant = static_cast<std::int64_t>(n) & 3;
    sine = static_cast<float>(quadrant >= 2 ? -first : first);
    cosine = static_cast<float>(quadrant == 1 || quadrant == 2 ? -second : second);
}

namespace {

std::vector<float> exact_frequencies(std::size_t pairs, double max_period) {
    const double logarithm = natural_logarithm(max_period);
    std::vector<float> frequencies(pairs);
    for (std::size_t j = 0; j < pairs; ++j)
        frequencies[j] = static_cast<float>(exponential(-logarithm * static_cast<double>(j) / static_cast<double>(pairs)));
    return frequencies;
}

std::vector<float> rounded_exponent_frequencies(std::size_t pairs, double max_period) {
    const auto slope = static_cast<float>(-natural_logarithm(max_period) / static_cast<double>(pairs));
    std::vector<float> frequencies(pairs);
    for (std::size_t j = 0; j < pairs; ++j) {
        const float exponent = static_cast<float>(j) * slope;
        frequencies[j] = static_cast<float>(exponential(static_cast<double>(exponent)));
    }
    return frequencies;
}

std::vector<float> frequencies_of(RotaryAngles angles, std::size_t pairs, double max_period) {
    switch (angles) {
        case RotaryAngles::glibc: return ggml_rotary_frequencies(pairs, max_period);
        case RotaryAngles::rounded_exponents: return rounded_exponent_frequencies(pairs, max_period);
        case RotaryAngles::correctly_rounded: break;
    }
    return exact_frequencies(pairs, max_period);
}

}  // namespace

Rotary::Rotary(RotaryAngles angles, std::size_t pairs, double max_period)
    : angles_(angles), frequencies_(frequencies_of(angles, pairs, max_period)) {}

void Rotary::angles(std::uint64_t position_steps, float* cosine, float* sine) const {
    const auto turn = angles_ == RotaryAngles::glibc ? &ggml_sincosf : &sine_cosine;
    const float position = static_cast<float>(position_steps);
    for (std::size_t j = 0; j < frequencies_.size(); ++j) turn(position * frequencies_[j], sine[j], cosine[j]);
}

}  // namespace mimi

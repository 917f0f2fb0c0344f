// The C library functions that decide results under `ggml` numerics, as fixed sequences of IEEE operations: what glibc 2.36
// computes, without calling it, so that no other C library can change a code. Constants are glibc's published coefficients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mimi {

// exp, as glibc rounds it to f32: 2^(x 32 / ln 2) from a table of 32 and a cubic, in double. For x in [-104, 0]; 0 below.
float ggml_expf(float x);

// expm1 for any finite x, the fdlibm algorithm without fma.
float ggml_expm1f(float x);

// tanh by ggml_expm1f.
float ggml_tanhf(float x);

// Sine and cosine of 0 <= angle < 2^22, as glibc's FMA variants round them.
void ggml_sincosf(float angle, float& sine, float& cosine);

// f32(exp(f64(f32(f32(-ln(max_period) j) / pairs)))): rotary frequencies as ggml's graph computes them.
std::vector<float> ggml_rotary_frequencies(std::size_t pairs, double max_period);

// GELU of every half-precision value, tanh form, rounded to half: indexed by the bits of the half, widened to f32.
const float* ggml_gelu_table();

}  // namespace mimi

// Rotary angles without libm: sine and cosine of position * frequency as fixed sequences of IEEE double operations, rounded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mimi {

// f32(max_period^(-j / pairs)) for j = 0 .. pairs - 1.
std::vector<float> rotary_frequencies(std::size_t pairs, double max_period);

// cosine[j] and sine[j] of f32(f32(position) * frequencies[j]). Positions up to 2^24 steps (7.7 days at 25 Hz) are exact in
// f32; beyond, neighbouring positions share an angle, as they do in the published model.
void rotary_angles(std::uint64_t position_steps, const std::vector<float>& frequencies, float* cosine, float* sine);

}  // namespace mimi

// Rotary angles without libm: sine and cosine of position * frequency as fixed sequences of IEEE double operations, rounded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mimi {

// Natural logarithm of x > 0 and exponential of |x| < 700, within a few units of the last place of a double.
double natural_logarithm(double x);
double exponential(double x);

// Of `angle` (0 <= angle < 2^25), both rounded from double to f32.
void sine_cosine(float angle, float& sine, float& cosine);

// Whose sines: the f32 nearest to the exact value, or what glibc returns, which now and then is its neighbour. The frequencies
// of `rounded_exponents` are exp(f32(j f32(-2 log(max_period) / head_dim))), as PyTorch forms them in f32.
enum class RotaryAngles { correctly_rounded, glibc, rounded_exponents };

class Rotary {
public:
    // Frequencies f32(max_period^(-j / pairs)) for j = 0 .. pairs - 1, but see RotaryAngles.
    Rotary(RotaryAngles angles, std::size_t pairs, double max_period);

    std::size_t pairs() const { return frequencies_.size(); }
    // cosine[j] and sine[j] of f32(f32(position) * frequency j). Positions up to 2^24 steps (7.7 days at 25 Hz) are exact in
    // f32.
    void angles(std::uint64_t position_steps, float* cosine, float* sine) const;

private:
    RotaryAngles angles_;
    std::vector<float> frequencies_;
};

}  // namespace mimi

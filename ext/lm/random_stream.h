// Standard exponential numbers for the race among tokens, from a seed, the same on every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mimi {

enum class RandomGenerator : std::uint8_t {
    // Number j for channel c (0 text, 1 + q codebook q) of step p is a function of seed, p, c and j alone: what else was drawn
    // does not matter. With f the finaliser of splitmix64 and G = 0x9e3779b97f4a7c15:
    //   key = f(f(seed + G) + p G), z = f(key + (c 2^32 + j + 1) G), u = (floor(z / 2^11) + 1/2) 2^-53, and -log(u)
    counted,
    // What torch's CPU generator gives `exponential_` after manual_seed(seed): MT19937 of the seed's low 32 bits, two outputs
    // for
    // a number, high one first; u = their 64 bits mod 2^53, times 2^-53, and -log(1 - u). A stream: every number is the next
    // one.
    torch_cpu,
};

class RandomStream {
public:
    RandomStream(RandomGenerator generator, std::uint64_t seed) : generator_(generator), seed_(seed) { reset(); }

    RandomGenerator generator() const { return generator_; }
    std::uint64_t seed() const { return seed_; }
    void reset();
    // Fills noise[0 .. count - 1], all >= 0, for one channel of one step; channels come in order.
    void draw(std::uint64_t position_steps, std::size_t channel, std::size_t count, float* noise);

    // Numbers that make up its state, whatever the generator.
    static constexpr std::size_t state_words = 625;
    std::array<std::uint32_t, state_words>& state() { return state_; }
    const std::array<std::uint32_t, state_words>& state() const { return state_; }
    // Whether these can be the state of a generator.
    static bool is_state(const std::array<std::uint32_t, state_words>& state) { return state[state_words - 1] < state_words; }

private:
    std::uint32_t next();

    RandomGenerator generator_;
    std::uint64_t seed_;
    std::array<std::uint32_t, state_words> state_{};  // 624 of MT19937, then how many of them are used up
};

}  // namespace mimi

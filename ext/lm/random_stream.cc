#include "lm/random_stream.h"

#include "kernels/rotary.h"

namespace mimi {

namespace {

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
constexpr std::size_t words = RandomStream::state_words - 1;
constexpr std::size_t middle = 397;

std::uint64_t finalise(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

std::uint32_t twist(std::uint32_t high, std::uint32_t low, std::uint32_t far) {
    const std::uint32_t joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return far ^ joined >> 1 ^ ((joined & 1u) != 0 ? 0x9908b0dfu : 0u);
}

}  // namespace

void RandomStream::reset() {
    state_[0] = static_cast<std::uint32_t>(seed_);
    for (std::size_t i = 1; i < words; ++i)
        state_[i] = 1812433253u * (state_[i - 1] ^ state_[i - 1] >> 30) + static_cast<std::uint32_t>(i);
    state_[words] = words;
}

std::uint32_t RandomStream::next() {
    if (state_[words] == words) {
        for (std::size_t i = 0; i < words; ++i)
            state_[i] = twist(state_[i], state_[(i + 1) % words], state_[(i + middle) % words]);
        state_[words] = 0;
    }
    std::uint32_t value = state_[state_[words]++];
    value ^= value >> 11;
    value ^= value << 7 & 0x9d2c5680u;
    value ^= value << 15 & 0xefc60000u;
    return value ^ value >> 18;
}

void RandomStream::draw(std::uint64_t position_steps, std::size_t channel, std::size_t count, float* noise) {
    const std::uint64_t key = finalise(finalise(seed_ + golden) + position_steps * golden);
    for (std::size_t j = 0; j < count; ++j) {
        double log_of = 0.0;
        if (generator_ == RandomGenerator::counted) {
            const std::uint64_t number = (static_cast<std::uint64_t>(channel) << 32) + j + 1;
            log_of = (static_cast<double>(finalise(key + number * golden) >> 11) + 0.5) * 0x1p-53;
        } else {
            const std::uint64_t high = next();
            const std::uint64_t both = high << 32 | next();
            log_of = 1.0 - static_cast<double>(both & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
        }
        const double logarithm = natural_logarithm(log_of);
        noise[j] = static_cast<float>(logarithm < 0.0 ? -logarithm : 0.0);
    }
}

}  // namespace mimi

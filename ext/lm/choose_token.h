// From logits to a token: the largest, or a race of exponentials among the likeliest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mimi {

struct TokenSampling {
    double temperature = 0.0;  // 0: the largest logit wins, and no random number is used
    std::size_t top_k = 0;     // likeliest tokens that take part; 0: all of them

    bool is_greedy() const { return temperature == 0.0; }
    // How many tokens of `count` take part.
    std::size_t entries(std::size_t count) const { return top_k == 0 || top_k > count ? count : top_k; }
};

// The index of the largest value, the lowest of equal ones.
std::size_t largest(const float* values, std::size_t count);

// e[i] / sum of e, e[i] = exp(x[i] - largest), in order of i. `out` may be `in`.
void softmax(const float* in, std::size_t count, float* out);

// Which of a vocabulary's tokens take part: the entries(count) largest logits in descending order, equal ones by index; or,
// where all do, all by index.
std::vector<std::uint32_t> candidates(const float* logits, std::size_t count, const TokenSampling& sampling);

// The winner of the race: candidate j arrives after noise[j] / p[j], p = exp((logit - the largest logit) / temperature); the
// first of equal ones. noise: standard exponential, one for each candidate. A noise of 0 arrives at once.
std::size_t race(const float* logits, std::span<const std::uint32_t> candidates, double temperature, const float* noise);

}  // namespace mimi

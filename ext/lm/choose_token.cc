#include "lm/choose_token.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/rotary.h"

namespace mimi {

namespace {

// exp(x) for x <= 0, rounded once from double; 0 where f32 has no normal number for it.
float exponential_of(float x) {
    return x < -87.0f ? 0.0f : static_cast<float>(exponential(static_cast<double>(x)));
}

}  // namespace

std::size_t largest(const float* values, std::size_t count) {
    return static_cast<std::size_t>(std::max_element(values, values + count) - values);
}

void softmax(const float* in, std::size_t count, float* out) {
    const float most = in[largest(in, count)];
    float sum = 0.0f;
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = exponential_of(in[i] - most);
        sum += out[i];
    }
    for (std::size_t i = 0; i < count; ++i) out[i] = out[i] / sum;
}

std::vector<std::uint32_t> candidates(const float* logits, std::size_t count, const TokenSampling& sampling) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (sampling.top_k == 0) return order;
    const auto kept = order.begin() + static_cast<std::ptrdiff_t>(sampling.entries(count));
    std::partial_sort(order.begin(), kept, order.end(), [logits](std::uint32_t a, std::uint32_t b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    order.resize(sampling.entries(count));
    return order;
}

std::size_t race(const float* logits, std::span<const std::uint32_t> candidates, double temperature, const float* noise) {
    float most = logits[candidates[0]];
    for (const std::uint32_t candidate : candidates) most = std::max(most, logits[candidate]);
    const auto divisor = static_cast<float>(temperature);
    std::size_t winner = candidates[0];
    float best = -1.0f;
    for (std::size_t j = 0; j < candidates.size(); ++j) {
        const float weight = exponential_of((logits[candidates[j]] - most) / divisor);
        const float score = noise[j] > 0.0f ? weight / noise[j] : std::numeric_limits<float>::infinity();
        if (score > best) {
            best = score;
            winner = candidates[j];
        }
    }
    return winner;
}

}  // namespace mimi

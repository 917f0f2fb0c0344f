// What a step of a stream is given: how it chooses its tokens, and what it takes in place of its own choices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lm/choose_token.h"
#include "lm/geometry.h"
#include "lm/random_stream.h"
#include "lm/token_ring.h"

namespace mimi {

// How a stream chooses its tokens. Temperatures are 0 or 0.001 .. 1000.
struct Sampling {
    TokenSampling text;
    TokenSampling audio;
    RandomGenerator generator = RandomGenerator::counted;
    std::uint64_t seed = 0;
};

// Whether a stream may choose by it.
inline bool is_temperature(double temperature) {
    return temperature == 0.0 || (temperature >= 0.001 && temperature <= 1000.0);
}

// In place of a token: the model's own choice.
constexpr std::int32_t free_token = TokenRing::unset;

// What one step of one stream is given. Tokens are ids or zero_token.
struct LanguageInput {
    const std::int32_t* user = nullptr;   // [user_channels]; the initial id counts too
    std::int32_t text = free_token;       // what to say in place of the choice; the depformer sees it
    const std::int32_t* codes = nullptr;  // [own_levels] in place of the depformer's choices, which follow from them; none is
                                          // random then. nullptr: all are free
    const std::int32_t* kept = nullptr;   // [own_levels] in place of what was chosen, once all is. nullptr: all are free
    const float* noise = nullptr;         // [1 + own_levels][noise_entries] in place of the generator's numbers, or nullptr
    std::size_t noise_entries = 0;        // at least as many as tokens take part in a choice
    const float* sum = nullptr;  // [dim], finite: goes into the temporal transformer in place of the sum of the embeddings of
                                 // the tokens, of which the stream takes note all the same. nullptr: their sum
};

// Refuses what the model cannot take, naming the lane: code_range, input_shape, setting. Unless `may_be_free`, text and codes
// must all be given.
void check_language_input(const LanguageInput& input, const LmGeometry& geometry, const Sampling& sampling, std::size_t lane,
                          bool may_be_free);

}  // namespace mimi

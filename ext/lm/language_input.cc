#include "lm/language_input.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/finite.h"
#include "lm/token_embedding.h"

namespace mimi {

namespace {

bool is_token(std::int32_t token, std::size_t most, bool may_be_free) {
    if (token == free_token) return may_be_free;
    return token >= zero_token && (token < 0 || static_cast<std::size_t>(token) <= most);
}

// nullptr: nothing is given.
void check_tokens(const char* what, std::size_t lane, const std::int32_t* tokens, std::size_t count, std::size_t most,
                  bool may_be_free) {
    for (std::size_t i = 0; tokens != nullptr && i < count; ++i) {
        if (is_token(tokens[i], most, may_be_free)) continue;
        throw Error(ErrorCode::code_range, std::string(what) + " " + std::to_string(i) + " of lane " + std::to_string(lane),
                    std::to_string(tokens[i]), "-1 .. " + std::to_string(most));
    }
}

void check_noise(const LanguageInput& input, const LmGeometry& geometry, const Sampling& sampling, std::size_t lane) {
    const std::size_t own = geometry.own_levels, entries = geometry.codebook_entries;
    const std::size_t text = sampling.text.is_greedy() ? 0 : sampling.text.entries(geometry.text_outputs);
    const std::size_t audio = sampling.audio.is_greedy() || own == 0 ? 0 : sampling.audio.entries(entries);
    if (input.noise_entries < std::max(text, audio))
        throw Error(ErrorCode::input_shape, "noise of lane " + std::to_string(lane),
                    std::to_string(input.noise_entries) + " numbers a channel",
                    "at least " + std::to_string(std::max(text, audio)));
    const std::size_t count = (1 + own) * input.noise_entries;
    for (std::size_t i = 0; i < count; ++i)
        if (!(input.noise[i] >= 0.0f))
            throw Error(ErrorCode::setting, "noise of lane " + std::to_string(lane), std::to_string(input.noise[i]),
                        "numbers that are not negative");
}

}  // namespace

void check_language_input(const LanguageInput& input, const LmGeometry& geometry, const Sampling& sampling, std::size_t lane,
                          bool may_be_free) {
    const std::size_t own = geometry.own_levels, entries = geometry.codebook_entries;
    check_tokens("user code", lane, input.user, geometry.user_channels(), entries, false);
    check_tokens("code", lane, input.codes, own, entries, may_be_free);
    check_tokens("kept code", lane, input.kept, own, entries, true);
    check_tokens("text", lane, &input.text, 1, geometry.text_ids() - 1, may_be_free);
    if (!may_be_free && own > 0 && input.codes == nullptr)
        throw Error(ErrorCode::input_shape, "codes of lane " + std::to_string(lane), "none",
                    std::to_string(own) + " in every step of a prompt but the last");
    if (input.noise != nullptr) check_noise(input, geometry, sampling, lane);
    if (input.sum != nullptr && !all_finite(input.sum, geometry.temporal.dim))
        throw Error(ErrorCode::setting, "embedding of lane " + std::to_string(lane), "a value that is not finite",
                    "finite values");
}

}  // namespace mimi

#include "lm/token_ring.h"

#include <algorithm>

namespace mimi {

TokenRing::TokenRing(const LmGeometry& geometry)
    : delays_(geometry.delays_steps),
      own_levels_(geometry.own_levels),
      most_delay_(geometry.max_delay_steps()),
      slots_(most_delay_ + 2),
      initial_text_(static_cast<std::int32_t>(geometry.text_entries)),
      initial_code_(static_cast<std::int32_t>(geometry.codebook_entries)),
      values_(delays_.size() * slots_, unset) {}

void TokenRing::reset() {
    std::fill(values_.begin(), values_.end(), unset);
}

void TokenRing::hear(std::uint64_t position, const std::int32_t* codes) {
    for (std::size_t channel = 1 + own_levels_; channel < delays_.size(); ++channel)
        at(channel, position + delays_[channel]) = codes[channel - 1 - own_levels_];
}

void TokenRing::inputs(std::uint64_t position, std::int32_t* tokens) const {
    for (std::size_t channel = 0; channel < delays_.size(); ++channel) {
        const std::int32_t initial = channel == 0 ? initial_text_ : initial_code_;
        tokens[channel] = position <= delays_[channel] ? initial : at(channel, position);
    }
}

void TokenRing::keep(std::uint64_t position, std::int32_t text, const std::int32_t* codes) {
    at(0, position + 1) = text;
    for (std::size_t level = 0; level < own_levels_; ++level) at(1 + level, position + 1) = codes[level];
}

bool TokenRing::outputs(std::uint64_t position, std::int32_t& text, std::int32_t* codes) const {
    const std::uint64_t next = position + 1;
    if (next <= most_delay_) return false;
    text = at(0, next - most_delay_ + delays_[0]);
    for (std::size_t level = 0; level < own_levels_; ++level)
        codes[level] = at(1 + level, next - most_delay_ + delays_[1 + level]);
    return true;
}

}  // namespace mimi

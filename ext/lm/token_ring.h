// The tokens of one stream on their way: every channel has its delay, and a token is read back in the step after it was chosen.
// Position 0 is the column of initial tokens; position p >= 1 of channel k holds the token of audio time p - 1 - delay k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lm/geometry.h"

namespace mimi {

class TokenRing {
public:
    // Nothing has been chosen or heard there yet; never reaches an embedding.
    static constexpr std::int32_t unset = -2;

    explicit TokenRing(const LmGeometry& geometry);

    void reset();
    // Takes the user's codes, [user_channels], for step `position`.
    void hear(std::uint64_t position, const std::int32_t* codes);
    // What goes into step `position`: [channels]. A channel is initial up to and including the position of its delay.
    void inputs(std::uint64_t position, std::int32_t* tokens) const;
    // Keeps what step `position` chose: text and own_levels codes.
    void keep(std::uint64_t position, std::int32_t text, const std::int32_t* codes);
    // After keep(): text and codes of one audio time, max_delay_steps steps ago; false while there is none.
    bool outputs(std::uint64_t position, std::int32_t& text, std::int32_t* codes) const;

    std::vector<std::int32_t>& values() { return values_; }
    const std::vector<std::int32_t>& values() const { return values_; }

private:
    std::int32_t& at(std::size_t channel, std::uint64_t position) {
        return values_[channel * slots_ + static_cast<std::size_t>(position % slots_)];
    }
    std::int32_t at(std::size_t channel, std::uint64_t position) const {
        return values_[channel * slots_ + static_cast<std::size_t>(position % slots_)];
    }

    std::vector<std::size_t> delays_;
    std::size_t own_levels_;
    std::size_t most_delay_;
    std::size_t slots_;
    std::int32_t initial_text_, initial_code_;
    std::vector<std::int32_t> values_;  // [channel][slot]
};

}  // namespace mimi

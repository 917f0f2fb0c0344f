// The two published definitions of the codec. A loaded model runs under one of them; what differs is chosen once, at load.
#pragma once

#include <string_view>

namespace mimi {

enum class Numerics {
    kyutai,  // Kyutai's PyTorch model, offline, f32
    ggml,    // moshi.cpp, bit for bit
};

// "kyutai" or "ggml"; Error{setting} otherwise.
Numerics parse_numerics(std::string_view name);
std::string_view numerics_name(Numerics numerics);

}  // namespace mimi

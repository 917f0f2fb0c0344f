// The published definitions of the codec. A loaded model runs under one of them; everything in which they differ is chosen
// here, once, at load: a kernel table and a policy.
#pragma once

#include <string_view>

#include "kernels/kernel_table.h"
#include "layers/numerics_policy.h"

namespace mimi {

enum class Numerics {
    kyutai,       // Kyutai's PyTorch model, offline, f32
    ggml,         // moshi.cpp, bit for bit
    ggml_causal,  // moshi.cpp with its attention mask corrected past the ring's wrap
};

// "kyutai", "ggml" or "ggml-causal"; Error{setting} otherwise.
Numerics parse_numerics(std::string_view name);
std::string_view numerics_name(Numerics numerics);

NumericsPolicy numerics_policy(Numerics numerics);
const KernelTable& numerics_kernels(Numerics numerics, const IsaKernels& isa);

}  // namespace mimi

#include "model/numerics.h"

#include <string>

#include "base/error.h"

namespace mimi {

Numerics parse_numerics(std::string_view name) {
    if (name == "kyutai") return Numerics::kyutai;
    if (name == "ggml") return Numerics::ggml;
    if (name == "ggml-causal") return Numerics::ggml_causal;
    throw Error(ErrorCode::setting, "numerics", std::string(name), "kyutai, ggml or ggml-causal");
}

std::string_view numerics_name(Numerics numerics) {
    switch (numerics) {
        case Numerics::kyutai: return "kyutai";
        case Numerics::ggml: return "ggml";
        case Numerics::ggml_causal: return "ggml-causal";
    }
    return "kyutai";
}

NumericsPolicy numerics_policy(Numerics numerics) {
    if (numerics == Numerics::kyutai) return {};
    return {
        .downsample_start = StartPadding::zeros,
        .conv_order = ConvOrder::channel_major,
        .half_conv_weights = true,
        .rotary_layout = RotaryLayout::half_split,
        .ggml_rotary = true,
        .attention_view = numerics == Numerics::ggml ? AttentionView::ring_slots : AttentionView::ring_slots_causal,
        .sum_order = SumOrder::tree,
    };
}

const KernelTable& numerics_kernels(Numerics numerics, const IsaKernels& isa) {
    return numerics == Numerics::kyutai ? isa.kyutai : isa.ggml;
}

}  // namespace mimi

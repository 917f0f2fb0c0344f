// The kernel tables of one lane type: all that an instruction set's unit includes.
#pragma once

#include "kernels/body_attention.h"
#include "kernels/body_elementary.h"
#include "kernels/body_ggml_attention.h"
#include "kernels/body_ggml_elementary.h"
#include "kernels/body_ggml_matmul.h"
#include "kernels/body_ggml_nearest_codeword.h"
#include "kernels/body_limits.h"
#include "kernels/body_matmul.h"
#include "kernels/body_nearest_codeword.h"
#include "kernels/body_nibble_matmul.h"
#include "kernels/body_quantised_matmul.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec, class Dots, class NibbleDots>
constexpr KernelTable make_kyutai_kernels(const char* isa) {
    return {
        .isa = isa,
        .matmul = &ChainMatmul<Vec>::run,
        .conv_matmul = &ChainMatmul<Vec>::run,
        .matmul_f16 = &ChainMatmul<Vec, HalfWeights>::run,
        .matmul_bf16 = &ChainMatmul<Vec, Bfloat16Weights>::run,
        .byte_matmul = &QuantisedMatmul<Vec, ByteForm<Vec, Dots>>::run,
        .nibble_matmul = &QuantisedMatmul<Vec, NibbleForm<Vec, NibbleDots>>::run,
        .super_nibble_matmul = &QuantisedMatmul<Vec, SuperNibbleForm<Vec, NibbleDots>>::run,
        .quantise_column = &QuantiseColumn<Vec>::run,
        .round_conv_operand = nullptr,
        .round_attention_operand = nullptr,
        .elu = &Elementary<Vec>::elu_array,
        .gelu = &Elementary<Vec>::gelu_array,
        .layer_norm = &LayerNorm<Vec>::run,
        .rms_norm = &RmsNormRow<Vec>::run,
        .silu_gate = &Elementary<Vec>::silu_gate,
        .attention = &Attention<Vec>::run,
        .nearest_codeword = &NearestCodeword<Vec, FloatWeights>::run,
        .nearest_codeword_f16 = &NearestCodeword<Vec, HalfWeights>::run,
    };
}

template <class Vec, class Dots, class NibbleDots>
constexpr KernelTable make_ggml_kernels(const char* isa) {
    return {
        .isa = isa,
        .matmul = &TreeMatmul<Vec, FusedTail>::run,
        .conv_matmul = &TreeMatmul<Vec, WideTail>::run,
        .matmul_f16 = &ChainMatmul<Vec, HalfWeights>::run,
        .matmul_bf16 = &ChainMatmul<Vec, Bfloat16Weights>::run,
        .byte_matmul = &QuantisedMatmul<Vec, ByteForm<Vec, Dots>>::run,
        .nibble_matmul = &QuantisedMatmul<Vec, NibbleForm<Vec, NibbleDots>>::run,
        .super_nibble_matmul = &QuantisedMatmul<Vec, SuperNibbleForm<Vec, NibbleDots>>::run,
        .quantise_column = &QuantiseColumn<Vec>::run,
        .round_conv_operand = &GgmlElementary<Vec>::round_to_half,
        .round_attention_operand = &GgmlElementary<Vec>::round_to_bf16,
        .elu = &GgmlElementary<Vec>::elu_array,
        .gelu = &GgmlElementary<Vec>::gelu_array,
        .layer_norm = &GgmlLayerNorm<Vec>::run,
        .rms_norm = &RmsNormRow<Vec>::run,
        .silu_gate = &Elementary<Vec>::silu_gate,
        .attention = &GgmlAttention<Vec>::run,
        .nearest_codeword = &GgmlNearestCodeword<Vec, FloatWeights>::run,
        .nearest_codeword_f16 = &GgmlNearestCodeword<Vec, HalfWeights>::run,
    };
}

template <class Vec, class Dots, class NibbleDots>
constexpr IsaKernels make_isa_kernels(const char* isa) {
    return {
        .kyutai = make_kyutai_kernels<Vec, Dots, NibbleDots>(isa),
        .ggml = make_ggml_kernels<Vec, Dots, NibbleDots>(isa),
        .limits =
            {
                .flop_per_round = Limits<Vec>::flop_per_round,
                .multiply_add = &Limits<Vec>::multiply_add,
                .read = &Limits<Vec>::read,
            },
    };
}

}  // namespace mimi

// The only list of the tensors a Mimi model must have, with the shape each must have under a geometry. The loader asks for its
// weights by these names, the contract checks a file against this list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/geometry.h"

namespace mimi {

// What a tensor is, which decides the types it may be stored in and how freely its shape may be written.
enum class TensorRole {
    conv,             // non-transposed convs: f32 or f16, all alike
    transposed_conv,  // f32, or f16 beside convs of f16, all alike
    bias,             // f32; (C) or (1, C)
    linear,           // transformer projections: f32, q8_0, or f16 beside convs of f16, all alike
    norm,             // norm weights and biases, layer scales: f32; (C) or (1, C)
    rvq_projection,   // the type of the convs, or q8_0 where the transformer projections are; (in, out) or (1, in, out)
    codebook,         // f32, or f16 beside convs of f16, all alike
};

struct RequiredTensor {
    std::string name;
    TensorRole role;
    std::vector<std::uint64_t> dims;  // ggml order: fastest-varying first; trailing ones dropped, at least one kept
};

// Every tensor of a model of this geometry, in the order one frame meets them.
std::vector<RequiredTensor> required_tensors(const Geometry& geometry);

// `dims` with trailing ones dropped, at least one kept.
std::vector<std::uint64_t> without_trailing_ones(std::vector<std::uint64_t> dims);

// Whether a file's `dims` say the same shape as the required tensor's, with the freedom its role allows.
bool same_shape(const RequiredTensor& required, const std::vector<std::uint64_t>& dims);

// Name as raw moshi.cpp files store it: 64 characters or more become 8 hex digits, the low nibble of each of the bytes of the
// name's CRC-32 taken as a 64-bit little-endian number. Shorter names are returned as they are.
std::string mangled_name(std::string_view name);

namespace tensor_names {

// Positions in the published `model.N` lists of SEANet; `stage` counts from 0 in the order the stages run.
constexpr std::size_t first_conv_index = 0;
constexpr std::size_t last_conv_index = 14;
constexpr std::size_t encoder_residual_index(std::size_t stage) {
    return 1 + 3 * stage;
}
constexpr std::size_t encoder_resample_index(std::size_t stage) {
    return 3 + 3 * stage;
}
constexpr std::size_t decoder_resample_index(std::size_t stage) {
    return 2 + 3 * stage;
}
constexpr std::size_t decoder_residual_index(std::size_t stage) {
    return 3 + 3 * stage;
}

// Positions in the `block.B` list of a residual unit.
constexpr std::size_t residual_wide_block = 1;
constexpr std::size_t residual_point_block = 3;

// Stems: append ".weight" or ".bias". `index` is the position in the published `model.N` list.
std::string encoder_conv(std::size_t index);                         // "mimi.encoder.model.N.conv.conv"
std::string encoder_residual(std::size_t index, std::size_t block);  // "mimi.encoder.model.N.block.B.conv.conv"
std::string decoder_conv(std::size_t index);                         // "mimi.decoder.model.N.conv.conv"
std::string decoder_transposed_conv(std::size_t index);              // "mimi.decoder.model.N.convtr.convtr"
std::string decoder_residual(std::size_t index, std::size_t block);  // "mimi.decoder.model.N.block.B.conv.conv"

// `side` is "encoder" or "decoder": "mimi.SIDE_transformer.transformer.layers.N". Append ".self_attn.in_projs.0.weight" and
// the like.
std::string transformer_layer(std::string_view side, std::size_t layer);

// `half` is "rvq_first" (semantic) or "rvq_rest" (acoustic): "mimi.quantizer.HALF". Append ".input_proj.weight" or
// ".output_proj.weight".
std::string rvq(std::string_view half);

// Whole names: "mimi.downsample.conv.conv.conv.weight", "mimi.upsample.convtr.convtr.convtr.weight" and
// "mimi.quantizer.HALF.vq.layers.N._codebook.embedding".
std::string downsample();
std::string upsample();
std::string codebook(std::string_view half, std::size_t layer);

}  // namespace tensor_names

}  // namespace mimi

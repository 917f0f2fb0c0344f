#include "model/tensor_names.h"

#include <utility>

namespace mimi {

namespace {

std::uint32_t crc32(std::string_view text) {
    std::uint32_t crc = 0xffffffff;
    for (const char c : text) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
    }
    return ~crc;
}

class RequiredList {
public:
    void add(std::string name, TensorRole role, std::vector<std::uint64_t> dims) {
        list_.push_back({std::move(name), role, without_trailing_ones(std::move(dims))});
    }

    void add_conv(const std::string& stem, const ConvGeometry& conv) {
        add(stem + ".weight", TensorRole::conv, {conv.kernel, conv.in_channels, conv.out_channels});
        add(stem + ".bias", TensorRole::bias, {conv.out_channels});
    }

    void add_transposed_conv(const std::string& stem, const ConvGeometry& conv) {
        add(stem + ".weight", TensorRole::transposed_conv, {conv.kernel, conv.out_channels, conv.in_channels});
        add(stem + ".bias", TensorRole::bias, {conv.out_channels});
    }

    std::vector<RequiredTensor> take() { return std::move(list_); }

private:
    std::vector<RequiredTensor> list_;
};

void add_encoder(RequiredList& list, const SeanetGeometry& seanet) {
    using namespace tensor_names;
    list.add_conv(encoder_conv(first_conv_index), seanet.first);
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        const StageGeometry& stage = seanet.stages[i];
        list.add_conv(encoder_residual(encoder_residual_index(i), residual_wide_block), stage.residual_wide);
        list.add_conv(encoder_residual(encoder_residual_index(i), residual_point_block), stage.residual_point);
        list.add_conv(encoder_conv(encoder_resample_index(i)), stage.resample);
    }
    list.add_conv(encoder_conv(last_conv_index), seanet.last);
}

void add_decoder(RequiredList& list, const SeanetGeometry& seanet) {
    using namespace tensor_names;
    list.add_conv(decoder_conv(first_conv_index), seanet.first);
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        const StageGeometry& stage = seanet.stages[i];
        list.add_transposed_conv(decoder_transposed_conv(decoder_resample_index(i)), stage.resample);
        list.add_conv(decoder_residual(decoder_residual_index(i), residual_wide_block), stage.residual_wide);
        list.add_conv(decoder_residual(decoder_residual_index(i), residual_point_block), stage.residual_point);
    }
    list.add_conv(decoder_conv(last_conv_index), seanet.last);
}

void add_transformer(RequiredList& list, std::string_view side, const TransformerGeometry& transformer) {
    const std::uint64_t dim = transformer.dim;
    for (std::size_t i = 0; i < transformer.layers; ++i) {
        const std::string layer = tensor_names::transformer_layer(side, i);
        list.add(layer + ".norm1.weight", TensorRole::norm, {dim});
        list.add(layer + ".norm1.bias", TensorRole::norm, {dim});
        list.add(layer + ".self_attn.in_projs.0.weight", TensorRole::linear, {dim, 3 * dim});
        list.add(layer + ".self_attn.out_projs.0.weight", TensorRole::linear, {dim, dim});
        list.add(layer + ".layer_scale_1.scale", TensorRole::norm, {dim});
        list.add(layer + ".norm2.weight", TensorRole::norm, {dim});
        list.add(layer + ".norm2.bias", TensorRole::norm, {dim});
        list.add(layer + ".linear1.weight", TensorRole::linear, {dim, transformer.mlp_width});
        list.add(layer + ".linear2.weight", TensorRole::linear, {transformer.mlp_width, dim});
        list.add(layer + ".layer_scale_2.scale", TensorRole::norm, {dim});
    }
}

void add_rvq_half(RequiredList& list, std::string_view half, std::size_t levels, const RvqGeometry& rvq) {
    const std::string stem = tensor_names::rvq(half);
    list.add(stem + ".input_proj.weight", TensorRole::rvq_projection, {rvq.dim, rvq.codebook_dim});
    for (std::size_t i = 0; i < levels; ++i) {
        list.add(tensor_names::codebook(half, i), TensorRole::codebook, {rvq.codebook_dim, rvq.codebook_entries});
    }
    list.add(stem + ".output_proj.weight", TensorRole::rvq_projection, {rvq.codebook_dim, rvq.dim});
}

}  // namespace

std::vector<RequiredTensor> required_tensors(const Geometry& geometry) {
    RequiredList list;
    add_encoder(list, geometry.encoder);
    add_transformer(list, "encoder", geometry.encoder_transformer);
    const ConvGeometry& down = geometry.downsample;
    list.add(tensor_names::downsample(), TensorRole::conv, {down.kernel, down.in_channels, down.out_channels});
    add_rvq_half(list, "rvq_first", geometry.rvq.semantic_levels, geometry.rvq);
    add_rvq_half(list, "rvq_rest", geometry.rvq.acoustic_levels, geometry.rvq);
    const ConvGeometry& up = geometry.upsample;
    list.add(tensor_names::upsample(), TensorRole::transposed_conv, {up.kernel, 1, up.in_channels});
    add_transformer(list, "decoder", geometry.decoder_transformer);
    add_decoder(list, geometry.decoder);
    return list.take();
}

std::vector<std::uint64_t> without_trailing_ones(std::vector<std::uint64_t> dims) {
    while (dims.size() > 1 && dims.back() == 1) dims.pop_back();
    return dims;
}

bool same_shape(const RequiredTensor& required, const std::vector<std::uint64_t>& dims) {
    std::vector<std::uint64_t> found = without_trailing_ones(dims);
    if (found == required.dims) return true;
    const bool leading_one_allowed =
        required.role == TensorRole::bias || required.role == TensorRole::norm || required.role == TensorRole::rvq_projection;
    if (!leading_one_allowed || found.front() != 1) return false;
    found.erase(found.begin());
    return found == required.dims;
}

std::string mangled_name(std::string_view name) {
    constexpr std::size_t shortest_mangled = 64;
    if (name.size() < shortest_mangled) return std::string(name);
    const std::uint64_t crc = crc32(name);
    std::string out;
    for (int byte = 0; byte < 8; ++byte) out += "0123456789abcdef"[(crc >> (8 * byte)) & 15];
    return out;
}

namespace tensor_names {

namespace {

std::string seanet(std::string_view side, std::size_t index, std::string_view rest) {
    return "mimi." + std::string(side) + ".model." + std::to_string(index) + std::string(rest);
}

std::string residual(std::string_view side, std::size_t index, std::size_t block) {
    return seanet(side, index, ".block." + std::to_string(block) + ".conv.conv");
}

}  // namespace

std::string encoder_conv(std::size_t index) {
    return seanet("encoder", index, ".conv.conv");
}
std::string encoder_residual(std::size_t index, std::size_t block) {
    return residual("encoder", index, block);
}
std::string decoder_conv(std::size_t index) {
    return seanet("decoder", index, ".conv.conv");
}
std::string decoder_transposed_conv(std::size_t index) {
    return seanet("decoder", index, ".convtr.convtr");
}
std::string decoder_residual(std::size_t index, std::size_t block) {
    return residual("decoder", index, block);
}
std::string downsample() {
    return "mimi.downsample.conv.conv.conv.weight";
}
std::string upsample() {
    return "mimi.upsample.convtr.convtr.convtr.weight";
}

std::string transformer_layer(std::string_view side, std::size_t layer) {
    return "mimi." + std::string(side) + "_transformer.transformer.layers." + std::to_string(layer);
}

std::string rvq(std::string_view half) {
    return "mimi.quantizer." + std::string(half);
}

std::string codebook(std::string_view half, std::size_t layer) {
    return rvq(half) + ".vq.layers." + std::to_string(layer) + "._codebook.embedding";
}

}  // namespace tensor_names

}  // namespace mimi

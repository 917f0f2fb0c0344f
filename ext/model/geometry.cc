#include "model/geometry.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "model/contract.h"
#include "model/tensor_names.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

// More than a sane file can have. They bound what a file may make a session allocate beyond the file's own size.
constexpr std::size_t channel_cap = 8192;
constexpr std::size_t mlp_width_cap = 65536;
constexpr std::size_t layer_cap = 256;
constexpr std::size_t level_cap = 64;
constexpr std::size_t codebook_entries_cap = 65536;  // a code fits 16 bits
constexpr std::size_t odd_kernel_cap = 31;
constexpr std::size_t strided_kernel_cap = 64;
constexpr std::size_t context_cap_steps = 8192;

// Mimi v0.1 as published, for files without metadata.
constexpr std::uint64_t published_heads = 8;
constexpr std::uint64_t published_context_steps = 250;
constexpr std::uint64_t published_max_period = 10000;
constexpr std::uint64_t published_sample_rate_hz = 24000;
constexpr double published_frame_rate_hz = 12.5;
constexpr std::uint64_t published_levels = 8;

struct KernelRule {
    std::size_t low;
    std::size_t high;
    bool odd;
};

constexpr KernelRule odd_kernel = {1, odd_kernel_cap, true};

constexpr KernelRule exactly(std::size_t kernel) {
    return {kernel, kernel, false};
}

[[noreturn]] void refuse(std::string subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_contract, std::move(subject), std::move(found), std::move(expected));
}

[[noreturn]] void refuse_dims(const GgufTensor& tensor, const std::string& expected) {
    refuse("tensor " + quoted(tensor.name) + " dims", dims_text(tensor.dims), expected);
}

// The tensor's dims, filled up with ones to `Rank`.
template <std::size_t Rank>
std::array<std::size_t, Rank> dims_of(const GgufTensor& tensor) {
    const std::vector<std::uint64_t> dims = without_trailing_ones(tensor.dims);
    if (dims.size() > Rank) refuse_dims(tensor, "at most " + std::to_string(Rank) + " dimensions");
    std::array<std::size_t, Rank> filled;
    filled.fill(1);
    std::copy(dims.begin(), dims.end(), filled.begin());
    return filled;
}

void check_kernel(const GgufTensor& tensor, std::size_t kernel, const KernelRule& rule) {
    if (kernel >= rule.low && kernel <= rule.high && (!rule.odd || kernel % 2 == 1)) return;
    const std::string range = rule.low == rule.high ? std::to_string(rule.low)
                                                    : "from " + std::to_string(rule.low) + " to " + std::to_string(rule.high);
    refuse_dims(tensor, (rule.odd ? "an odd kernel (first) " : "a kernel (first) ") + range);
}

ConvGeometry checked(const GgufTensor& tensor, ConvGeometry conv, std::size_t in_channels, const KernelRule& rule) {
    check_kernel(tensor, conv.kernel, rule);
    if (conv.in_channels != in_channels) refuse_dims(tensor, std::to_string(in_channels) + " input channels");
    if (conv.out_channels > channel_cap) refuse_dims(tensor, "at most " + std::to_string(channel_cap) + " output channels");
    return conv;
}

ConvGeometry read_conv(const GgufReader& file, const std::string& name, std::size_t in_channels, std::size_t stride,
                       const KernelRule& rule) {
    const GgufTensor& tensor = find_required(file, name);
    const auto [kernel, in, out] = dims_of<3>(tensor);
    return checked(tensor, {in, out, kernel, stride}, in_channels, rule);
}

ConvGeometry read_transposed_conv(const GgufReader& file, const std::string& name, std::size_t in_channels,
                                  std::size_t stride) {
    const GgufTensor& tensor = find_required(file, name);
    const auto [kernel, out, in] = dims_of<3>(tensor);
    return checked(tensor, {in, out, kernel, stride}, in_channels, {stride, 2 * stride, false});
}

void require_out_channels(const GgufReader& file, const std::string& name, const ConvGeometry& conv, std::size_t expected) {
    if (conv.out_channels == expected) return;
    refuse_dims(find_required(file, name), std::to_string(expected) + " output channels");
}

// Both convs of a residual unit on `channels` channels.
void read_residual(const GgufReader& file, const std::string& wide, const std::string& point, std::size_t channels,
                   StageGeometry& stage) {
    stage.residual_wide = read_conv(file, wide, channels, 1, exactly(3));
    stage.residual_point = read_conv(file, point, stage.residual_wide.out_channels, 1, exactly(1));
    require_out_channels(file, point, stage.residual_point, channels);
}

SeanetGeometry read_encoder(const GgufReader& file) {
    using namespace tensor_names;
    SeanetGeometry seanet;
    seanet.first = read_conv(file, encoder_conv(first_conv_index) + ".weight", 1, 1, odd_kernel);
    std::size_t channels = seanet.first.out_channels;
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        StageGeometry& stage = seanet.stages[i];
        read_residual(file, encoder_residual(encoder_residual_index(i), residual_wide_block) + ".weight",
                      encoder_residual(encoder_residual_index(i), residual_point_block) + ".weight", channels, stage);
        const std::size_t stride = seanet_strides[i];
        stage.resample = read_conv(file, encoder_conv(encoder_resample_index(i)) + ".weight", channels, stride,
                                   {stride, strided_kernel_cap, false});
        channels = stage.resample.out_channels;
    }
    seanet.last = read_conv(file, encoder_conv(last_conv_index) + ".weight", channels, 1, odd_kernel);
    return seanet;
}

SeanetGeometry read_decoder(const GgufReader& file, std::size_t dim) {
    using namespace tensor_names;
    SeanetGeometry seanet;
    seanet.first = read_conv(file, decoder_conv(first_conv_index) + ".weight", dim, 1, odd_kernel);
    std::size_t channels = seanet.first.out_channels;
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        StageGeometry& stage = seanet.stages[i];
        const std::string resample = decoder_transposed_conv(decoder_resample_index(i)) + ".weight";
        stage.resample = read_transposed_conv(file, resample, channels, seanet_strides[seanet_stages - 1 - i]);
        channels = stage.resample.out_channels;
        read_residual(file, decoder_residual(decoder_residual_index(i), residual_wide_block) + ".weight",
                      decoder_residual(decoder_residual_index(i), residual_point_block) + ".weight", channels, stage);
    }
    const std::string last = decoder_conv(last_conv_index) + ".weight";
    seanet.last = read_conv(file, last, channels, 1, odd_kernel);
    require_out_channels(file, last, seanet.last, 1);
    return seanet;
}

// One more than the highest N of the names that start with `prefix` + N + ".", at least 1, so that a gap or an absence becomes
// a missing tensor with a name.
std::size_t count_indexed(const GgufReader& file, const std::string& prefix, std::size_t cap) {
    std::size_t count = 1;
    for (const GgufTensor& tensor : file.tensors()) {
        if (!tensor.name.starts_with(prefix)) continue;
        std::size_t index = 0;
        for (std::size_t i = prefix.size(); i < tensor.name.size() && tensor.name[i] >= '0' && tensor.name[i] <= '9'; ++i) {
            index = index * 10 + static_cast<std::size_t>(tensor.name[i] - '0');
            if (index >= cap)
                refuse("tensor " + quoted(tensor.name), "an index of " + std::to_string(cap) + " or more",
                       "at most " + std::to_string(cap) + " of its kind");
        }
        count = std::max(count, index + 1);
    }
    return count;
}

std::string full_key(std::string_view key) {
    return "moshi.mimi." + std::string(key);
}

std::uint64_t setting(const GgufReader& file, std::string_view key, std::uint64_t published, std::uint64_t low,
                      std::uint64_t high) {
    const std::uint64_t value = file.unsigned_integer(full_key(key)).value_or(published);
    if (value >= low && value <= high) return value;
    refuse("key " + quoted(full_key(key)), std::to_string(value), std::to_string(low) + " to " + std::to_string(high));
}

void require_agreement(const GgufReader& file, std::string_view key, std::size_t from_tensors) {
    const std::optional<std::uint64_t> value = file.unsigned_integer(full_key(key));
    if (!value || *value == from_tensors) return;
    refuse("key " + quoted(full_key(key)), std::to_string(*value), std::to_string(from_tensors) + ", as the tensors say");
}

TransformerGeometry read_transformer(const GgufReader& file, std::string_view side, std::size_t dim) {
    const std::string first_layer = tensor_names::transformer_layer(side, 0);
    TransformerGeometry transformer;
    transformer.dim = dim;
    transformer.layers = count_indexed(file, first_layer.substr(0, first_layer.size() - 1), layer_cap);
    require_agreement(file, "transformer.num_layers", transformer.layers);
    const GgufTensor& widening = find_required(file, first_layer + ".linear1.weight");
    const auto [in, width] = dims_of<2>(widening);
    if (in != dim || width > mlp_width_cap) {
        refuse_dims(widening, std::to_string(dim) + " in, at most " + std::to_string(mlp_width_cap) + " out");
    }
    transformer.mlp_width = width;
    transformer.heads = setting(file, "transformer.num_heads", published_heads, 1, dim);
    if (dim % transformer.heads != 0 || dim / transformer.heads % 2 != 0) {
        refuse("key " + quoted(full_key("transformer.num_heads")), std::to_string(transformer.heads),
               "heads of an even width that divide " + std::to_string(dim));
    }
    transformer.head_dim = dim / transformer.heads;
    transformer.context_steps = setting(file, "transformer.context", published_context_steps, 1, context_cap_steps);
    transformer.max_period =
        static_cast<double>(setting(file, "transformer.max_period", published_max_period, 2, 1'000'000'000));
    return transformer;
}

std::size_t read_levels(const GgufReader& file, std::string_view half) {
    const std::string first = tensor_names::codebook(half, 0);
    return count_indexed(file, first.substr(0, first.find("0._codebook")), level_cap);
}

RvqGeometry read_rvq(const GgufReader& file, std::size_t dim) {
    RvqGeometry rvq;
    rvq.dim = dim;
    const GgufTensor& codebook = find_required(file, tensor_names::codebook("rvq_first", 0));
    const auto [width, entries] = dims_of<2>(codebook);
    if (width > channel_cap || entries > codebook_entries_cap) {
        refuse_dims(codebook, "at most (" + std::to_string(channel_cap) + ", " + std::to_string(codebook_entries_cap) + ")");
    }
    rvq.codebook_dim = width;
    rvq.codebook_entries = entries;
    rvq.semantic_levels = read_levels(file, "rvq_first");
    rvq.acoustic_levels = read_levels(file, "rvq_rest");
    require_agreement(file, "dim", dim);
    require_agreement(file, "codebook_dim", rvq.codebook_dim);
    require_agreement(file, "card", rvq.codebook_entries);
    require_agreement(file, "semantic_n_q", rvq.semantic_levels);
    return rvq;
}

void read_resampling(const GgufReader& file, std::size_t dim, Geometry& geometry) {
    geometry.downsample =
        read_conv(file, tensor_names::downsample(), dim, latent_stride, {latent_stride, strided_kernel_cap, false});
    require_out_channels(file, tensor_names::downsample(), geometry.downsample, dim);
    const GgufTensor& tensor = find_required(file, tensor_names::upsample());
    const auto [kernel, per_group, channels] = dims_of<3>(tensor);
    check_kernel(tensor, kernel, {latent_stride, 2 * latent_stride, false});
    if (per_group != 1 || channels != dim) refuse_dims(tensor, "1 channel per group, " + std::to_string(dim) + " groups");
    geometry.upsample = {dim, dim, kernel, latent_stride};
}

void read_rates(const GgufReader& file, Geometry& geometry) {
    geometry.frame_samples = latent_stride;
    for (const std::size_t stride : seanet_strides) geometry.frame_samples *= stride;
    geometry.sample_rate_hz = setting(file, "sample_rate", published_sample_rate_hz, 1, 1'000'000);
    geometry.frame_rate_hz = file.real(full_key("frame_rate")).value_or(published_frame_rate_hz);
    const double expected_hz = static_cast<double>(geometry.sample_rate_hz) / static_cast<double>(geometry.frame_samples);
    // The key is an f32, which need not hold the quotient exactly.
    if (!(std::abs(geometry.frame_rate_hz - expected_hz) <= 1e-6 * expected_hz)) {
        refuse("key " + quoted(full_key("frame_rate")), std::to_string(geometry.frame_rate_hz),
               std::to_string(expected_hz) + ", the sample rate over " + std::to_string(geometry.frame_samples));
    }
    const std::size_t levels = geometry.rvq.levels();
    geometry.default_levels = setting(file, "n_q", std::min<std::uint64_t>(published_levels, levels), 1, levels);
}

}  // namespace

Geometry read_geometry(const GgufReader& file) {
    check_component(file);
    Geometry geometry;
    geometry.encoder = read_encoder(file);
    const std::size_t dim = geometry.encoder.last.out_channels;
    geometry.encoder_transformer = read_transformer(file, "encoder", dim);
    geometry.rvq = read_rvq(file, dim);
    geometry.decoder_transformer = read_transformer(file, "decoder", dim);
    geometry.decoder = read_decoder(file, dim);
    read_resampling(file, dim, geometry);
    read_rates(file, geometry);
    return geometry;
}

}  // namespace mimi

// Every hyper-parameter of a Mimi model, read from its file and nowhere else: widths, kernels and counts from tensor shapes,
// what shapes cannot tell (heads, context, rotary period, default levels) from `moshi.mimi.*` metadata, or, where a raw file
// has none, from the published values of Mimi v0.1.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "layers/layer_geometry.h"
#include "weights/gguf_reader.h"

namespace mimi {

// One rate of SEANet. `resample` is the strided conv that follows the residual unit in the encoder, or the transposed conv
// that precedes it in the decoder.
struct StageGeometry {
    ConvGeometry residual_wide;   // kernel 3, C -> hidden
    ConvGeometry residual_point;  // kernel 1, hidden -> C
    ConvGeometry resample;
};

constexpr std::size_t seanet_stages = 4;

struct SeanetGeometry {
    ConvGeometry first;
    std::array<StageGeometry, seanet_stages> stages;  // in the order they run
    ConvGeometry last;
};

struct RvqGeometry {
    std::size_t dim = 0;           // width of the latent
    std::size_t codebook_dim = 0;  // width of a codeword
    std::size_t codebook_entries = 0;
    std::size_t semantic_levels = 0;
    std::size_t acoustic_levels = 0;
    std::size_t levels() const { return semantic_levels + acoustic_levels; }
};

struct Geometry {
    std::size_t sample_rate_hz = 0;
    double frame_rate_hz = 0;
    std::size_t frame_samples = 0;
    std::size_t default_levels = 0;  // moshi.mimi.n_q
    SeanetGeometry encoder;
    SeanetGeometry decoder;
    TransformerGeometry encoder_transformer;
    TransformerGeometry decoder_transformer;
    ConvGeometry downsample;
    ConvGeometry upsample;  // depthwise: in_channels == out_channels == groups
    RvqGeometry rvq;
    std::size_t steps_per_frame() const { return downsample.stride; }  // transformer steps per frame
};

// Strides fixed by the topology, in the order the encoder runs them; the decoder runs them backwards.
constexpr std::array<std::size_t, seanet_stages> seanet_strides = {4, 5, 6, 8};
constexpr std::size_t latent_stride = 2;

// Reads the geometry of a `mimi` file. Error{model_contract} naming the tensor or key where it is missing, has the wrong rank,
// or exceeds what a sane file can have. Needs no payload.
Geometry read_geometry(const GgufReader& file);

}  // namespace mimi

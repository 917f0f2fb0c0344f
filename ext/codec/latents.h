// The continuous side of the quantiser: what it is given, what its codes stand for, and its tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec_model.h"
#include "codec/session.h"
#include "layers/step_context.h"

namespace mimi {

// encode_batch that also gives the latents its codes were chosen for: latents is [session][rvq.dim]. Errors and bits as there.
void encode_batch_with_latents(std::span<EncoderSession* const> sessions, const float* const* pcm, std::int32_t* codes,
                               float* latents);

// What the decoder makes of codes before it upsamples: codes is [frame][levels], latents [frame][rvq.dim]. Frames do not know
// of one another. Error{setting} where levels is outside 1 .. the model's; Error{code_range} naming level and frame.
void decode_latents(const CodecModel& model, const std::int32_t* codes, std::size_t frames, std::size_t levels, float* latents);

// The codebook of a level: codewords is [rvq.codebook_entries][rvq.codebook_dim]. Error{setting} where there is no such level.
void copy_codebook(const CodecModel& model, std::size_t level, float* codewords);

}  // namespace mimi

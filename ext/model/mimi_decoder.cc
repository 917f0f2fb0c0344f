#include "model/mimi_decoder.h"

#include <algorithm>

#include "model/mimi_encoder.h"
#include "model/tensor_names.h"

namespace mimi {

MimiDecoder::MimiDecoder(const NumericsPolicy& policy, const Geometry& geometry, const SplitRvq& rvq,
                         const WeightSource& source, TensorWindow& window)
    : geometry_(geometry),
      rvq_(rvq),
      layout_(std::make_shared<StateLayout>()),
      upsample_(geometry.upsample, source.values(tensor_names::upsample()), *layout_),
      transformer_(policy, geometry.decoder_transformer, geometry.steps_per_frame(), "decoder", source, window, *layout_),
      seanet_(policy, geometry.decoder, source, *layout_) {}

void MimiDecoder::step(const StepContext& context, const std::int32_t* codes, std::size_t levels, float* const* pcm) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations latent = context.take(1, geometry_.rvq.dim, upsample_.history_rows());
    rvq_.decode(context, codes, levels, latent);
    context.observe("decoder.latent", latent);
    const Activations latents = context.take(geometry_.steps_per_frame(), geometry_.rvq.dim, seanet_.latent_history_rows());
    upsample_.step(context, latent, latents);
    context.observe("decoder.upsample", latents);
    transformer_.step(context, latents);
    context.observe("decoder.transformer", latents);
    const Activations samples = context.take(geometry_.frame_samples, 1);
    seanet_.step(context, latents, samples);
    require_finite(samples, "PCM");
    for (std::size_t lane = 0; lane < samples.lanes; ++lane) std::copy_n(samples.row(lane, 0), samples.rows, pcm[lane]);
}

}  // namespace mimi

#include "model/mimi_encoder.h"

#include <algorithm>

#include "base/finite.h"
#include "layers/overflow.h"
#include "model/tensor_names.h"

namespace mimi {

void require_finite(const Activations& activations, const char* what) {
    for (std::size_t lane = 0; lane < activations.lanes; ++lane)
        if (!all_finite(activations.row(lane, 0), activations.row_floats())) refuse_overflow(what, lane);
}

MimiEncoder::MimiEncoder(const NumericsPolicy& policy, const Geometry& geometry, const SplitRvq& rvq,
                         const WeightSource& source, TensorWindow& window)
    : geometry_(geometry),
      rvq_(rvq),
      layout_(std::make_shared<StateLayout>()),
      seanet_(policy, geometry.encoder, source, *layout_),
      transformer_(policy, geometry.encoder_transformer, geometry.steps_per_frame(), "encoder", source, window, *layout_),
      downsample_(policy, geometry.downsample, source.values(tensor_names::downsample()),
                  source.storage(tensor_names::downsample()), {}, *layout_, policy.downsample_start) {}

void MimiEncoder::step(const StepContext& context, const float* const* pcm, std::size_t levels, std::int32_t* codes) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations samples = context.take(geometry_.frame_samples, 1, seanet_.pcm_history_rows());
    for (std::size_t lane = 0; lane < samples.lanes; ++lane) std::copy_n(pcm[lane], samples.rows, samples.row(lane, 0));

    const Activations latents = context.take(geometry_.steps_per_frame(), geometry_.rvq.dim, downsample_.history_rows());
    seanet_.step(context, samples, latents);
    transformer_.step(context, latents);
    context.observe("encoder.transformer", latents);
    const Activations latent = context.take(1, geometry_.rvq.dim);
    downsample_.step(context, latents, latent);
    context.observe("encoder.downsample", latent);
    require_finite(latent, "latent");
    rvq_.encode(context, latent, levels, codes);
}

}  // namespace mimi

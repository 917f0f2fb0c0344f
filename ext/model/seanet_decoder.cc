#include "model/seanet_decoder.h"

#include "model/tensor_names.h"

namespace mimi {

namespace {

std::string stage_name(std::size_t index) {
    return "decoder.model." + std::to_string(index);
}

}  // namespace

SeanetDecoder::SeanetDecoder(const NumericsPolicy& policy, const SeanetGeometry& geometry, const WeightSource& source,
                             StateLayout& layout)
    : first_(load_conv(policy, geometry.first, tensor_names::decoder_conv(tensor_names::first_conv_index), source, layout)),
      last_(load_conv(policy, geometry.last, tensor_names::decoder_conv(tensor_names::last_conv_index), source, layout)) {
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        const StageGeometry& stage = geometry.stages[i];
        const std::size_t resample = tensor_names::decoder_resample_index(i);
        const std::size_t residual = tensor_names::decoder_residual_index(i);
        stages_.push_back(
            {load_transposed_conv(policy, stage.resample, tensor_names::decoder_transposed_conv(resample), source, layout),
             ResidualUnit(
                 load_conv(policy, stage.residual_wide,
                           tensor_names::decoder_residual(residual, tensor_names::residual_wide_block), source, layout),
                 load_conv(policy, stage.residual_point,
                           tensor_names::decoder_residual(residual, tensor_names::residual_point_block), source, layout)),
             stage_name(resample), stage_name(residual)});
    }
}

void SeanetDecoder::step(const StepContext& context, const Activations& latent, const Activations& pcm) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations first = context.take(latent.rows, first_.geometry().out_channels);
    first_.step(context, latent, first);
    context.observe("decoder.model.0", first);
    const std::size_t low_rate_stages = seanet_stages - high_rate_stages;
    const Activations shared = run_stages(context, first, 0, low_rate_stages);
    context.each_lane_alone([&](const StepContext& alone, std::size_t lane) {
        const Activations x = run_stages(alone, only_lane(shared, lane), low_rate_stages, seanet_stages);
        const Activations active = alone.take(x.rows, x.channels, last_.history_rows());
        elu_rows(alone, x, active);
        last_.step(alone, active, only_lane(pcm, lane));
    });
    context.observe("decoder.model.14", pcm);
}

Activations SeanetDecoder::run_stages(const StepContext& context, Activations x, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
        const Stage& stage = stages_[i];
        const Activations active = context.take(x.rows, x.channels, stage.upsample.history_rows());
        elu_rows(context, x, active);
        const ConvGeometry& geometry = stage.upsample.geometry();
        x = context.take(x.rows * geometry.stride, geometry.out_channels);
        stage.upsample.step(context, active, x);
        context.observe(stage.upsample_name.c_str(), x);
        stage.residual.step(context, x);
        context.observe(stage.residual_name.c_str(), x);
    }
    return x;
}

std::size_t SeanetDecoder::size_bytes() const {
    std::size_t bytes = first_.size_bytes() + last_.size_bytes();
    for (const Stage& stage : stages_) bytes += stage.residual.size_bytes() + stage.upsample.size_bytes();
    return bytes;
}

}  // namespace mimi

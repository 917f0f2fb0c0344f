#include "model/seanet_encoder.h"

#include <algorithm>

#include "model/tensor_names.h"

namespace mimi {

namespace {

std::string stage_name(std::size_t index) {
    return "encoder.model." + std::to_string(index);
}

}  // namespace

SeanetEncoder::SeanetEncoder(const NumericsPolicy& policy, const SeanetGeometry& geometry, const WeightSource& source,
                             StateLayout& layout)
    : first_(load_conv(policy, geometry.first, tensor_names::encoder_conv(tensor_names::first_conv_index), source, layout)),
      last_(load_conv(policy, geometry.last, tensor_names::encoder_conv(tensor_names::last_conv_index), source, layout)) {
    for (std::size_t i = 0; i < seanet_stages; ++i) {
        const StageGeometry& stage = geometry.stages[i];
        const std::size_t residual = tensor_names::encoder_residual_index(i);
        const std::size_t resample = tensor_names::encoder_resample_index(i);
        stages_.push_back(
            {ResidualUnit(
                 load_conv(policy, stage.residual_wide,
                           tensor_names::encoder_residual(residual, tensor_names::residual_wide_block), source, layout),
                 load_conv(policy, stage.residual_point,
                           tensor_names::encoder_residual(residual, tensor_names::residual_point_block), source, layout)),
             load_conv(policy, stage.resample, tensor_names::encoder_conv(resample), source, layout), stage_name(residual),
             stage_name(resample)});
    }
}

void SeanetEncoder::step(const StepContext& context, const Activations& pcm, const Activations& latent) const {
    const ScratchArena::Mark mark(context.scratch);
    const ConvGeometry& middle = stages_[high_rate_stages - 1].downsample.geometry();
    std::size_t rows = pcm.rows;
    for (std::size_t i = 0; i < high_rate_stages; ++i) rows /= stages_[i].downsample.geometry().stride;
    const Activations shared = context.take(rows, middle.out_channels);
    context.each_lane_alone([&](const StepContext& alone, std::size_t lane) {
        const Activations x = alone.take(pcm.rows, first_.geometry().out_channels);
        first_.step(alone, only_lane(pcm, lane), x);
        alone.observe("encoder.model.0", x);
        const Activations result = run_stages(alone, x, 0, high_rate_stages);
        std::copy_n(result.row(0, 0), result.row_floats(), shared.row(lane, 0));
    });
    const Activations x = run_stages(context, shared, high_rate_stages, seanet_stages);
    const Activations active = context.take(x.rows, x.channels, last_.history_rows());
    elu_rows(context, x, active);
    last_.step(context, active, latent);
    context.observe("encoder.model.14", latent);
}

Activations SeanetEncoder::run_stages(const StepContext& context, Activations x, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
        const Stage& stage = stages_[i];
        stage.residual.step(context, x);
        context.observe(stage.residual_name.c_str(), x);
        const Activations active = context.take(x.rows, x.channels, stage.downsample.history_rows());
        elu_rows(context, x, active);
        const ConvGeometry& geometry = stage.downsample.geometry();
        x = context.take(x.rows / geometry.stride, geometry.out_channels);
        stage.downsample.step(context, active, x);
        context.observe(stage.downsample_name.c_str(), x);
    }
    return x;
}

std::size_t SeanetEncoder::size_bytes() const {
    std::size_t bytes = first_.size_bytes() + last_.size_bytes();
    for (const Stage& stage : stages_) bytes += stage.residual.size_bytes() + stage.downsample.size_bytes();
    return bytes;
}

}  // namespace mimi

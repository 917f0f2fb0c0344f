#include "layers/depthwise_upsample.h"

namespace mimi {

DepthwiseUpsample::DepthwiseUpsample(const ConvGeometry& geometry, std::span<const float> weight, StateLayout& layout)
    : geometry_(geometry), history_(layout, 1, geometry.in_channels), weights_(2 * geometry.stride * geometry.in_channels) {
    for (std::size_t k = 0; k < geometry.kernel; ++k)
        for (std::size_t c = 0; c < geometry.in_channels; ++c)
            weights_.data()[k * geometry.in_channels + c] = weight[c * geometry.kernel + k];
}

void DepthwiseUpsample::step(const StepContext& context, const Activations& in, const Activations& out) const {
    history_.exchange(context, in);
    const std::size_t channels = geometry_.in_channels;
    for (std::size_t lane = 0; lane < in.lanes; ++lane) {
        for (std::size_t t = 0; t < out.rows; ++t) {
            const std::size_t source = t / geometry_.stride;
            const std::size_t s = t % geometry_.stride;
            const float* now = in.row(lane, static_cast<std::ptrdiff_t>(source));
            const float* before = in.row(lane, static_cast<std::ptrdiff_t>(source) - 1);
            const float* weight_now = weights_.data() + s * channels;
            const float* weight_before = weights_.data() + (s + geometry_.stride) * channels;
            float* target = out.row(lane, static_cast<std::ptrdiff_t>(t));
            for (std::size_t c = 0; c < channels; ++c) target[c] = before[c] * weight_before[c] + now[c] * weight_now[c];
        }
    }
}

}  // namespace mimi

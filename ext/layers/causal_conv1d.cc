#include "layers/causal_conv1d.h"

#include <algorithm>

namespace mimi {

void ConvHistory::exchange(const StepContext& context, const Activations& in) const {
    if (rows_ == 0) return;
    const std::ptrdiff_t past = -static_cast<std::ptrdiff_t>(rows_);
    for (std::size_t lane = 0; lane < in.lanes; ++lane) {
        StreamState& state = *context.lanes[lane];
        if (padding_ == StartPadding::replicate && state.position_frames() == 0) {
            for (std::ptrdiff_t t = past; t < 0; ++t) std::copy_n(in.row(lane, 0), in.channels, in.row(lane, t));
        } else {
            std::copy_n(state.history(slot_), rows_ * in.channels, in.row(lane, past));
        }
        std::copy_n(in.row(lane, static_cast<std::ptrdiff_t>(in.rows) + past), rows_ * in.channels, state.next_history(slot_));
    }
}

CausalConv1d::CausalConv1d(const ConvGeometry& geometry, std::span<const float> weight, std::span<const float> bias,
                           StateLayout& layout, StartPadding padding)
    : geometry_(geometry),
      history_(layout, geometry.kernel - geometry.stride, geometry.in_channels, padding),
      matrix_(geometry.out_channels, geometry.kernel * geometry.in_channels,
              [&](std::size_t o, std::size_t column) {
                  const std::size_t k = column / geometry.in_channels;
                  const std::size_t i = column % geometry.in_channels;
                  return weight[(o * geometry.in_channels + i) * geometry.kernel + k];
              }),
      bias_(bias.size()) {
    std::copy(bias.begin(), bias.end(), bias_.data());
}

void CausalConv1d::step(const StepContext& context, const Activations& in, const Activations& out) const {
    history_.exchange(context, in);
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t count = out.lanes * out.rows;
    const float** columns = context.scratch.take_array<const float*>(count);
    float** rows = context.scratch.take_array<float*>(count);
    const std::ptrdiff_t past = -static_cast<std::ptrdiff_t>(history_rows());
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        for (std::size_t t = 0; t < out.rows; ++t) {
            columns[lane * out.rows + t] = in.row(lane, static_cast<std::ptrdiff_t>(t * geometry_.stride) + past);
            rows[lane * out.rows + t] = out.row(lane, static_cast<std::ptrdiff_t>(t));
        }
    }
    matrix_.multiply(context, bias_.size() ? bias_.data() : nullptr, columns, rows, count);
}

}  // namespace mimi

#include "layers/causal_conv_transpose1d.h"

namespace mimi {

namespace {

std::size_t count_taps(const ConvGeometry& geometry) {
    return (geometry.kernel + geometry.stride - 1) / geometry.stride;
}

}  // namespace

CausalConvTranspose1d::CausalConvTranspose1d(const NumericsPolicy& policy, const ConvGeometry& geometry,
                                             std::span<const float> weight, MatrixStorage stored, std::span<const float> bias,
                                             StateLayout& layout)
    : geometry_(geometry),
      history_(layout, count_taps(geometry) - 1, geometry.in_channels),
      matrix_(
          policy, geometry.stride * geometry.out_channels, count_taps(geometry) * geometry.in_channels,
          MatrixForm{.segment = geometry.in_channels},
          [&](std::size_t output, std::size_t column) {
              const std::size_t tap = count_taps(geometry) - 1 - column / geometry.in_channels;
              const std::size_t i = column % geometry.in_channels;
              const std::size_t k = output / geometry.out_channels + tap * geometry.stride;
              const std::size_t o = output % geometry.out_channels;
              return k < geometry.kernel ? weight[(i * geometry.out_channels + o) * geometry.kernel + k] : 0.0f;
          },
          stored),
      bias_(geometry.stride * bias.size()) {
    for (std::size_t i = 0; i < bias_.size(); ++i) bias_.data()[i] = bias[i % bias.size()];
}

void CausalConvTranspose1d::step(const StepContext& context, const Activations& in, const Activations& out) const {
    history_.exchange(context, in);
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t count = in.lanes * in.rows;
    const float** columns = context.scratch.take_array<const float*>(count);
    float** rows = context.scratch.take_array<float*>(count);
    const std::ptrdiff_t past = -static_cast<std::ptrdiff_t>(history_rows());
    for (std::size_t lane = 0; lane < in.lanes; ++lane) {
        for (std::size_t t = 0; t < in.rows; ++t) {
            columns[lane * in.rows + t] = in.row(lane, static_cast<std::ptrdiff_t>(t) + past);
            rows[lane * in.rows + t] = out.row(lane, static_cast<std::ptrdiff_t>(t * geometry_.stride));
        }
    }
    matrix_.multiply(context, bias_.size() ? bias_.data() : nullptr, columns, rows, count);
}

}  // namespace mimi

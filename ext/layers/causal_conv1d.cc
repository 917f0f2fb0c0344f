#include "layers/causal_conv1d.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace mimi {

void ConvHistory::exchange(const StepContext& context, const Activations& in) const {
    if (rows_ == 0) return;
    const std::ptrdiff_t past = -static_cast<std::ptrdiff_t>(rows_);
    context.each_lane([&](std::size_t lane) {
        StreamState& state = *context.lanes[lane];
        if (padding_ == StartPadding::replicate && state.position_frames() == 0) {
            for (std::ptrdiff_t t = past; t < 0; ++t) std::copy_n(in.row(lane, 0), in.channels, in.row(lane, t));
        } else {
            std::copy_n(state.history(slot_), rows_ * in.channels, in.row(lane, past));
        }
        std::copy_n(in.row(lane, static_cast<std::ptrdiff_t>(in.rows) + past), rows_ * in.channels, state.next_history(slot_));
    });
}

namespace {

// Where in the run of input rows each element of a conv's sum lies.
std::vector<std::uint32_t> reduction_offsets(ConvOrder order, const ConvGeometry& geometry) {
    std::vector<std::uint32_t> offsets;
    if (order == ConvOrder::step_major) return offsets;
    for (std::size_t i = 0; i < geometry.in_channels; ++i)
        for (std::size_t k = 0; k < geometry.kernel; ++k)
            offsets.push_back(static_cast<std::uint32_t>(k * geometry.in_channels + i));
    return offsets;
}

PackedMatrix pack_conv(const NumericsPolicy& policy, const ConvGeometry& geometry, std::span<const float> weight,
                       MatrixStorage stored) {
    MatrixForm form{.conv_operands = true, .offsets = reduction_offsets(policy.conv_order, geometry)};
    const std::vector<std::uint32_t> offsets = form.offsets;
    return {policy,
            geometry.out_channels,
            geometry.kernel * geometry.in_channels,
            std::move(form),
            [&](std::size_t o, std::size_t element) {
                const std::size_t at = offsets.empty() ? element : offsets[element];
                const std::size_t k = at / geometry.in_channels;
                const std::size_t i = at % geometry.in_channels;
                return weight[(o * geometry.in_channels + i) * geometry.kernel + k];
            },
            stored};
}

}  // namespace

CausalConv1d::CausalConv1d(const NumericsPolicy& policy, const ConvGeometry& geometry, std::span<const float> weight,
                           MatrixStorage stored, std::span<const float> bias, StateLayout& layout, StartPadding padding)
    : geometry_(geometry),
      history_(layout, geometry.kernel - geometry.stride, geometry.in_channels, padding),
      matrix_(pack_conv(policy, geometry, weight, stored)),
      bias_(bias.size()) {
    std::copy(bias.begin(), bias.end(), bias_.data());
}

void CausalConv1d::step(const StepContext& context, const Activations& in, const Activations& out) const {
    matrix_.round_operand(context, in);
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

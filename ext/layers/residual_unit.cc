#include "layers/residual_unit.h"

#include <utility>

namespace mimi {

void elu_rows(const StepContext& context, const Activations& in, const Activations& out) {
    context.each_lane([&](std::size_t lane) { context.kernels.elu(in.row(lane, 0), out.row(lane, 0), in.row_floats()); });
}

ResidualUnit::ResidualUnit(CausalConv1d wide, CausalConv1d point) : wide_(std::move(wide)), point_(std::move(point)) {}

void ResidualUnit::step(const StepContext& context, const Activations& x) const {
    const ScratchArena::Mark mark(context.scratch);
    const Activations active = context.take(x.rows, x.channels, wide_.history_rows());
    elu_rows(context, x, active);
    const Activations hidden = context.take(x.rows, wide_.geometry().out_channels, point_.history_rows());
    wide_.step(context, active, hidden);
    elu_rows(context, hidden, hidden);
    const Activations correction = context.take(x.rows, x.channels);
    point_.step(context, hidden, correction);
    context.each_lane([&](std::size_t lane) {
        float* sum = x.row(lane, 0);
        const float* term = correction.row(lane, 0);
        for (std::size_t i = 0; i < x.row_floats(); ++i) sum[i] = sum[i] + term[i];
    });
}

}  // namespace mimi

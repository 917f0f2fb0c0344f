// SEANet's residual unit: x + conv1(ELU(conv3(ELU(x)))).
#pragma once

#include <cstddef>

#include "layers/causal_conv1d.h"
#include "layers/step_context.h"

namespace mimi {

class ResidualUnit {
public:
    ResidualUnit(CausalConv1d wide, CausalConv1d point);

    // x: [lane][rows][channels], changed in place.
    void step(const StepContext& context, const Activations& x) const;
    std::size_t size_bytes() const { return wide_.size_bytes() + point_.size_bytes(); }

private:
    CausalConv1d wide_;
    CausalConv1d point_;
};

// ELU of every row of `in`, written behind the room for history that `out` leaves.
void elu_rows(const StepContext& context, const Activations& in, const Activations& out);

}  // namespace mimi

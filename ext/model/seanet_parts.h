// Loading of SEANet's layers, shared by its encoder and its decoder.
#pragma once

#include <cstddef>
#include <string>

#include "layers/causal_conv1d.h"
#include "layers/causal_conv_transpose1d.h"
#include "layers/residual_unit.h"
#include "model/geometry.h"
#include "model/weight_source.h"
#include "state/state_layout.h"

namespace mimi {

inline CausalConv1d load_conv(const NumericsPolicy& policy, const ConvGeometry& geometry, const std::string& name,
                              const WeightSource& source, StateLayout& layout) {
    const std::string weight = name + ".weight";
    return {policy, geometry, source.values(weight), source.storage(weight), source.values(name + ".bias"), layout};
}

inline CausalConvTranspose1d load_transposed_conv(const NumericsPolicy& policy, const ConvGeometry& geometry,
                                                  const std::string& name, const WeightSource& source, StateLayout& layout) {
    const std::string weight = name + ".weight";
    return {policy, geometry, source.values(weight), source.storage(weight), source.values(name + ".bias"), layout};
}

// Stages next to the PCM have many rows and few weights: a lane's activations stay in cache when lanes run one after the other.
// The others have few rows and many weights: lanes run together, so that each weight is read once per batch.
constexpr std::size_t high_rate_stages = 2;

}  // namespace mimi

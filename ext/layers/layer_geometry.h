// Sizes of one layer, as the model's geometry states them.
#pragma once

#include <cstddef>

namespace mimi {

struct ConvGeometry {
    std::size_t in_channels = 0;
    std::size_t out_channels = 0;
    std::size_t kernel = 0;
    std::size_t stride = 1;
};

struct TransformerGeometry {
    std::size_t dim = 0;
    std::size_t layers = 0;
    std::size_t heads = 0;
    std::size_t head_dim = 0;
    std::size_t mlp_width = 0;
    std::size_t context_steps = 0;  // keys a query sees, itself included
    double max_period = 0;
};

}  // namespace mimi

// Everything in which the two numerics differ beyond their kernel tables. Chosen once, at load, by model/numerics.h.
#pragma once

namespace mimi {

// What stands before the first input row of a stream.
enum class StartPadding {
    zeros,
    replicate,  // the stream's first input row
};

// Order in which a conv's sum runs over its inputs.
enum class ConvOrder {
    step_major,     // kernel position, then channel: the input's own order in memory
    channel_major,  // channel, then kernel position
};

// Where a rotated pair of interleaved inputs goes.
enum class RotaryLayout {
    interleaved,
    half_split,  // real parts first, imaginary parts behind them
};

// Which keys a query of a step sees, and in which order it sums over them.
enum class AttentionView {
    causal_window,      // its own position and the context before it, by ascending position
    ring_slots,         // every slot of a ring of `context`, by slot; masked as moshi.cpp masks it, past the wrap too
    ring_slots_causal,  // the same with the mask as it was meant: no later position, nothing else hidden
};

// How matrix products sum; see kernels/kernel_table.h.
enum class SumOrder {
    chains,  // chains of chain_elements, added in order
    tree,    // tree32 and half32 over all inputs, or over one tap of a transposed conv
};

constexpr unsigned chain_elements = 256;

struct NumericsPolicy {
    StartPadding downsample_start = StartPadding::replicate;
    ConvOrder conv_order = ConvOrder::step_major;
    bool half_conv_weights = false;  // conv and quantiser projection weights are rounded to f16 at load
    RotaryLayout rotary_layout = RotaryLayout::interleaved;
    bool ggml_rotary = false;  // angles by glibc's sequences instead of correctly rounded ones
    AttentionView attention_view = AttentionView::causal_window;
    SumOrder sum_order = SumOrder::chains;
};

}  // namespace mimi

// SEANet encoder: PCM at 24 kHz to latents at 25 Hz.
#pragma once

#include <string>
#include <vector>

#include "model/seanet_parts.h"

namespace mimi {

class SeanetEncoder {
public:
    SeanetEncoder(const NumericsPolicy& policy, const SeanetGeometry& geometry, const WeightSource& source,
                  StateLayout& layout);

    // pcm: [lane][1920][1] with pcm_history_rows() of room -> latent: [lane][2][dim]
    void step(const StepContext& context, const Activations& pcm, const Activations& latent) const;
    std::size_t pcm_history_rows() const { return first_.history_rows(); }
    std::size_t size_bytes() const;

private:
    struct Stage {
        ResidualUnit residual;
        CausalConv1d downsample;
        std::string residual_name;
        std::string downsample_name;
    };

    // Runs stages begin .. end - 1; returns their output.
    Activations run_stages(const StepContext& context, Activations x, std::size_t begin, std::size_t end) const;

    CausalConv1d first_;
    std::vector<Stage> stages_;
    CausalConv1d last_;
};

}  // namespace mimi

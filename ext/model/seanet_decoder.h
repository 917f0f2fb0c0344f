// SEANet decoder: latents at 25 Hz to PCM at 24 kHz.
#pragma once

#include <string>
#include <vector>

#include "model/seanet_parts.h"

namespace mimi {

class SeanetDecoder {
public:
    SeanetDecoder(const NumericsPolicy& policy, const SeanetGeometry& geometry, const WeightSource& source,
                  StateLayout& layout);

    // latent: [lane][2][dim] with latent_history_rows() of room -> pcm: [lane][1920][1]
    void step(const StepContext& context, const Activations& latent, const Activations& pcm) const;
    std::size_t latent_history_rows() const { return first_.history_rows(); }
    std::size_t size_bytes() const;

private:
    struct Stage {
        CausalConvTranspose1d upsample;
        ResidualUnit residual;
        std::string upsample_name;
        std::string residual_name;
    };

    // Runs stages begin .. end - 1; returns their output.
    Activations run_stages(const StepContext& context, Activations x, std::size_t begin, std::size_t end) const;

    CausalConv1d first_;
    std::vector<Stage> stages_;
    CausalConv1d last_;
};

}  // namespace mimi

#include "codec/latents.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "codec/code_range.h"

namespace mimi {

namespace {

// Frames looked up at once: what keeps a pass over the projections worth its while and scratch small.
constexpr std::size_t frames_at_once = 64;

// Keeps one stage of a step.
class StageKeeper : public StageObserver {
public:
    StageKeeper(std::string_view name, float* values) : name_(name), values_(values) {}

    void stage(const char* name, const Activations& activations) override {
        if (name_ != name) return;
        for (std::size_t lane = 0; lane < activations.lanes; ++lane)
            std::copy_n(activations.row(lane, 0), activations.row_floats(), values_ + lane * activations.row_floats());
    }

private:
    std::string_view name_;
    float* values_;
};

}  // namespace

void encode_batch_with_latents(std::span<EncoderSession* const> sessions, const float* const* pcm, std::int32_t* codes,
                               float* latents) {
    StageKeeper keeper("encoder.downsample", latents);
    encode_batch(sessions, pcm, codes, &keeper);
}

void decode_latents(const CodecModel& model, const std::int32_t* codes, std::size_t frames, std::size_t levels,
                    float* latents) {
    const RvqGeometry& geometry = model.geometry().rvq;
    if (levels < 1 || levels > geometry.levels())
        throw Error(ErrorCode::setting, "levels", std::to_string(levels), "1 .. " + std::to_string(geometry.levels()));
    for (std::size_t frame = 0; frame < frames; ++frame)
        require_codes_in_range(codes + frame * levels, levels, geometry.codebook_entries, "frame", frame);
    ScratchPool::Lease scratch(model.scratches());
    // The quantiser has no state: each frame is a lane without one.
    const std::vector<StreamState*> nobody(std::min(frames, frames_at_once), nullptr);
    for (std::size_t begin = 0; begin < frames; begin += frames_at_once) {
        const std::size_t count = std::min(frames - begin, frames_at_once);
        const std::span<StreamState* const> lanes(nobody.data(), count);
        const ScratchArena::Mark mark(scratch.arena());
        const StepContext context{model.kernels(), model.pool(), model.scratches(), scratch.arena(), lanes, nullptr};
        const Activations latent = context.take(1, geometry.dim);
        model.rvq().decode(context, codes + begin * levels, levels, latent);
        for (std::size_t lane = 0; lane < count; ++lane)
            std::copy_n(latent.row(lane, 0), geometry.dim, latents + (begin + lane) * geometry.dim);
    }
}

void copy_codebook(const CodecModel& model, std::size_t level, float* codewords) {
    const RvqGeometry& geometry = model.geometry().rvq;
    if (level >= geometry.levels())
        throw Error(ErrorCode::setting, "level", std::to_string(level), "0 .. " + std::to_string(geometry.levels() - 1));
    const Codebook& codebook = model.rvq().codebook(level);
    for (std::size_t entry = 0; entry < geometry.codebook_entries; ++entry)
        for (std::size_t k = 0; k < geometry.codebook_dim; ++k) *codewords++ = codebook.at(static_cast<std::int32_t>(entry), k);
}

}  // namespace mimi

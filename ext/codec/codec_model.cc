#include "codec/codec_model.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "model/contract.h"
#include "model/weight_source.h"
#include "weights/weight_file.h"

namespace mimi {

namespace {

Numerics choose_numerics(const GgufReader& file, const std::string& wanted) {
    return parse_numerics(wanted.empty() ? default_numerics(file) : wanted);
}

// moshi.cpp's ring holds both steps of a frame before either looks back; with room for one only, a step would see nothing.
NumericsPolicy checked_policy(Numerics numerics, const Geometry& geometry) {
    const NumericsPolicy policy = numerics_policy(numerics);
    const std::size_t context =
        std::min(geometry.encoder_transformer.context_steps, geometry.decoder_transformer.context_steps);
    if (policy.attention_view != AttentionView::causal_window && context < geometry.steps_per_frame())
        throw Error(ErrorCode::model_contract, "context under " + std::string(numerics_name(numerics)) + " numerics",
                    std::to_string(context) + " steps", "at least " + std::to_string(geometry.steps_per_frame()));
    return policy;
}

std::size_t fixed_weights_bytes(const SplitRvq& rvq, const MimiEncoder& encoder, const MimiDecoder& decoder) {
    return rvq.size_bytes() + encoder.size_bytes() + decoder.size_bytes();
}

}  // namespace

std::shared_ptr<const CodecModel> CodecModel::open(const std::string& path, const ModelOptions& options) {
    const GgufReader file(path);
    return std::make_shared<const CodecModel>(file, options);
}

CodecModel::CodecModel(const GgufReader& file, const ModelOptions& options)
    : geometry_(read_geometry(file)),
      name_(file.text("general.name").value_or("")),
      weight_class_(check_contract(file, geometry_)),
      numerics_(choose_numerics(file, options.numerics)),
      policy_(checked_policy(numerics_, geometry_)),
      kernels_(numerics_kernels(numerics_, choose_kernels(options.isa))),
      rvq_(policy_, geometry_.rvq, WeightSource(file)),
      encoder_(policy_, geometry_, rvq_, WeightSource(file), window_),
      decoder_(policy_, geometry_, rvq_, WeightSource(file), window_),
      pool_(checked_threads(options.threads)) {
    const WindowPlan plan = window_.plan(fixed_weights_bytes(rvq_, encoder_, decoder_), options.window);
    const PageCache page_cache = plan.streams() ? PageCache::bypass : PageCache::keep;
    window_.bind(std::make_unique<WeightFile>(file.path(), file.identity(), page_cache), plan);
}

WindowPlan plan_model_window(const GgufReader& file, const ModelOptions& options) {
    const Geometry geometry = read_geometry(file);
    check_contract(file, geometry);
    const NumericsPolicy policy = checked_policy(choose_numerics(file, options.numerics), geometry);
    TensorWindow window;
    const SplitRvq rvq(policy, geometry.rvq, WeightSource(file));
    const MimiEncoder encoder(policy, geometry, rvq, WeightSource(file), window);
    const MimiDecoder decoder(policy, geometry, rvq, WeightSource(file), window);
    return window.plan(fixed_weights_bytes(rvq, encoder, decoder), options.window);
}

}  // namespace mimi

#include "codec/codec_model.h"

#include <utility>

#include "base/error.h"
#include "kernels/dispatch.h"
#include "model/contract.h"
#include "model/weight_source.h"

namespace mimi {

namespace {

Numerics choose_numerics(const GgufReader& file, const std::string& wanted) {
    return parse_numerics(wanted.empty() ? default_numerics(file) : wanted);
}

std::size_t checked_threads(std::size_t threads) {
    if (threads < 1 || threads > max_threads)
        throw Error(ErrorCode::setting, "threads", std::to_string(threads), "1 .. " + std::to_string(max_threads));
    return threads;
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
      policy_(numerics_policy(numerics_)),
      kernels_(numerics_kernels(numerics_, choose_kernels(options.isa))),
      rvq_(policy_, geometry_.rvq, WeightSource(file)),
      encoder_(policy_, geometry_, rvq_, WeightSource(file)),
      decoder_(policy_, geometry_, rvq_, WeightSource(file)),
      pool_(checked_threads(options.threads)) {}

CodecModel::ScratchLease::ScratchLease(const CodecModel& model) : model_(model) {
    {
        const std::lock_guard lock(model_.idle_scratch_mutex_);
        if (!model_.idle_scratch_.empty()) {
            arena_ = std::move(model_.idle_scratch_.back());
            model_.idle_scratch_.pop_back();
        }
    }
    if (!arena_) arena_ = std::make_unique<ScratchArena>();
}

CodecModel::ScratchLease::~ScratchLease() {
    const std::lock_guard lock(model_.idle_scratch_mutex_);
    model_.idle_scratch_.push_back(std::move(arena_));
}

}  // namespace mimi

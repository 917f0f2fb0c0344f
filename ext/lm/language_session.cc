#include "lm/language_session.h"

#include <utility>

#include "base/error.h"

namespace mimi {

namespace {

void check_temperature(const char* name, double temperature) {
    if (is_temperature(temperature)) return;
    throw Error(ErrorCode::setting, name, std::to_string(temperature), "0, or 0.001 .. 1000");
}

Sampling checked(const Sampling& sampling) {
    check_temperature("text_temperature", sampling.text.temperature);
    check_temperature("temperature", sampling.audio.temperature);
    return sampling;
}

Conditions prepare(const LanguageModel& model, const ConditionRequest& request) {
    ScratchPool::Lease scratch(model.scratches());
    const ScratchArena::Mark mark(scratch.arena());
    const StepContext context{model.kernels(), model.pool(), model.scratches(), scratch.arena(), {}, nullptr};
    return model.temporal().prepare(context, model.window(), request);
}

}  // namespace

LanguageSession::LanguageSession(std::shared_ptr<const LanguageModel> model, const Sampling& sampling, Conditions conditions)
    : model_(std::move(model)),
      sampling_(sampling),
      conditions_(std::move(conditions)),
      state_(model_->state_layout()),
      tokens_(model_->geometry()),
      random_(sampling.generator, sampling.seed) {}

LanguageSession::LanguageSession(std::shared_ptr<const LanguageModel> model, const Sampling& sampling,
                                 const ConditionRequest& request)
    : LanguageSession(model, checked(sampling), prepare(*model, request)) {}

std::size_t LanguageSession::state_bytes() const {
    return state_.size_bytes() + tokens_.values().size() * sizeof(std::int32_t) + sizeof(RandomStream) +
           conditions_.keys_values.size_bytes() + (conditions_.sum.size() + conditions_.cross.size()) * sizeof(float);
}

void LanguageSession::reset() {
    const SessionEntry entry(gate_);
    state_.reset();
    tokens_.reset();
    random_.reset();
}

}  // namespace mimi

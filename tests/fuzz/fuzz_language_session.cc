// libFuzzer target: any bytes as the state of a language model's session, then steps with any tokens. What is taken is exactly
// what save_state() gives; what a step refuses moves no session; and a lane does not see who stands beside it. Input: model,
// whether noise is given, size of the state (u16, 0: a new session); the state; then tokens, i16, and noise, f32.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_sessions.h"
#include "lm/language_session.h"

namespace {

using namespace mimi_fuzz;

constexpr std::array model_names = {"plain", "told", "grouped"};
constexpr std::size_t head = 4, steps = 4, noise_entries = 8;

std::shared_ptr<const mimi::LanguageModel> language_model_of(std::uint8_t choice) {
    static std::array<std::shared_ptr<const mimi::LanguageModel>, model_names.size()> models;
    const std::size_t index = choice % model_names.size();
    const std::string folder = std::getenv("MIMI_FUZZ_LANGUAGE_MODELS");
    if (!models[index])
        models[index] = mimi::LanguageModel::open(folder + "/" + model_names[index] + "-F32.gguf",
                                                  {.isa = "scalar", .threads = 1, .window = {}});
    return models[index];
}

std::unique_ptr<mimi::LanguageSession> new_session(const std::shared_ptr<const mimi::LanguageModel>& model) {
    const mimi::TokenSampling racing{.temperature = 0.7, .top_k = 3};
    mimi::ConditionRequest request;
    for (const mimi::ConditionerGeometry& conditioner : model->geometry().conditioners) {
        request.labels.emplace_back(conditioner.labels == 0 ? std::nullopt : std::optional<std::size_t>(0));
        if (conditioner.labels == 0) request.rows.assign(conditioner.width, 0.5f);
    }
    request.filled.assign(request.rows.empty() ? 0 : 1, 1);
    return std::make_unique<mimi::LanguageSession>(
        model, mimi::Sampling{.text = racing, .audio = racing, .generator = {}, .seed = 5}, request);
}

// What is left of an input, zero behind its end.
class Rest {
public:
    Rest(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    bool is_empty() const { return size_ == 0; }
    template <class Value>
    Value take() {
        Value value{};
        const std::size_t count = std::min(sizeof value, size_);
        std::memcpy(&value, data_, count);
        data_ += count;
        size_ -= count;
        return value;
    }
    std::vector<std::int32_t> tokens(std::size_t count) {
        std::vector<std::int32_t> tokens(count);
        for (std::int32_t& token : tokens) token = take<std::int16_t>();
        return tokens;
    }

private:
    const std::uint8_t* data_;
    std::size_t size_;
};

struct Outcome {
    explicit Outcome(const mimi::LmGeometry& geometry)
        : codes(geometry.own_levels), heads(geometry.extra_heads * geometry.extra_head_dim) {}
    mimi::LanguageOutput room() { return {.ready = false, .text = 0, .codes = codes.data(), .extra_heads = heads.data()}; }
    std::vector<std::int32_t> codes;
    std::vector<float> heads;
};

// One step in company and alone. False where it was refused.
bool step(mimi::LanguageSession& first, mimi::LanguageSession& beside, mimi::LanguageSession& alone, Rest& rest, bool noisy) {
    const mimi::LmGeometry& geometry = first.model().geometry();
    const std::vector<std::int32_t> user = rest.tokens(geometry.user_channels()), text = rest.tokens(1);
    const std::vector<std::int32_t> codes = rest.tokens(geometry.own_levels), kept = rest.tokens(geometry.own_levels);
    std::vector<float> noise((1 + geometry.own_levels) * noise_entries);
    for (float& value : noise) value = noisy ? rest.take<float>() : 0.0f;
    const mimi::LanguageInput hostile{.user = user.data(),
                                      .text = text[0],
                                      .codes = codes.data(),
                                      .kept = kept.data(),
                                      .noise = noisy ? noise.data() : nullptr,
                                      .noise_entries = noise_entries};
    const std::vector<std::int32_t> silence(geometry.user_channels());
    mimi::LanguageInput calm;
    calm.user = silence.data();
    Outcome together(geometry), other(geometry), single(geometry);
    std::array<mimi::LanguageSession*, 2> both = {&first, &beside};
    std::array<mimi::LanguageSession*, 1> one = {&alone};
    std::array<mimi::LanguageOutput, 2> out = {together.room(), other.room()};
    std::array<mimi::LanguageOutput, 1> out_alone = {single.room()};
    const std::string before = first.save_state(), before_beside = beside.save_state();
    try {
        mimi::step_batch(both, std::array{hostile, calm}, out);
    } catch (const mimi::Error& error) {
        require_refusal(error, {mimi::ErrorCode::code_range, mimi::ErrorCode::numeric_overflow, mimi::ErrorCode::setting});
        require(first.save_state() == before && beside.save_state() == before_beside);
        return false;
    }
    mimi::step_batch(one, std::array{hostile}, out_alone);
    require(out[0].ready == out_alone[0].ready && out[0].text == out_alone[0].text && together.codes == single.codes);
    require(together.heads.empty() || std::memcmp(together.heads.data(), single.heads.data(), together.heads.size() * 4) == 0);
    require(first.save_state() == alone.save_state());
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < head) return 0;
    const auto model = language_model_of(data[0]);
    const std::size_t state_bytes = std::min<std::size_t>(data[2] | data[3] << 8, size - head);
    const std::string state(reinterpret_cast<const char*>(data) + head, state_bytes);
    const auto beside = new_session(model);
    std::unique_ptr<mimi::LanguageSession> first, alone;
    try {
        first = state.empty() ? new_session(model) : mimi::LanguageSession::restore(model, state);
        alone = state.empty() ? new_session(model) : mimi::LanguageSession::restore(model, state);
    } catch (const mimi::Error& error) {
        require_refusal(error, {mimi::ErrorCode::snapshot});
        return 0;
    }
    require(state.empty() || first->save_state() == state);
    Rest rest(data + head + state_bytes, size - head - state_bytes);
    for (std::size_t i = 0; i < steps && !rest.is_empty(); ++i)
        if (!step(*first, *beside, *alone, rest, (data[1] & 1) != 0)) break;
    return 0;
}

// libFuzzer target: any bytes as a language model's file. What is refused is refused by the errors that a file may cause; what
// is taken can be stepped, by the likeliest tokens and by a race, and nothing worse comes of it than numbers out of range.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fuzz_memory_file.h"
#include "fuzz_sessions.h"
#include "lm/language_session.h"

namespace {

using namespace mimi_fuzz;

constexpr std::size_t steps = 3;

mimi::ConditionRequest nothing_told(const mimi::LmGeometry& geometry) {
    mimi::ConditionRequest request;
    request.labels.resize(geometry.conditioners.size());
    for (const mimi::ConditionerGeometry& conditioner : geometry.conditioners)
        if (conditioner.labels == 0) request.rows.resize(conditioner.width);
    request.filled.assign(request.rows.empty() ? 0 : 1, 1);
    return request;
}

void step(const std::shared_ptr<const mimi::LanguageModel>& model) {
    const mimi::LmGeometry& geometry = model->geometry();
    const mimi::ConditionRequest request = nothing_told(geometry);
    const mimi::TokenSampling racing{.temperature = 0.7, .top_k = 0};
    mimi::LanguageSession greedy(model, {}, request);
    mimi::LanguageSession drawn(model, {.text = racing, .audio = racing, .generator = {}, .seed = 1}, request);
    std::array<mimi::LanguageSession*, 2> sessions = {&greedy, &drawn};
    const std::vector<std::int32_t> user(geometry.user_channels());
    std::vector<std::int32_t> codes(2 * geometry.own_levels);
    std::vector<float> heads(2 * geometry.extra_heads * geometry.extra_head_dim);
    std::array<mimi::LanguageInput, 2> inputs;
    std::array<mimi::LanguageOutput, 2> outputs;
    for (std::size_t lane = 0; lane < 2; ++lane) {
        inputs[lane].user = user.data();
        outputs[lane].codes = codes.data() + lane * codes.size() / 2;
        outputs[lane].extra_heads = heads.data() + lane * heads.size() / 2;
    }
    for (std::size_t i = 0; i < steps; ++i) mimi::step_batch(sessions, inputs, outputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const MemoryFile file;
    file.fill(data, size);
    std::shared_ptr<const mimi::LanguageModel> model;
    try {
        model = mimi::LanguageModel::open(file.path(), {.isa = "scalar", .threads = 1, .window = {}});
    } catch (const mimi::Error& error) {
        require(may_come_of_a_file(error.code()) && !error.subject().empty());
        return 0;
    }
    try {
        step(model);
    } catch (const mimi::Error& error) {
        require_refusal(error, {mimi::ErrorCode::numeric_overflow});
    }
    return 0;
}

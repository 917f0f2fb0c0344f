// One stream through a language model, and the batched step that serves many of them in one pass. A session is used by one
// thread at a time, as a codec's session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layers/step_context.h"
#include "lm/choose_token.h"
#include "lm/conditions.h"
#include "lm/language_input.h"
#include "lm/language_model.h"
#include "lm/random_stream.h"
#include "lm/token_ring.h"
#include "state/session_gate.h"
#include "state/stream_state.h"

namespace mimi {

struct LanguageOutput {
    bool ready = false;  // whether there is a text and codes yet
    std::int32_t text = 0;
    std::int32_t* codes = nullptr;  // room for [own_levels]
    float* extra_heads = nullptr;   // room for [extra_heads][extra_head_dim]: probabilities of this very step
};

class LanguageSession {
public:
    // Error{setting} where a setting or a condition is none the model knows.
    LanguageSession(std::shared_ptr<const LanguageModel> model, const Sampling& sampling, const ConditionRequest& request);
    LanguageSession(const LanguageSession&) = delete;
    LanguageSession& operator=(const LanguageSession&) = delete;

    const LanguageModel& model() const { return *model_; }
    const Sampling& sampling() const { return sampling_; }
    // Steps since the start or the last reset.
    std::uint64_t position_steps() const { return state_.position_frames(); }
    std::size_t state_bytes() const;
    const Conditions& conditions() const { return conditions_; }

    void require_open() { const SessionEntry entry(gate_); }
    // As a new session, bit for bit; conditions stay.
    void reset();
    void close() { gate_.close(); }
    // All of the above.
    std::string save_state();
    // A session as save_state() left it. Error{snapshot} naming the field where the bytes cannot be of this model.
    static std::unique_ptr<LanguageSession> restore(std::shared_ptr<const LanguageModel> model, const std::string& bytes);

private:
    friend class LanguageBatch;

    LanguageSession(std::shared_ptr<const LanguageModel> model, const Sampling& sampling, Conditions conditions);

    std::shared_ptr<const LanguageModel> model_;
    Sampling sampling_;
    Conditions conditions_;
    StreamState state_;  // keys, values and the position
    TokenRing tokens_;
    RandomStream random_;
    SessionGate gate_;
};

// One step of each session; inputs and outputs go with them. All sessions must be of one model and distinct. Bit-equal to
// stepping them one by one. Whatever is thrown, no session has moved: input_shape, code_range (naming lane and channel),
// setting, session_busy, session_closed, numeric_overflow, what `observer` throws.
void step_batch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs,
                std::span<LanguageOutput> outputs, StageObserver* observer = nullptr);

// More positions at once would hardly save time, weights being read from memory or file once for all of them, and take memory.
constexpr std::size_t most_prompt_steps = 64;

// inputs.size() / sessions.size() steps of each session, whose tokens are known beforehand: text and all codes of every step
// but the last are given. Inputs and outputs: the first of every session, then the second of every session, and so on. Each
// matrix is used once, for all steps. Bit-equal to step_batch() step by step, but that extra heads are told of the last step
// only, and that nothing of it happened where it fails. Errors of step_batch(); input_shape for no whole number of steps from 1
// to most_prompt_steps; code_range where a token is free that must be given.
void prompt_batch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs,
                  std::span<LanguageOutput> outputs);

}  // namespace mimi

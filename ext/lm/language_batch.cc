// The batched step of language_session.h, and the prompt.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/finite.h"
#include "layers/overflow.h"
#include "lm/language_input.h"
#include "lm/language_session.h"
#include "state/ring_undo.h"

namespace mimi {

// The sessions of one step, or of several whose tokens are known beforehand, entered together, committed together and left
// together. What the steps change lies beside what the sessions are, until the end. Rows are the first step of every session,
// then the second of every session, and so on.
class LanguageBatch : public CodeChooser {
public:
    LanguageBatch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs)
        : model_(sessions.front()->model()),
          geometry_(model_.geometry()),
          inputs_(inputs),
          steps_(inputs.size() / sessions.size()) {
        try {
            for (LanguageSession* session : sessions) enter(*session);
            take_inputs();
        } catch (...) {
            leave();
            throw;
        }
    }
    ~LanguageBatch() override { leave(); }
    LanguageBatch(const LanguageBatch&) = delete;
    LanguageBatch& operator=(const LanguageBatch&) = delete;

    void run(std::span<LanguageOutput> outputs, StageObserver* observer) {
        ScratchPool::Lease scratch(model_.scratches());
        const ScratchArena::Mark mark(scratch.arena());
        std::vector<RingUndo> undos = make_undos();
        const StepContext all{model_.kernels(), model_.pool(), model_.scratches(), scratch.arena(), states_, observer};
        const Activations hidden = all.take(1, geometry_.temporal.dim);
        const Activations logits = all.take(1, geometry_.text_outputs);
        const std::vector<std::int32_t> tokens = hear(outputs);
        model_.temporal().step(all, model_.window(), {streams(), tokens.data(), sums_.data(), conditions_.data()}, hidden,
                               logits);
        choose_texts(logits);
        const StepContext last{model_.kernels(),
                               model_.pool(),
                               model_.scratches(),
                               scratch.arena(),
                               std::span<StreamState* const>(states_).last(streams()),
                               observer};
        const Activations last_hidden = some_lanes(hidden, last_row(0), streams());
        if (model_.depformer() != nullptr && !all_codes_are_given())
            model_.depformer()->step(last, model_.window(), last_hidden, texts_.data() + last_row(0), *this);
        if (geometry_.extra_heads > 0) look_at_heads(last, last_hidden, outputs.last(streams()));
        commit(outputs);
        for (RingUndo& undo : undos) undo.forget();
    }

    void choose(std::size_t level, const Activations& logits, std::int32_t* codes) override {
        for (std::size_t lane = 0; lane < streams(); ++lane) {
            std::int32_t& code = codes_[last_row(lane) * geometry_.own_levels + level];
            if (code == free_token)
                code = choose_one(last_row(lane), 1 + level, logits.row(lane, 0), geometry_.codebook_entries);
            codes[lane] = code;
        }
    }

private:
    // A single step overwrites nothing that is in reach.
    std::vector<RingUndo> make_undos() {
        std::vector<RingUndo> undos;
        for (LanguageSession* session : sessions_)
            if (steps_ > 1) undos.emplace_back(session->state_, steps_);
        return undos;
    }

    std::size_t streams() const { return sessions_.size(); }
    std::size_t last_row(std::size_t lane) const { return (steps_ - 1) * streams() + lane; }

    std::uint64_t position(std::size_t row) const { return sessions_[row % streams()]->position_steps() + row / streams(); }

    void enter(LanguageSession& session) {
        const std::size_t lane = sessions_.size();
        if (&session.model() != &model_)
            throw Error(ErrorCode::setting, "model of session " + std::to_string(lane), "another one",
                        "the model of session 0");
        session.gate_.enter();
        sessions_.push_back(&session);
        if (session.position_steps() + steps_ > max_position_steps)
            throw Error(ErrorCode::setting, "stream position", std::to_string(session.position_steps()) + " steps",
                        "less than " + std::to_string(max_position_steps) + "; reset the session to go on");
        tokens_.push_back(session.tokens_);
        randoms_.push_back(session.random_);
    }

    void take_inputs() {
        for (std::size_t row = 0; row < inputs_.size(); ++row) {
            LanguageSession& session = *sessions_[row % streams()];
            const LanguageInput& input = inputs_[row];
            check_language_input(input, model_.geometry(), session.sampling_, row % streams(), row >= last_row(0));
            states_.push_back(&session.state_);
            conditions_.push_back(&session.conditions_);
            sums_.push_back(input.sum);
            texts_.push_back(input.text);
            for (std::size_t level = 0; level < geometry_.own_levels; ++level)
                codes_.push_back(input.codes != nullptr ? input.codes[level] : free_token);
        }
    }

    void leave() {
        for (LanguageSession* session : sessions_) session->gate_.leave();
        sessions_.clear();
    }

    // What goes into every row, [row][channels]. All but the last step's answers are known with it.
    std::vector<std::int32_t> hear(std::span<LanguageOutput> outputs) {
        const std::size_t channels = geometry_.channels();
        std::vector<std::int32_t> tokens(inputs_.size() * channels);
        for (std::size_t row = 0; row < inputs_.size(); ++row) {
            TokenRing& ring = tokens_[row % streams()];
            ring.hear(position(row), inputs_[row].user);
            ring.inputs(position(row), tokens.data() + row * channels);
            if (row < last_row(0)) answer(row, outputs[row]);
        }
        return tokens;
    }

    void choose_texts(const Activations& logits) {
        for (std::size_t row = 0; row < inputs_.size(); ++row) {
            const std::int32_t chosen = choose_one(row, 0, logits.row(row, 0), geometry_.text_outputs);
            if (texts_[row] == free_token) texts_[row] = chosen;
        }
    }

    std::int32_t choose_one(std::size_t row, std::size_t channel, const float* logits, std::size_t count) {
        const std::size_t lane = row % streams();
        if (!all_finite(logits, count)) refuse_overflow("logits", lane);
        const Sampling& sampling = sessions_[lane]->sampling_;
        const TokenSampling& own = channel == 0 ? sampling.text : sampling.audio;
        if (own.is_greedy()) return static_cast<std::int32_t>(largest(logits, count));
        const std::vector<std::uint32_t> taking_part = candidates(logits, count, own);
        const LanguageInput& input = inputs_[row];
        if (input.noise != nullptr)
            return static_cast<std::int32_t>(
                race(logits, taking_part, own.temperature, input.noise + channel * input.noise_entries));
        noise_.resize(taking_part.size());
        randoms_[lane].draw(position(row), channel, noise_.size(), noise_.data());
        return static_cast<std::int32_t>(race(logits, taking_part, own.temperature, noise_.data()));
    }

    bool all_codes_are_given() const { return std::find(codes_.begin(), codes_.end(), free_token) == codes_.end(); }

    void look_at_heads(const StepContext& context, const Activations& hidden, std::span<LanguageOutput> outputs) const {
        const std::size_t count = geometry_.extra_heads * geometry_.extra_head_dim;
        const Activations heads = context.take(1, count);
        model_.temporal().extra_heads(context, model_.window(), hidden, heads);
        for (std::size_t lane = 0; lane < outputs.size(); ++lane)
            if (outputs[lane].extra_heads != nullptr) std::copy_n(heads.row(lane, 0), count, outputs[lane].extra_heads);
    }

    // Takes note of what a row has chosen, and answers it.
    void answer(std::size_t row, LanguageOutput& output) {
        std::int32_t* codes = codes_.data() + row * geometry_.own_levels;
        for (std::size_t level = 0; inputs_[row].kept != nullptr && level < geometry_.own_levels; ++level)
            if (inputs_[row].kept[level] != free_token) codes[level] = inputs_[row].kept[level];
        TokenRing& ring = tokens_[row % streams()];
        ring.keep(position(row), texts_[row], codes);
        output.ready = ring.outputs(position(row), output.text, output.codes);
    }

    void commit(std::span<LanguageOutput> outputs) {
        for (std::size_t lane = 0; lane < streams(); ++lane) answer(last_row(lane), outputs[last_row(lane)]);
        for (std::size_t lane = 0; lane < streams(); ++lane) {
            sessions_[lane]->tokens_.values().swap(tokens_[lane].values());
            sessions_[lane]->random_ = randoms_[lane];
            for (std::size_t step = 0; step < steps_; ++step) sessions_[lane]->state_.commit();
        }
    }

    const LanguageModel& model_;
    const LmGeometry& geometry_;
    std::span<const LanguageInput> inputs_;  // [row]
    std::size_t steps_;
    // By lane.
    std::vector<LanguageSession*> sessions_;
    std::vector<TokenRing> tokens_;
    std::vector<RandomStream> randoms_;
    // By row.
    std::vector<StreamState*> states_;
    std::vector<const Conditions*> conditions_;
    std::vector<const float*> sums_;
    std::vector<std::int32_t> texts_;
    std::vector<std::int32_t> codes_;  // [row][own_levels]
    std::vector<float> noise_;
};

namespace {

void require_sessions(std::span<LanguageSession* const> sessions) {
    if (sessions.empty()) throw Error(ErrorCode::input_shape, "batch", "no session", "at least one");
}

}  // namespace

void step_batch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs,
                std::span<LanguageOutput> outputs, StageObserver* observer) {
    require_sessions(sessions);
    LanguageBatch(sessions, inputs).run(outputs, observer);
}

void prompt_batch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs,
                  std::span<LanguageOutput> outputs) {
    require_sessions(sessions);
    if (inputs.empty() || inputs.size() % sessions.size() != 0 || inputs.size() / sessions.size() > most_prompt_steps)
        throw Error(ErrorCode::input_shape, "prompt",
                    std::to_string(inputs.size()) + " steps of " + std::to_string(sessions.size()) + " sessions",
                    "1 to " + std::to_string(most_prompt_steps) + " of each");
    LanguageBatch(sessions, inputs).run(outputs, nullptr);
}

}  // namespace mimi

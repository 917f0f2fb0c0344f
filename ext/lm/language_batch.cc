// The batched step of language_session.h.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/finite.h"
#include "layers/overflow.h"
#include "lm/language_session.h"

namespace mimi {

namespace {

bool is_token(std::int32_t token, std::size_t most, bool may_be_free) {
    if (token == free_token) return may_be_free;
    return token >= zero_token && (token < 0 || static_cast<std::size_t>(token) <= most);
}

// nullptr: nothing is given.
void check_tokens(const char* what, std::size_t lane, const std::int32_t* tokens, std::size_t count, std::size_t most,
                  bool may_be_free) {
    for (std::size_t i = 0; tokens != nullptr && i < count; ++i) {
        if (is_token(tokens[i], most, may_be_free)) continue;
        throw Error(ErrorCode::code_range, std::string(what) + " " + std::to_string(i) + " of lane " + std::to_string(lane),
                    std::to_string(tokens[i]), "-1 .. " + std::to_string(most));
    }
}

}  // namespace

// What steps of one stream overwrite in its ring while they are computed, put back unless they are committed.
class RingUndo {
public:
    RingUndo(LanguageSession& session, std::size_t steps, ScratchArena& scratch)
        : state_(&session.state_), steps_(steps), kept_(scratch.take(state_->overwritten_floats(steps))) {
        state_->copy_overwritten(steps_, kept_);
    }
    RingUndo(RingUndo&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), steps_(other.steps_), kept_(other.kept_) {}
    RingUndo& operator=(RingUndo&&) = delete;
    ~RingUndo() {
        if (state_ != nullptr) state_->put_back_overwritten(steps_, kept_);
    }
    void forget() { state_ = nullptr; }

private:
    StreamState* state_;  // nullptr: there is nothing to put back
    std::size_t steps_;
    float* kept_;
};

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
        std::vector<RingUndo> undos;
        for (LanguageSession* session : sessions_)
            if (steps_ > 1) undos.emplace_back(*session, steps_, scratch.arena());
        const StepContext all{model_.kernels(), model_.pool(), model_.scratches(), scratch.arena(), states_, observer};
        const Activations hidden = all.take(1, geometry_.temporal.dim);
        const Activations logits = all.take(1, geometry_.text_outputs);
        const std::vector<std::int32_t> tokens = hear(outputs);
        model_.temporal().step(all, model_.window(), {streams(), tokens.data(), sums_.data(), conditions_.data()}, hidden,
                               logits);
        choose_texts(logits);
        const StepContext last{model_.kernels(), model_.pool(), model_.scratches(), scratch.arena(),
                               std::span<StreamState* const>(states_).last(streams()), observer};
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
    std::size_t streams() const { return sessions_.size(); }
    std::size_t last_row(std::size_t lane) const { return (steps_ - 1) * streams() + lane; }

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

    // Rows of every session, once all are entered.
    void take_inputs() {
        for (std::size_t row = 0; row < inputs_.size(); ++row) {
            LanguageSession& session = *sessions_[row % streams()];
            const LanguageInput& input = inputs_[row];
            check_input(row);
            states_.push_back(&session.state_);
            conditions_.push_back(&session.conditions_);
            sums_.push_back(input.sum);
            texts_.push_back(input.text);
            for (std::size_t level = 0; level < geometry_.own_levels; ++level)
                codes_.push_back(input.codes != nullptr ? input.codes[level] : free_token);
        }
    }

    void check_input(std::size_t lane) const {
        const LanguageInput& input = inputs_[lane];
        const std::size_t own = geometry_.own_levels, entries = geometry_.codebook_entries;
        check_tokens("user code", lane, input.user, geometry_.user_channels(), entries, false);
        check_tokens("code", lane, input.codes, own, entries, true);
        check_tokens("kept code", lane, input.kept, own, entries, true);
        check_tokens("text", lane, &input.text, 1, geometry_.text_ids() - 1, true);
        if (input.noise == nullptr) return;
        const Sampling& sampling = sessions_[lane]->sampling_;
        const std::size_t text = sampling.text.is_greedy() ? 0 : sampling.text.entries(geometry_.text_outputs);
        const std::size_t audio = sampling.audio.is_greedy() || own == 0 ? 0 : sampling.audio.entries(entries);
        if (input.noise_entries < std::max(text, audio))
            throw Error(ErrorCode::input_shape, "noise of lane " + std::to_string(lane),
                        std::to_string(input.noise_entries) + " numbers a channel",
                        "at least " + std::to_string(std::max(text, audio)));
        const std::size_t count = (1 + own) * input.noise_entries;
        for (std::size_t i = 0; i < count; ++i)
            if (!(input.noise[i] >= 0.0f))
                throw Error(ErrorCode::setting, "noise of lane " + std::to_string(lane), std::to_string(input.noise[i]),
                            "numbers that are not negative");
    }

    void leave() {
        for (LanguageSession* session : sessions_) session->gate_.leave();
        sessions_.clear();
    }

    // The tokens of this step, [lane][channels].
    std::vector<std::int32_t> hear() {
        const std::size_t channels = geometry_.channels();
        std::vector<std::int32_t> tokens(sessions_.size() * channels);
        for (std::size_t lane = 0; lane < sessions_.size(); ++lane) {
            const std::uint64_t position = sessions_[lane]->position_steps();
            tokens_[lane].hear(position, inputs_[lane].user);
            tokens_[lane].inputs(position, tokens.data() + lane * channels);
        }
        return tokens;
    }

    void choose_text(const Activations& logits) {
        for (std::size_t lane = 0; lane < sessions_.size(); ++lane) {
            const std::int32_t chosen = choose_one(lane, 0, logits.row(lane, 0), geometry_.text_outputs);
            if (texts_[lane] == free_token) texts_[lane] = chosen;
        }
    }

    std::int32_t choose_one(std::size_t lane, std::size_t channel, const float* logits, std::size_t count) {
        if (!all_finite(logits, count)) refuse_overflow("logits", lane);
        const Sampling& sampling = sessions_[lane]->sampling_;
        const TokenSampling& own = channel == 0 ? sampling.text : sampling.audio;
        if (own.is_greedy()) return static_cast<std::int32_t>(largest(logits, count));
        const std::vector<std::uint32_t> taking_part = candidates(logits, count, own);
        const LanguageInput& input = inputs_[lane];
        if (input.noise != nullptr)
            return static_cast<std::int32_t>(
                race(logits, taking_part, own.temperature, input.noise + channel * input.noise_entries));
        noise_.resize(taking_part.size());
        randoms_[lane].draw(sessions_[lane]->position_steps(), channel, noise_.size(), noise_.data());
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

    void commit(std::span<LanguageOutput> outputs) {
        for (std::size_t lane = 0; lane < sessions_.size(); ++lane) {
            LanguageSession& session = *sessions_[lane];
            std::int32_t* codes = codes_.data() + lane * geometry_.own_levels;
            for (std::size_t level = 0; inputs_[lane].kept != nullptr && level < geometry_.own_levels; ++level)
                if (inputs_[lane].kept[level] != free_token) codes[level] = inputs_[lane].kept[level];
            tokens_[lane].keep(session.position_steps(), texts_[lane], codes);
            outputs[lane].ready = tokens_[lane].outputs(session.position_steps(), outputs[lane].text, outputs[lane].codes);
        }
        for (std::size_t lane = 0; lane < sessions_.size(); ++lane) {
            sessions_[lane]->tokens_.values().swap(tokens_[lane].values());
            sessions_[lane]->random_ = randoms_[lane];
            sessions_[lane]->state_.commit();
        }
    }

    const LanguageModel& model_;
    const LmGeometry& geometry_;
    std::span<const LanguageInput> inputs_;
    std::vector<LanguageSession*> sessions_;
    std::vector<StreamState*> states_;
    std::vector<const Conditions*> conditions_;
    std::vector<TokenRing> tokens_;
    std::vector<RandomStream> randoms_;
    std::vector<std::int32_t> texts_;
    std::vector<std::int32_t> codes_;  // [lane][own_levels]
    std::vector<float> noise_;
};

void step_batch(std::span<LanguageSession* const> sessions, std::span<const LanguageInput> inputs,
                std::span<LanguageOutput> outputs, StageObserver* observer) {
    if (sessions.empty()) throw Error(ErrorCode::input_shape, "batch", "no session", "at least one");
    LanguageBatch(sessions, inputs).step(outputs, observer);
}

}  // namespace mimi

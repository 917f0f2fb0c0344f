#include "codec/session.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/finite.h"
#include "codec/code_range.h"
#include "layers/overflow.h"

namespace mimi {

Session::Session(std::shared_ptr<const CodecModel> model, std::shared_ptr<const StateLayout> layout, std::size_t levels)
    : model_(std::move(model)), levels_(levels), state_(std::move(layout)) {
    const std::size_t most = model_->geometry().rvq.levels();
    if (levels < 1 || levels > most)
        throw Error(ErrorCode::setting, "levels", std::to_string(levels), "1 .. " + std::to_string(most));
}

void Session::require_open() {
    const SessionEntry entry(gate_);
}

void Session::reset() {
    const SessionEntry entry(gate_);
    state_.reset();
}

void Session::close() {
    gate_.close();
}

std::string Session::save_state() {
    const SessionEntry entry(gate_);
    return state_.save();
}

void Session::load_state(const std::string& bytes) {
    const SessionEntry entry(gate_);
    state_.load(bytes);
}

EncoderSession::EncoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels)
    : Session(model, model->encoder().state_layout(), levels) {}

DecoderSession::DecoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels)
    : Session(model, model->decoder().state_layout(), levels) {}

// The sessions of one batched step, entered together, committed together and left together.
class SessionBatch {
public:
    // Takes room for one pointer a session from `scratch`.
    template <class Derived>
    SessionBatch(std::span<Derived* const> sessions, ScratchArena& scratch)
        : sessions_(scratch.take_array<Session*>(sessions.size())), states_(scratch.take_array<StreamState*>(sessions.size())) {
        try {
            for (Derived* session : sessions) enter(*session, *sessions.front());
        } catch (...) {
            leave();
            throw;
        }
    }
    ~SessionBatch() { leave(); }
    SessionBatch(const SessionBatch&) = delete;
    SessionBatch& operator=(const SessionBatch&) = delete;

    std::span<StreamState* const> states() const { return {states_, count_}; }
    // All or none. Error{numeric_overflow} naming the lane whose future is not finite: an activation may have hidden it from
    // the step's own result.
    void commit(ThreadPool& pool) {
        pool.run(count_, [this](std::size_t i) {
            if (!states_[i]->future_histories_are_finite()) refuse_overflow("state", i);
        });
        for (std::size_t i = 0; i < count_; ++i) states_[i]->commit();
    }

private:
    void enter(Session& session, const Session& first) {
        if (session.model_ != first.model_)
            throw Error(ErrorCode::setting, "model of session " + std::to_string(count_), "another one",
                        "the model of session 0");
        if (session.levels_ != first.levels_)
            throw Error(ErrorCode::setting, "levels of session " + std::to_string(count_), std::to_string(session.levels_),
                        std::to_string(first.levels_) + " as in session 0");
        session.gate_.enter();
        sessions_[count_] = &session;
        states_[count_] = &session.state_;
        ++count_;
        const std::uint64_t most_frames = max_position_steps / session.model_->geometry().steps_per_frame();
        if (session.state_.position_frames() >= most_frames)
            throw Error(ErrorCode::setting, "stream position", std::to_string(session.state_.position_frames()) + " frames",
                        "less than " + std::to_string(most_frames) + "; reset the session to go on");
    }

    void leave() {
        for (std::size_t i = 0; i < count_; ++i) sessions_[i]->gate_.leave();
        count_ = 0;
    }

    Session** sessions_;
    StreamState** states_;
    std::size_t count_ = 0;
};

namespace {

void require_finite_pcm(const float* pcm, std::size_t samples, std::size_t lane) {
    if (all_finite(pcm, samples)) return;
    for (std::size_t i = 0; i < samples; ++i)
        if (!std::isfinite(pcm[i]))
            throw Error(ErrorCode::non_finite_input, "PCM sample " + std::to_string(i) + " of lane " + std::to_string(lane),
                        std::isnan(pcm[i]) ? "NaN" : "infinity", "a finite number");
}

}  // namespace

void encode_batch(std::span<EncoderSession* const> sessions, const float* const* pcm, std::int32_t* codes,
                  StageObserver* observer) {
    if (sessions.empty()) throw Error(ErrorCode::input_shape, "batch", "no session", "at least one");
    const CodecModel& model = sessions.front()->model();
    ScratchPool::Lease scratch(model.scratches());
    const ScratchArena::Mark mark(scratch.arena());
    SessionBatch batch(sessions, scratch.arena());
    for (std::size_t lane = 0; lane < sessions.size(); ++lane)
        require_finite_pcm(pcm[lane], model.geometry().frame_samples, lane);
    const StepContext context{model.kernels(), model.pool(), model.scratches(), scratch.arena(), batch.states(), observer};
    model.encoder().step(context, pcm, sessions.front()->levels(), codes);
    batch.commit(model.pool());
}

void decode_batch(std::span<DecoderSession* const> sessions, const std::int32_t* codes, float* const* pcm,
                  StageObserver* observer) {
    if (sessions.empty()) throw Error(ErrorCode::input_shape, "batch", "no session", "at least one");
    const CodecModel& model = sessions.front()->model();
    ScratchPool::Lease scratch(model.scratches());
    const ScratchArena::Mark mark(scratch.arena());
    SessionBatch batch(sessions, scratch.arena());
    const std::size_t levels = sessions.front()->levels();
    for (std::size_t lane = 0; lane < sessions.size(); ++lane)
        require_codes_in_range(codes + lane * levels, levels, model.geometry().rvq.codebook_entries, "lane", lane);
    const StepContext context{model.kernels(), model.pool(), model.scratches(), scratch.arena(), batch.states(), observer};
    model.decoder().step(context, codes, levels, pcm);
    batch.commit(model.pool());
}

}  // namespace mimi

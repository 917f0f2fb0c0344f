#include "codec/session.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"

namespace mimi {

class Session::Entry {
public:
    explicit Entry(Session& session) : session_(&session) {
        if (session.entered_.exchange(true, std::memory_order_acquire)) {
            session_ = nullptr;
            throw Error(ErrorCode::session_busy, "session", "a call still running on it",
                        "one call at a time, and each session once in a batch");
        }
        if (session.closed_) {
            leave();
            throw Error(ErrorCode::session_closed, "session", "closed", "an open session");
        }
    }
    ~Entry() { leave(); }
    Entry(Entry&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    Entry& operator=(Entry&&) = delete;

private:
    void leave() {
        if (session_) session_->entered_.store(false, std::memory_order_release);
        session_ = nullptr;
    }

    Session* session_;
};

Session::Session(std::shared_ptr<const CodecModel> model, std::shared_ptr<const StateLayout> layout, std::size_t levels)
    : model_(std::move(model)), levels_(levels), state_(std::move(layout)) {
    const std::size_t most = model_->geometry().rvq.levels();
    if (levels < 1 || levels > most)
        throw Error(ErrorCode::setting, "levels", std::to_string(levels), "1 .. " + std::to_string(most));
}

void Session::require_open() {
    const Entry entry(*this);
}

void Session::reset() {
    const Entry entry(*this);
    state_.reset();
}

void Session::close() {
    if (entered_.exchange(true, std::memory_order_acquire))
        throw Error(ErrorCode::session_busy, "session", "a call still running on it", "close after the call has returned");
    closed_ = true;
    entered_.store(false, std::memory_order_release);
}

std::string Session::save_state() {
    const Entry entry(*this);
    return state_.save();
}

void Session::load_state(const std::string& bytes) {
    const Entry entry(*this);
    state_.load(bytes);
}

EncoderSession::EncoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels)
    : Session(model, model->encoder().state_layout(), levels) {}

DecoderSession::DecoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels)
    : Session(model, model->decoder().state_layout(), levels) {}

// The sessions of one batched step, entered together and committed together.
class SessionBatch {
public:
    template <class Derived>
    explicit SessionBatch(std::span<Derived* const> sessions) {
        if (sessions.empty()) throw Error(ErrorCode::input_shape, "batch", "no session", "at least one");
        entries_.reserve(sessions.size());
        states_.reserve(sessions.size());
        for (Derived* session : sessions) add(*session, *sessions.front());
    }

    std::span<StreamState* const> states() const { return states_; }
    void commit() {
        for (StreamState* state : states_) state->commit();
    }

private:
    void add(Session& session, const Session& first) {
        if (session.model_ != first.model_)
            throw Error(ErrorCode::setting, "model of session " + std::to_string(states_.size()), "another one",
                        "the model of session 0");
        if (session.levels_ != first.levels_)
            throw Error(ErrorCode::setting, "levels of session " + std::to_string(states_.size()),
                        std::to_string(session.levels_), std::to_string(first.levels_) + " as in session 0");
        entries_.emplace_back(session);
        const std::uint64_t most_frames = max_position_steps / session.model_->geometry().steps_per_frame();
        if (session.state_.position_frames() >= most_frames)
            throw Error(ErrorCode::setting, "stream position", std::to_string(session.state_.position_frames()) + " frames",
                        "less than " + std::to_string(most_frames) + "; reset the session to go on");
        states_.push_back(&session.state_);
    }

    std::vector<Session::Entry> entries_;
    std::vector<StreamState*> states_;
};

namespace {

void require_finite_pcm(const float* pcm, std::size_t samples, std::size_t lane) {
    for (std::size_t i = 0; i < samples; ++i)
        if (!std::isfinite(pcm[i]))
            throw Error(ErrorCode::non_finite_input, "PCM sample " + std::to_string(i) + " of lane " + std::to_string(lane),
                        std::isnan(pcm[i]) ? "NaN" : "infinity", "a finite number");
}

void require_codes_in_range(const std::int32_t* codes, std::size_t levels, std::size_t entries, std::size_t lane) {
    for (std::size_t level = 0; level < levels; ++level)
        if (codes[level] < 0 || static_cast<std::size_t>(codes[level]) >= entries)
            throw Error(ErrorCode::code_range, "code at level " + std::to_string(level) + " of lane " + std::to_string(lane),
                        std::to_string(codes[level]), "0 .. " + std::to_string(entries - 1));
}

}  // namespace

void encode_batch(std::span<EncoderSession* const> sessions, const float* const* pcm, std::int32_t* codes,
                  StageObserver* observer) {
    SessionBatch batch(sessions);
    const CodecModel& model = sessions.front()->model();
    for (std::size_t lane = 0; lane < sessions.size(); ++lane)
        require_finite_pcm(pcm[lane], model.geometry().frame_samples, lane);
    CodecModel::ScratchLease scratch(model);
    const StepContext context{model.kernels(), model.pool(), scratch.arena(), batch.states(), observer};
    model.encoder().step(context, pcm, sessions.front()->levels(), codes);
    batch.commit();
}

void decode_batch(std::span<DecoderSession* const> sessions, const std::int32_t* codes, float* const* pcm,
                  StageObserver* observer) {
    SessionBatch batch(sessions);
    const CodecModel& model = sessions.front()->model();
    const std::size_t levels = sessions.front()->levels();
    for (std::size_t lane = 0; lane < sessions.size(); ++lane)
        require_codes_in_range(codes + lane * levels, levels, model.geometry().rvq.codebook_entries, lane);
    CodecModel::ScratchLease scratch(model);
    const StepContext context{model.kernels(), model.pool(), scratch.arena(), batch.states(), observer};
    model.decoder().step(context, codes, levels, pcm);
    batch.commit();
}

}  // namespace mimi

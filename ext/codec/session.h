// One stream in one direction, and the batched step that serves many of them in one pass. A session is used by one thread at a
// time: a second one is refused with Error{session_busy}, never made to wait and never let in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "codec/codec_model.h"
#include "layers/step_context.h"
#include "state/session_gate.h"
#include "state/stream_state.h"

namespace mimi {

class Session {
public:
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    const CodecModel& model() const { return *model_; }
    std::size_t levels() const { return levels_; }
    // Frames encoded or decoded since the start or the last reset.
    std::uint64_t position_frames() const { return state_.position_frames(); }
    std::size_t state_bytes() const { return state_.size_bytes(); }

    // Error{session_closed} or Error{session_busy} where a step would be refused for it.
    void require_open();
    // As a new session, bit for bit.
    void reset();
    // No more calls: each throws Error{session_closed}. Closing twice is no error.
    void close();
    std::string save_state();
    // Error{snapshot}; the state is then as before.
    void load_state(const std::string& bytes);

protected:
    // Error{setting} where levels is outside 1 .. the model's.
    Session(std::shared_ptr<const CodecModel> model, std::shared_ptr<const StateLayout> layout, std::size_t levels);
    ~Session() = default;

private:
    friend class SessionBatch;

    std::shared_ptr<const CodecModel> model_;
    std::size_t levels_;
    StreamState state_;
    SessionGate gate_;
};

class EncoderSession : public Session {
public:
    EncoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels);
};

class DecoderSession : public Session {
public:
    DecoderSession(std::shared_ptr<const CodecModel> model, std::size_t levels);
};

// One frame of each session: pcm[i] are frame_samples floats; codes is [session][levels]. All sessions must be of one model,
// have the same levels and be distinct. Bit-equal to stepping them one by one. Whatever is thrown, no session has moved:
// input_shape, non_finite_input (naming lane and sample), session_busy, session_closed, numeric_overflow, what `observer`
// throws.
void encode_batch(std::span<EncoderSession* const> sessions, const float* const* pcm, std::int32_t* codes,
                  StageObserver* observer = nullptr);

// The way back: codes is [session][levels], pcm[i] receives frame_samples floats, not clipped. Errors as above, with code_range
// (naming lane and level) in place of non_finite_input.
void decode_batch(std::span<DecoderSession* const> sessions, const std::int32_t* codes, float* const* pcm,
                  StageObserver* observer = nullptr);

}  // namespace mimi

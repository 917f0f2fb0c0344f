// libFuzzer target: any bytes as the engine's part of a snapshot. What is taken is exactly what save_state() gives, and can be
// stepped; what is refused leaves the session as it was. Input: direction and numerics, levels, state.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_sessions.h"

namespace {

using namespace mimi_fuzz;

void step(mimi::EncoderSession& session) {
    const std::vector<float> pcm(session.model().geometry().frame_samples);
    const float* rows[] = {pcm.data()};
    mimi::EncoderSession* sessions[] = {&session};
    std::vector<std::int32_t> codes(session.levels());
    mimi::encode_batch(sessions, rows, codes.data());
}

void step(mimi::DecoderSession& session) {
    std::vector<float> pcm(session.model().geometry().frame_samples);
    float* rows[] = {pcm.data()};
    mimi::DecoderSession* sessions[] = {&session};
    const std::vector<std::int32_t> codes(session.levels());
    mimi::decode_batch(sessions, codes.data(), rows);
}

template <class SessionType>
void restore(std::uint8_t choice, std::uint8_t levels, const std::string& state) {
    const auto model = model_of(choice);
    SessionType session(model, levels_of(*model, levels));
    const std::string before = session.save_state();
    try {
        session.load_state(state);
    } catch (const mimi::Error& error) {
        require_refusal(error, {mimi::ErrorCode::snapshot});
        require(session.save_state() == before);
        return;
    }
    require(session.save_state() == state);
    try {
        step(session);
    } catch (const mimi::Error& error) {
        // The last is that of a stream at the end of its longest length.
        require_refusal(error, {mimi::ErrorCode::numeric_overflow, mimi::ErrorCode::setting});
        require(session.save_state() == state);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < head_bytes) return 0;
    const std::string state(reinterpret_cast<const char*>(data) + head_bytes, size - head_bytes);
    if (decodes(data[0]))
        restore<mimi::DecoderSession>(data[0], data[1], state);
    else
        restore<mimi::EncoderSession>(data[0], data[1], state);
    return 0;
}

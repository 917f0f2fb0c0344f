// libFuzzer target: any samples and any codes through the engine's step, in the first of two lanes. What is refused moves no
// session; and a lane does not see who stands beside it. Input: direction and numerics, levels, then frames of f32 samples or
// i16 codes, the last one repeated as far as needed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz_sessions.h"

namespace {

using namespace mimi_fuzz;

constexpr std::size_t most_frames = 4;

template <class SessionType>
struct Direction;

template <>
struct Direction<mimi::EncoderSession> {
    using Given = float;
    using Stored = float;
    using Made = std::int32_t;
    static std::size_t given(const mimi::Session& session) { return session.model().geometry().frame_samples; }
    static std::size_t made(const mimi::Session& session) { return session.levels(); }
    static void step(std::span<mimi::EncoderSession* const> sessions, const float* in, std::int32_t* out) {
        std::vector<const float*> rows;
        for (std::size_t lane = 0; lane < sessions.size(); ++lane) rows.push_back(in + lane * given(*sessions[lane]));
        mimi::encode_batch(sessions, rows.data(), out);
    }
};

template <>
struct Direction<mimi::DecoderSession> {
    using Given = std::int32_t;
    using Stored = std::int16_t;
    using Made = float;
    static std::size_t given(const mimi::Session& session) { return session.levels(); }
    static std::size_t made(const mimi::Session& session) { return session.model().geometry().frame_samples; }
    static void step(std::span<mimi::DecoderSession* const> sessions, const std::int32_t* in, float* out) {
        std::vector<float*> rows;
        for (std::size_t lane = 0; lane < sessions.size(); ++lane) rows.push_back(out + lane * made(*sessions[lane]));
        mimi::decode_batch(sessions, in, rows.data());
    }
};

template <class SessionType>
void run(std::uint8_t choice, std::uint8_t level_choice, const std::uint8_t* data, std::size_t size) {
    using To = Direction<SessionType>;
    const auto model = model_of(choice);
    const std::size_t levels = levels_of(*model, level_choice);
    SessionType first(model, levels), beside(model, levels), alone(model, levels);
    const std::size_t width = To::given(first);
    std::vector<typename To::Stored> values(size / sizeof(typename To::Stored));
    if (values.empty()) return;
    std::memcpy(values.data(), data, values.size() * sizeof(typename To::Stored));
    for (std::size_t start = 0; start < std::min(values.size(), most_frames * width); start += width) {
        const std::size_t count = std::min(width, values.size() - start);
        std::vector<typename To::Given> in(2 * width);
        for (std::size_t i = 0; i < width; ++i) in[i] = static_cast<typename To::Given>(values[start + i % count]);
        std::vector<typename To::Made> both(2 * To::made(first)), one(To::made(first));
        SessionType* lanes[] = {&first, &beside};
        SessionType* single[] = {&alone};
        const std::string before = first.save_state(), before_beside = beside.save_state();
        try {
            To::step(lanes, in.data(), both.data());
        } catch (const mimi::Error& error) {
            require_refusal(
                error, {mimi::ErrorCode::numeric_overflow, mimi::ErrorCode::non_finite_input, mimi::ErrorCode::code_range});
            require(first.save_state() == before && beside.save_state() == before_beside);
            return;
        }
        To::step(single, in.data(), one.data());
        require(std::memcmp(one.data(), both.data(), one.size() * sizeof one[0]) == 0);
        require(alone.save_state() == first.save_state());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < head_bytes) return 0;
    if (decodes(data[0]))
        run<mimi::DecoderSession>(data[0], data[1], data + head_bytes, size - head_bytes);
    else
        run<mimi::EncoderSession>(data[0], data[1], data + head_bytes, size - head_bytes);
    return 0;
}

// Several callers step batches of their own on one model, whose pool they share, while others save, restore and reset; run
// under ThreadSanitizer this finds what they share and should not: engine_threads MODEL THREADS WINDOW ROUNDS
// (WINDOW 1: as few weights in memory as a model can do with). Every result must be that of a session by itself. Writes the
// number of steps.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "codec/session.h"

namespace {

constexpr std::size_t callers = 3, lanes = 2, frames = 4;

using Model = std::shared_ptr<const mimi::CodecModel>;

std::vector<float> sound(const Model& model, std::size_t caller, std::size_t lane, std::size_t frame) {
    std::vector<float> pcm(model->geometry().frame_samples);
    for (std::size_t i = 0; i < pcm.size(); ++i)
        pcm[i] = 0.001f * static_cast<float>((i * (3 + caller) + 977 * lane + 131 * frame) % 997) - 0.5f;
    return pcm;
}

struct Answers {
    std::vector<std::int32_t> codes;
    std::vector<float> pcm;
    bool operator==(const Answers&) const = default;
};

// Encodes and decodes the caller's frames, all lanes in one batch.
Answers run(const Model& model, std::size_t caller, std::size_t first_lane, std::size_t count) {
    const std::size_t levels = model->geometry().rvq.levels(), samples = model->geometry().frame_samples;
    std::vector<std::unique_ptr<mimi::EncoderSession>> encoders;
    std::vector<std::unique_ptr<mimi::DecoderSession>> decoders;
    std::vector<mimi::EncoderSession*> encoding;
    std::vector<mimi::DecoderSession*> decoding;
    for (std::size_t lane = 0; lane < count; ++lane) {
        encoding.push_back(encoders.emplace_back(std::make_unique<mimi::EncoderSession>(model, levels)).get());
        decoding.push_back(decoders.emplace_back(std::make_unique<mimi::DecoderSession>(model, levels)).get());
    }
    Answers answers;
    for (std::size_t frame = 0; frame < frames; ++frame) {
        std::vector<std::vector<float>> in, out(count, std::vector<float>(samples));
        std::vector<const float*> rows;
        std::vector<float*> made;
        for (std::size_t lane = 0; lane < count; ++lane) in.push_back(sound(model, caller, first_lane + lane, frame));
        for (std::size_t lane = 0; lane < count; ++lane) rows.push_back(in[lane].data()), made.push_back(out[lane].data());
        std::vector<std::int32_t> codes(count * levels);
        mimi::encode_batch(encoding, rows.data(), codes.data());
        mimi::decode_batch(decoding, codes.data(), made.data());
        answers.codes.insert(answers.codes.end(), codes.begin(), codes.end());
        for (const auto& lane : out) answers.pcm.insert(answers.pcm.end(), lane.begin(), lane.end());
        // A session goes on from its saved state as if nothing had been.
        encoders[0]->load_state(encoders[0]->save_state());
    }
    return answers;
}

// A session that two threads enter at once refuses one of them and harms neither.
std::size_t contend(const Model& model, std::size_t rounds) {
    mimi::EncoderSession session(model, 1);
    std::atomic<std::size_t> refused{0};
    const auto enter = [&] {
        for (std::size_t round = 0; round < 100 * rounds; ++round) try {
                session.reset();
            } catch (const mimi::Error& error) {
                if (error.code() != mimi::ErrorCode::session_busy) std::abort();
                ++refused;
            }
    };
    std::thread other(enter);
    enter();
    other.join();
    return refused;
}

bool round_is_right(const Model& model, const std::vector<Answers>& expected) {
    std::vector<Answers> found(callers);
    std::vector<std::thread> threads;
    for (std::size_t caller = 0; caller < callers; ++caller)
        threads.emplace_back([&, caller] { found[caller] = run(model, caller, 0, lanes); });
    for (std::thread& thread : threads) thread.join();
    return found == expected;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) return 2;
    const auto number = [&](int index) { return std::strtoull(arguments[index], nullptr, 10); };
    try {
        mimi::ModelOptions options{.numerics = "", .isa = "scalar", .threads = number(2), .window = {}};
        if (number(3) != 0)
            options.window.budget_bytes = mimi::plan_model_window(mimi::GgufReader(arguments[1]), options).minimum_bytes;
        const Model model = mimi::CodecModel::open(arguments[1], options);
        const Model alone = mimi::CodecModel::open(arguments[1], {.numerics = "", .isa = "scalar", .threads = 1, .window = {}});
        std::vector<Answers> expected;
        for (std::size_t caller = 0; caller < callers; ++caller) expected.push_back(run(alone, caller, 0, lanes));
        for (unsigned long long round = 0; round < number(4); ++round)
            if (!round_is_right(model, expected)) return 1;
        contend(model, number(4));
        std::printf("%llu\n", 2 * callers * frames * number(4));
    } catch (const mimi::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

// As tests/ext/codec/engine_threads.cc, for a language model: several callers step batches of their own on one model, whose
// pool, window and scratch they share: language_threads MODEL THREADS WINDOW ROUNDS. Every token must be that of a session by
// itself. Writes the number of steps.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "lm/language_session.h"

namespace {

constexpr std::size_t callers = 3, lanes = 2, steps = 6;

using Model = std::shared_ptr<const mimi::LanguageModel>;
using Tokens = std::vector<std::int32_t>;

// Steps the caller's sessions, all lanes in one batch; each goes on from its saved state after every step.
Tokens run(const Model& model, std::size_t caller) {
    const mimi::LmGeometry& geometry = model->geometry();
    const mimi::TokenSampling racing{.temperature = 0.8, .top_k = 20};
    std::array<std::unique_ptr<mimi::LanguageSession>, lanes> sessions;
    std::array<Tokens, lanes> heard, codes;
    Tokens said;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const mimi::Sampling sampling{.text = racing, .audio = racing, .generator = {}, .seed = 10 * caller + lane};
        sessions[lane] = std::make_unique<mimi::LanguageSession>(model, sampling, mimi::ConditionRequest{});
        heard[lane].assign(geometry.user_channels(), static_cast<std::int32_t>(caller + lane));
        codes[lane].resize(geometry.own_levels);
    }
    for (std::size_t step = 0; step < steps; ++step) {
        std::array<mimi::LanguageSession*, lanes> stepped;
        std::array<mimi::LanguageInput, lanes> inputs;
        std::array<mimi::LanguageOutput, lanes> outputs;
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            stepped[lane] = sessions[lane].get();
            inputs[lane].user = heard[lane].data();
            outputs[lane].codes = codes[lane].data();
        }
        mimi::step_batch(stepped, inputs, outputs);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            said.push_back(outputs[lane].ready ? outputs[lane].text : -1);
            said.insert(said.end(), codes[lane].begin(), codes[lane].end());
            sessions[lane] = mimi::LanguageSession::restore(model, sessions[lane]->save_state());
        }
    }
    return said;
}

bool round_is_right(const Model& model, const std::vector<Tokens>& expected) {
    std::vector<Tokens> found(callers);
    std::vector<std::thread> threads;
    for (std::size_t caller = 0; caller < callers; ++caller)
        threads.emplace_back([&, caller] { found[caller] = run(model, caller); });
    for (std::thread& thread : threads) thread.join();
    return found == expected;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) return 2;
    const auto number = [&](int index) { return std::strtoull(arguments[index], nullptr, 10); };
    try {
        const Model alone = mimi::LanguageModel::open(arguments[1], {.isa = "scalar", .threads = 1, .window = {}});
        mimi::LanguageModelOptions options{.isa = "scalar", .threads = number(2), .window = {}};
        if (number(3) != 0) options.window.budget_bytes = alone->window().bound_plan().minimum_bytes;
        const Model model = mimi::LanguageModel::open(arguments[1], options);
        std::vector<Tokens> expected;
        for (std::size_t caller = 0; caller < callers; ++caller) expected.push_back(run(alone, caller));
        for (unsigned long long round = 0; round < number(4); ++round)
            if (!round_is_right(model, expected)) return 1;
        std::printf("%llu\n", callers * steps * number(4));
    } catch (const mimi::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

// Notes how long each named stage of a step takes.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "layers/step_context.h"

namespace mimi {

// Adds up times by stage: what passed since the stage before, or since start(). Costs a look at the clock per stage. For steps
// of a model with one thread.
class StageClock : public StageObserver {
public:
    void start() { before_ = Clock::now(); }
    void stage(const char* name, const Activations&) override { note(name); }
    // Ends the present stage under a name, from outside a step.
    void note(const std::string& name) {
        const Clock::time_point now = Clock::now();
        time_of(name) += std::chrono::duration<double>(now - before_).count();
        before_ = now;
    }
    // Seconds by stage, in the order in which they were first seen.
    const std::vector<std::pair<std::string, double>>& seconds() const { return seconds_; }

private:
    using Clock = std::chrono::steady_clock;

    double& time_of(const std::string& name) {
        for (auto& [known, time] : seconds_)
            if (known == name) return time;
        return seconds_.emplace_back(name, 0.0).second;
    }

    Clock::time_point before_ = Clock::now();
    std::vector<std::pair<std::string, double>> seconds_;
};

}  // namespace mimi

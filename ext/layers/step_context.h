// What every layer's step is given besides its weights and its input: the states of the batch, kernels, scratch, threads.
#pragma once

#include <cstddef>
#include <span>

#include "base/scratch_arena.h"
#include "base/scratch_pool.h"
#include "base/thread_pool.h"
#include "kernels/kernel_table.h"
#include "state/stream_state.h"

namespace mimi {

// Rows of activations of every lane of a batch: time-major, channels side by side, preceded by room for `history` rows, so
// that a conv sees its past and its present as one run of memory.
struct Activations {
    float* base;
    std::size_t lanes;
    std::size_t rows;
    std::size_t channels;
    std::size_t history;

    std::size_t lane_floats() const { return (history + rows) * channels; }
    // row >= -history
    float* row(std::size_t lane, std::ptrdiff_t row) const {
        return base + lane * lane_floats() + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(history) + row) * channels;
    }
    std::size_t row_floats() const { return rows * channels; }
};

// Sees every named stage of a step as it is computed. What it throws ends the step, which then never happened.
class StageObserver {
public:
    virtual ~StageObserver() = default;
    virtual void stage(const char* name, const Activations& activations) = 0;
};

struct StepContext {
    const KernelTable& kernels;
    ThreadPool& pool;
    ScratchPool& scratches;  // where a thread that computes a lane by itself finds scratch
    ScratchArena& scratch;   // of the thread that called the step
    std::span<StreamState* const> lanes;
    StageObserver* observer;  // nullptr: nobody looks

    Activations take(std::size_t rows, std::size_t channels, std::size_t history = 0) const {
        float* base = scratch.take(lanes.size() * (history + rows) * channels);
        return {base, lanes.size(), rows, channels, history};
    }

    void observe(const char* name, const Activations& activations) const {
        if (observer) observer->stage(name, activations);
    }

    // Calls function(lane) for every lane, several at a time where there are threads; it takes no scratch.
    template <class Function>
    void each_lane(const Function& function) const {
        pool.run(lanes.size(), function);
    }

    // Calls function(the step of this lane alone, lane) for every lane, each on one thread, several at a time. Lanes that would
    // leave a thread idle, and all lanes under an observer, who sees one stage after another, come one by one and share out
    // their own work.
    template <class Function>
    void each_lane_alone(const Function& function) const {
        const std::size_t threads = pool.threads();
        const std::size_t together = observer || threads == 1 ? 0 : lanes.size() / threads * threads;
        pool.run(together, [&](std::size_t lane) {
            ScratchPool::Lease lease(scratches);
            const ScratchArena::Mark mark(lease.arena());
            function(StepContext{kernels, ThreadPool::none(), scratches, lease.arena(), lanes.subspan(lane, 1), nullptr}, lane);
        });
        for (std::size_t lane = together; lane < lanes.size(); ++lane) {
            const ScratchArena::Mark mark(scratch);
            function(StepContext{kernels, pool, scratches, scratch, lanes.subspan(lane, 1), observer}, lane);
        }
    }
};

// Lanes first .. first + count - 1 of a batch, as a batch of their own.
inline Activations some_lanes(const Activations& batch, std::size_t first, std::size_t count) {
    return {batch.base + first * batch.lane_floats(), count, batch.rows, batch.channels, batch.history};
}

// A lane's rows of a batch, as a batch of one.
inline Activations only_lane(const Activations& batch, std::size_t lane) {
    return some_lanes(batch, lane, 1);
}

}  // namespace mimi

// What the machine can do at most, and a clock for the stages of a step: for `mimi bench`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "bindings/bindings.h"
#include "bindings/stage_clock.h"
#include "kernels/dispatch.h"

namespace nb = nanobind;

namespace mimi {

namespace {

// Where the kernels' results go, so that no compiler finds out that nobody needs them.
std::atomic<float> sink;

// The best of the rates that `block`, which does `work`, reaches within `seconds`: what disturbs it can only make it slower.
template <class Block>
double best_per_second(double work, double seconds, const Block& block) {
    using Clock = std::chrono::steady_clock;
    const auto stop = Clock::now() + std::chrono::duration<double>(seconds);
    double best = 0;
    do {
        const auto begin = Clock::now();
        block();
        best = std::max(best, work / std::chrono::duration<double>(Clock::now() - begin).count());
    } while (Clock::now() < stop);
    return best;
}

double flop_per_s(const std::string& isa, std::size_t threads, double seconds) {
    const LimitKernels& limits = choose_kernels(isa).limits;
    const nb::gil_scoped_release release;
    ThreadPool pool(threads);
    constexpr std::size_t rounds = 20'000, pieces_per_thread = 8;
    const std::size_t pieces = threads * pieces_per_thread;
    return best_per_second(static_cast<double>(pieces * rounds * limits.flop_per_round), seconds,
                           [&] { pool.run(pieces, [&](std::size_t) { sink = limits.multiply_add(rounds); }); });
}

double read_bytes_per_s(const std::string& isa, std::size_t threads, double seconds, std::size_t bytes) {
    const LimitKernels& limits = choose_kernels(isa).limits;
    const nb::gil_scoped_release release;
    ThreadPool pool(threads);
    constexpr std::size_t multiple = 64;
    const std::size_t floats = std::max<std::size_t>(bytes / sizeof(float) / threads / multiple, 1) * multiple;
    AlignedBuffer buffer(threads * floats);
    // Pages that nothing was written to may all be one and the same.
    std::fill_n(buffer.data(), buffer.size(), 1.0f);
    return best_per_second(static_cast<double>(buffer.size_bytes()), seconds, [&] {
        pool.run(threads, [&](std::size_t thread) { sink = limits.read(buffer.data() + thread * floats, floats); });
    });
}

}  // namespace

void bind_measures(nb::module_& module) {
    module.def("flop_per_s", &flop_per_s, nb::arg("isa"), nb::arg("threads"), nb::arg("seconds"),
               "The most multiplications and additions of float32 a second that so many threads reach.");
    module.def("read_bytes_per_s", &read_bytes_per_s, nb::arg("isa"), nb::arg("threads"), nb::arg("seconds"), nb::arg("bytes"),
               "The most bytes a second at which so many threads read memory of this size from end to end, again and again.");
    nb::class_<StageClock>(module, "StageClock", "Notes how long each named stage of a step takes; one thread only.")
        .def(nb::init<>())
        .def("start", &StageClock::start, "The first stage begins now.")
        .def("note", &StageClock::note, nb::arg("name"), "The present stage ends now, and has this name.")
        .def_prop_ro("seconds", &StageClock::seconds, "(stage, seconds in all), in the order in which they were first seen.");
}

}  // namespace mimi

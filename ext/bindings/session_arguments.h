// What the sessions of codec and language model take from Python and give to it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bindings/stage_clock.h"
#include "layers/step_context.h"

namespace mimi {

namespace nb = nanobind;

using FloatResult = nb::ndarray<nb::numpy, float, nb::c_contig>;
using CodeResult = nb::ndarray<nb::numpy, std::int32_t, nb::c_contig>;

// A numpy array that owns `values`.
template <class Result, class Value>
Result own(std::unique_ptr<Value[]> values, std::initializer_list<std::size_t> shape) {
    Value* data = values.release();
    const nb::capsule owner(data, [](void* pointer) noexcept { delete[] static_cast<Value*>(pointer); });
    return Result(data, shape, owner);
}

// Hands every stage to a Python callable as (name, float32 [lanes, rows, channels]).
class PythonObserver : public StageObserver {
public:
    explicit PythonObserver(nb::callable callable) : callable_(std::move(callable)) {}

    void stage(const char* name, const Activations& activations) override {
        const nb::gil_scoped_acquire acquire;
        auto values = std::make_unique<float[]>(activations.lanes * activations.row_floats());
        for (std::size_t lane = 0; lane < activations.lanes; ++lane)
            std::copy_n(activations.row(lane, 0), activations.row_floats(), values.get() + lane * activations.row_floats());
        callable_(name, own<FloatResult>(std::move(values), {activations.lanes, activations.rows, activations.channels}));
    }

private:
    nb::callable callable_;
};

// Whoever shall see the stages: nobody, a StageClock or a Python callable.
class ChosenObserver {
public:
    explicit ChosenObserver(const nb::object& observer) {
        if (observer.is_none()) return;
        if (nb::isinstance<StageClock>(observer))
            chosen_ = nb::cast<StageClock*>(observer);
        else if (nb::isinstance<nb::callable>(observer))
            chosen_ = &callable_.emplace(nb::cast<nb::callable>(observer));
        else
            throw nb::type_error("observer: a callable, a StageClock or None");
    }
    StageObserver* get() const { return chosen_; }

private:
    std::optional<PythonObserver> callable_;
    StageObserver* chosen_ = nullptr;
};

template <class SessionType>
using SessionList = nb::typed<nb::list, SessionType>;

// The sessions of a list, held so that nothing done to the list meanwhile can end them.
template <class SessionType>
struct HeldSessions {
    explicit HeldSessions(const SessionList<SessionType>& sessions) {
        for (const nb::handle session : sessions) {
            if (session.is_none()) throw nb::type_error("a session, not None");
            objects.push_back(nb::borrow(session));
            pointers.push_back(nb::cast<SessionType*>(session));
        }
        if (pointers.empty()) throw Error(ErrorCode::input_shape, "sessions", "none", "at least one");
    }

    std::vector<nb::object> objects;
    std::vector<SessionType*> pointers;
};

// The caller's array is copied while the interpreter is locked: what is checked is what is used, whatever other threads write.
template <class Value, class Rows>
std::vector<Value> owned_copy(const Rows& rows) {
    return std::vector<Value>(rows.data(), rows.data() + rows.size());
}

}  // namespace mimi

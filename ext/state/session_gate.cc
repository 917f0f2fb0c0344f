#include "state/session_gate.h"

#include "base/error.h"

namespace mimi {

void SessionGate::enter() {
    if (entered_.exchange(true, std::memory_order_acquire))
        throw Error(ErrorCode::session_busy, "session", "a call still running on it",
                    "one call at a time, and each session once in a batch");
    if (closed_) {
        leave();
        throw Error(ErrorCode::session_closed, "session", "closed", "an open session");
    }
}

void SessionGate::leave() {
    entered_.store(false, std::memory_order_release);
}

void SessionGate::close() {
    if (entered_.exchange(true, std::memory_order_acquire))
        throw Error(ErrorCode::session_busy, "session", "a call still running on it", "close after the call has returned");
    closed_ = true;
    leave();
}

}  // namespace mimi

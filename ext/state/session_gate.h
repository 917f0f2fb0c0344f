// Lets one call at a time into a session: a second one is refused, never made to wait and never let in.
#pragma once

#include <atomic>

namespace mimi {

class SessionGate {
public:
    // Error{session_busy} or Error{session_closed}; otherwise this thread has the session until leave().
    void enter();
    void leave();
    // No more calls: each is refused as closed. Closing twice is no error; Error{session_busy} while a call runs.
    void close();

private:
    std::atomic<bool> entered_{false};
    bool closed_ = false;
};

// Exclusive use of one session for the length of a call.
class SessionEntry {
public:
    explicit SessionEntry(SessionGate& gate) : gate_(gate) { gate_.enter(); }
    ~SessionEntry() { gate_.leave(); }
    SessionEntry(const SessionEntry&) = delete;
    SessionEntry& operator=(const SessionEntry&) = delete;

private:
    SessionGate& gate_;
};

}  // namespace mimi

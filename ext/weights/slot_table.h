// The books of the tensor window's slots: what each holds, who uses it, which may be overwritten. No threads, no bytes: the
// window calls it with its mutex held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"

namespace mimi {

class SlotTable {
public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    enum class State { free, loading, ready, failed };

    struct Slot {
        State state = State::free;
        std::size_t layer = none;    // while loading or ready
        std::size_t leases = 0;      // steps that use it
        std::size_t joined = 0;      // steps that wait for it, or have yet to take their lease
        std::size_t next_chunk = 0;  // the first that no lane has taken
        std::size_t chunks = 0;      // of the layer being loaded
        std::size_t chunks_in_flight = 0;
        std::uint64_t begun = 0;               // when the load began, in visits
        std::uint64_t used = 0;                // when it was last published, in visits
        std::uint64_t sequence = 0;            // of its load
        std::uint64_t wanted = 0;              // the last look ahead that found it
        bool fresh = false;                    // loaded and not used since
        std::unique_ptr<const Error> failure;  // of the load; every waiter throws a copy of its own
    };

    SlotTable(std::size_t slots, std::size_t layers) : slots_(slots), slot_of_(layers, none) {}

    std::size_t size() const { return slots_.size(); }
    Slot& at(std::size_t slot) { return slots_[slot]; }
    // The slot that holds the layer or is being filled with it, or none.
    std::size_t slot_of(std::size_t layer) const { return slot_of_[layer]; }

    // A slot that a step in need may overwrite, or none: a free one, else the one used longest ago, else the read-ahead that
    // is farthest off.
    std::size_t victim_for_step() const;
    // A slot that reading ahead may overwrite: none that a look ahead has just found, and no read-ahead of another step's that
    // is still likely to be used. `patience` is how many visits that is taken to be.
    std::size_t victim_for_read_ahead(std::uint64_t patience) const;

    void begin_load(std::size_t slot, std::size_t layer, std::size_t chunks);
    // The slot whose next chunk a lane should take, or none: those that a step waits for first, then in order.
    std::size_t next_to_read() const;
    // A taken chunk is done, or has failed (`failure` is not nullptr). Returns whether that settled the load.
    bool finish_chunk(std::size_t slot, std::unique_ptr<const Error> failure);
    // Who joined the slot gets a lease.
    void publish(std::size_t slot);
    // Who joined the slot leaves without one.
    void leave(std::size_t slot);
    // Starts a look ahead; what it finds is marked until the next.
    void begin_look_ahead() { ++look_ahead_; }
    void mark_wanted(std::size_t slot) { slots_[slot].wanted = look_ahead_; }
    // Whether nobody uses, awaits or fills any slot.
    bool is_idle() const;

private:
    static bool is_unused(const Slot& slot) { return slot.leases == 0 && slot.joined == 0; }
    void free(Slot& slot);

    std::vector<Slot> slots_;
    std::vector<std::size_t> slot_of_;  // by layer
    std::uint64_t visits_ = 0;
    std::uint64_t loads_ = 0;
    std::uint64_t look_ahead_ = 0;
};

}  // namespace mimi

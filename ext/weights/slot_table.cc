#include "weights/slot_table.h"

#include <algorithm>
#include <utility>

namespace mimi {

namespace {

// Index of the best slot that may be taken, or none; `better(a, b)` says whether a is the better one.
template <class May, class Better>
std::size_t choose(const std::vector<SlotTable::Slot>& slots, const May& may, const Better& better) {
    std::size_t best = SlotTable::none;
    for (std::size_t i = 0; i < slots.size(); ++i)
        if (may(slots[i]) && (best == SlotTable::none || better(slots[i], slots[best]))) best = i;
    return best;
}

}  // namespace

std::size_t SlotTable::victim_for_step() const {
    const auto may = [](const Slot& slot) {
        return slot.state == State::free || (slot.state == State::ready && is_unused(slot));
    };
    const auto rank = [](const Slot& slot) { return slot.state == State::free ? 0 : slot.fresh ? 2 : 1; };
    return choose(slots_, may, [&](const Slot& a, const Slot& b) {
        if (rank(a) != rank(b)) return rank(a) < rank(b);
        return a.fresh ? a.sequence > b.sequence : a.used < b.used;
    });
}

std::size_t SlotTable::victim_for_read_ahead(std::uint64_t patience) const {
    const auto may = [&](const Slot& slot) {
        if (slot.state == State::free) return true;
        if (slot.state != State::ready || !is_unused(slot) || slot.wanted == look_ahead_) return false;
        return !slot.fresh || visits_ - slot.begun > patience;
    };
    return choose(slots_, may, [](const Slot& a, const Slot& b) {
        if ((a.state == State::free) != (b.state == State::free)) return a.state == State::free;
        return a.used < b.used;
    });
}

void SlotTable::begin_load(std::size_t index, std::size_t layer, std::size_t chunks) {
    Slot& slot = slots_[index];
    free(slot);
    slot.state = State::loading;
    slot.layer = layer;
    slot.chunks = chunks;
    slot.next_chunk = 0;
    slot.begun = visits_;
    slot.sequence = ++loads_;
    slot.fresh = true;
    slot_of_[layer] = index;
}

std::size_t SlotTable::next_to_read() const {
    const auto may = [](const Slot& slot) {
        return slot.state == State::loading && !slot.failure && slot.next_chunk < slot.chunks;
    };
    return choose(slots_, may, [](const Slot& a, const Slot& b) {
        if ((a.joined > 0) != (b.joined > 0)) return a.joined > 0;
        return a.sequence < b.sequence;
    });
}

bool SlotTable::finish_chunk(std::size_t index, std::unique_ptr<const Error> failure) {
    Slot& slot = slots_[index];
    --slot.chunks_in_flight;
    if (failure && !slot.failure) {
        slot.failure = std::move(failure);
        // Whoever comes now starts anew, elsewhere.
        slot_of_[slot.layer] = none;
    }
    if (slot.chunks_in_flight > 0 || (!slot.failure && slot.next_chunk < slot.chunks)) return false;
    slot.state = slot.failure ? State::failed : State::ready;
    if (slot.failure && slot.joined == 0) free(slot);
    return true;
}

void SlotTable::publish(std::size_t index) {
    Slot& slot = slots_[index];
    --slot.joined;
    ++slot.leases;
    slot.fresh = false;
    slot.used = ++visits_;
}

void SlotTable::leave(std::size_t index) {
    Slot& slot = slots_[index];
    if (--slot.joined == 0 && slot.state == State::failed) free(slot);
}

bool SlotTable::is_idle() const {
    return std::all_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return is_unused(slot) && slot.chunks_in_flight == 0; });
}

void SlotTable::free(Slot& slot) {
    if (slot.state == State::ready) slot_of_[slot.layer] = none;
    slot.state = State::free;
    slot.layer = none;
    slot.failure = nullptr;
    slot.fresh = false;
}

}  // namespace mimi

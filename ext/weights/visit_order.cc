#include "weights/visit_order.h"

namespace mimi {

void VisitOrder::add_cycle(const std::vector<std::size_t>& layers) {
    if (layers.empty()) return;
    for (std::size_t i = 0; i < layers.size(); ++i) places_[layers[i]] = {cycles_.size(), i};
    cycles_.push_back({layers, none, cycles_.size()});
}

void VisitOrder::visit(std::size_t layer) {
    const Place& place = places_[layer];
    Cycle& cycle = cycles_[place.cycle];
    if (cycle.last_position == none || place.position <= cycle.last_position) {
        if (last_started_ != none) cycles_[last_started_].successor = place.cycle;
        last_started_ = place.cycle;
    }
    cycle.last_position = place.position;
}

std::size_t VisitOrder::after(std::size_t layer) const {
    const Place& place = places_[layer];
    const Cycle& cycle = cycles_[place.cycle];
    if (place.position + 1 < cycle.layers.size()) return cycle.layers[place.position + 1];
    const Cycle& successor = cycles_[cycle.successor];
    return successor.is_at_rest() ? successor.layers.front() : cycle.layers.front();
}

}  // namespace mimi

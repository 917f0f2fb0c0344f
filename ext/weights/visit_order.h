// Which layer is needed after which. Layers are visited in cycles, the encoder's and the decoder's, each front to back; which
// cycle comes after which is learnt from what happened last time.
#pragma once

#include <cstddef>
#include <vector>

namespace mimi {

class VisitOrder {
public:
    explicit VisitOrder(std::size_t layers) : places_(layers) {}

    // The layers of one cycle in the order they are visited; the others need no order. Not after the first visit.
    void add_cycle(const std::vector<std::size_t>& layers);

    // Takes note of a visit, in whatever order it comes.
    void visit(std::size_t layer);

    // The layer to expect after `layer`, which belongs to a cycle. After the end of a cycle that is the start of the one that
    // last followed it, unless that one is under way already, in another thread; then, as with a single cycle, its own start.
    std::size_t after(std::size_t layer) const;

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);
    struct Place {
        std::size_t cycle = none;
        std::size_t position = 0;
    };
    struct Cycle {
        std::vector<std::size_t> layers;
        std::size_t last_position = none;  // of the latest visit
        std::size_t successor = 0;         // the cycle that was started after it
        bool is_at_rest() const { return last_position == none || last_position + 1 == layers.size(); }
    };

    std::vector<Place> places_;
    std::vector<Cycle> cycles_;
    std::size_t last_started_ = none;
};

}  // namespace mimi

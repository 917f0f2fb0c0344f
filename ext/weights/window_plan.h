// What of a model stays in memory and what passes through the tensor window, decided before anything is loaded.
#pragma once

#include <cstddef>
#include <vector>

namespace mimi {

struct WindowOptions {
    // Most bytes of weights in memory: layers, tables, slots, the lanes' staging rooms and everything that always stays. 0: no
    // limit.
    std::size_t budget_bytes = 0;
    // Slots of the ring; 0: as many as serve, most_automatic_slots where the budget has room for them.
    std::size_t slots = 0;
};

// One slot in use, one ready, one or two being filled: more of them only take memory from layers that could stay.
constexpr std::size_t most_automatic_slots = 4;

// Sizes of what the plan is about.
struct WindowSizes {
    std::size_t fixed_bytes = 0;           // what stays whatever the budget
    std::size_t staging_bytes = 0;         // rooms of the I/O lanes, needed only where something passes through
    std::vector<std::size_t> layer_bytes;  // packed, of each layer
    std::size_t table_bytes = 0;           // tables of which a step needs some rows only
};

struct WindowPlan {
    std::size_t budget_bytes = 0;   // 0: none
    std::size_t minimum_bytes = 0;  // the least budget that works
    std::size_t full_bytes = 0;     // from here on everything stays
    std::size_t fixed_bytes = 0;
    std::size_t table_bytes = 0;           // of the tables, in memory or not
    bool tables_stay = true;               // else their rows are read from the file as they are needed
    std::size_t staging_bytes = 0;         // 0 where all layers stay
    std::size_t slots = 0;                 // 0 where all layers stay
    std::size_t slot_bytes = 0;            // the largest layer's
    std::vector<bool> resident;            // for each layer
    std::size_t resident_layer_bytes = 0;  // packed, of the layers that stay
    std::size_t streamed_layer_bytes = 0;  // packed, of the others

    bool streams() const { return slots > 0; }
    std::size_t resident_layers() const;
    // Bytes of weights in memory once the model is open.
    std::size_t memory_bytes() const { return resident_bytes() + staging_bytes + slots * slot_bytes; }
    // Of them, those that are never read again.
    std::size_t resident_bytes() const { return fixed_bytes + (tables_stay ? table_bytes : 0) + resident_layer_bytes; }
};

// Keeps everything where the budget allows it. Else the tables go first: a step reads a few rows of them, and all of a layer.
// If that is not enough, `slots` slots and, spread evenly, as many whole layers as fit besides, filled up with whichever of the
// others still fit.
// Error{setting} naming ram_budget_bytes where not even one slot fits, or window_slots where those asked for do not.
WindowPlan plan_window(const WindowSizes& sizes, const WindowOptions& options);

}  // namespace mimi

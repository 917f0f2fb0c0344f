#include "weights/window_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/error.h"

namespace mimi {

namespace {

// Which of `layers` layers are resident when `count` are: evenly spread, so that while one is computed the next can be read.
bool is_chosen(std::size_t layer, std::size_t layers, std::size_t count) {
    return (layer + 1) * count / layers > layer * count / layers;
}

// Marks the largest evenly spread set of layers that fits into `room`, and then, front to back, those that fit beside it.
void choose_residents(WindowPlan& plan, const std::vector<std::size_t>& layer_bytes, std::size_t room) {
    const std::size_t layers = layer_bytes.size();
    for (std::size_t count = layers - 1;; --count) {
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < layers; ++i)
            if (is_chosen(i, layers, count)) bytes += layer_bytes[i];
        if (bytes > room) continue;
        for (std::size_t i = 0; i < layers; ++i) {
            plan.resident[i] = is_chosen(i, layers, count);
            if (plan.resident[i] || bytes + layer_bytes[i] > room) continue;
            plan.resident[i] = true;
            bytes += layer_bytes[i];
        }
        plan.resident_layer_bytes = bytes;
        return;
    }
}

std::string bytes_text(std::size_t bytes) {
    return std::to_string(bytes) + " bytes";
}

}  // namespace

std::size_t WindowPlan::resident_layers() const {
    return static_cast<std::size_t>(std::count(resident.begin(), resident.end(), true));
}

WindowPlan plan_window(const WindowSizes& sizes, const WindowOptions& options) {
    WindowPlan plan;
    const std::size_t layers = sizes.layer_bytes.size();
    const std::size_t all_layers = std::accumulate(sizes.layer_bytes.begin(), sizes.layer_bytes.end(), std::size_t{0});
    plan.budget_bytes = options.budget_bytes;
    plan.fixed_bytes = sizes.fixed_bytes;
    plan.table_bytes = sizes.table_bytes;
    plan.full_bytes = sizes.fixed_bytes + sizes.table_bytes + all_layers;
    plan.slot_bytes = layers == 0 ? 0 : *std::max_element(sizes.layer_bytes.begin(), sizes.layer_bytes.end());
    plan.minimum_bytes = sizes.fixed_bytes + std::min(all_layers, sizes.staging_bytes + plan.slot_bytes);
    plan.resident.assign(layers, true);
    plan.resident_layer_bytes = all_layers;
    if (options.budget_bytes == 0 || options.budget_bytes >= plan.full_bytes) return plan;
    plan.tables_stay = sizes.table_bytes == 0;
    if (options.budget_bytes >= sizes.fixed_bytes + all_layers) return plan;
    if (options.budget_bytes < plan.minimum_bytes)
        throw Error(ErrorCode::setting, "ram_budget_bytes", bytes_text(options.budget_bytes),
                    "at least " + bytes_text(plan.minimum_bytes) + " (" + bytes_text(plan.full_bytes) + " hold all of it)");
    const std::size_t room = options.budget_bytes - sizes.fixed_bytes - sizes.staging_bytes;
    // Never as many slots as layers: the last layer of a model that all but fits would gain nothing by one of its own.
    const std::size_t affordable = std::min(room / plan.slot_bytes, std::max<std::size_t>(layers - 1, 1));
    if (options.slots > affordable)
        throw Error(ErrorCode::setting, "window_slots", std::to_string(options.slots),
                    "at most " + std::to_string(affordable) + " under a budget of " + bytes_text(options.budget_bytes));
    plan.slots = options.slots != 0 ? options.slots : std::min(affordable, most_automatic_slots);
    plan.staging_bytes = sizes.staging_bytes;
    choose_residents(plan, sizes.layer_bytes, room - plan.slots * plan.slot_bytes);
    plan.streamed_layer_bytes = all_layers - plan.resident_layer_bytes;
    return plan;
}

}  // namespace mimi

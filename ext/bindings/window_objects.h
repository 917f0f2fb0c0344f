// What is to be told of a tensor window, as Python's own objects.
#pragma once

#include <nanobind/nanobind.h>

#include "weights/window_plan.h"

namespace mimi {

inline nanobind::dict plan_dict(const WindowPlan& plan) {
    nanobind::dict out;
    out["budget_bytes"] = plan.budget_bytes;
    out["minimum_bytes"] = plan.minimum_bytes;
    out["full_bytes"] = plan.full_bytes;
    out["fixed_bytes"] = plan.fixed_bytes;
    out["staging_bytes"] = plan.staging_bytes;
    out["layers"] = plan.resident.size();
    out["resident_layers"] = plan.resident_layers();
    out["resident_bytes"] = plan.fixed_bytes + plan.resident_layer_bytes;
    out["streamed_bytes"] = plan.streamed_layer_bytes;
    out["slots"] = plan.slots;
    out["slot_bytes"] = plan.slot_bytes;
    out["memory_bytes"] = plan.memory_bytes();
    return out;
}

}  // namespace mimi

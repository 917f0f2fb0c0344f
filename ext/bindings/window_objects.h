// What is to be told of a tensor window, as Python's own objects.
#pragma once

#include <nanobind/nanobind.h>

#include "weights/tensor_window.h"
#include "weights/window_plan.h"

namespace mimi {

inline nanobind::dict plan_dict(const WindowPlan& plan) {
    nanobind::dict out;
    out["budget_bytes"] = plan.budget_bytes;
    out["minimum_bytes"] = plan.minimum_bytes;
    out["full_bytes"] = plan.full_bytes;
    out["fixed_bytes"] = plan.fixed_bytes;
    out["table_bytes"] = plan.table_bytes;
    out["resident_table_bytes"] = plan.tables_stay ? plan.table_bytes : 0;
    out["staging_bytes"] = plan.staging_bytes;
    out["layers"] = plan.resident.size();
    out["resident_layers"] = plan.resident_layers();
    out["resident_bytes"] = plan.resident_bytes();
    out["streamed_bytes"] = plan.streamed_layer_bytes;
    out["slots"] = plan.slots;
    out["slot_bytes"] = plan.slot_bytes;
    out["memory_bytes"] = plan.memory_bytes();
    return out;
}

inline nanobind::dict stats_dict(const WindowStats& stats) {
    nanobind::dict out;
    out["bytes_read"] = stats.bytes_read;
    out["loads"] = stats.loads;
    out["failed_loads"] = stats.failed_loads;
    out["hits"] = stats.hits;
    out["stalls"] = stats.stalls;
    out["stall_ms"] = static_cast<double>(stats.stall_ns) / 1e6;
    out["reading_ms"] = static_cast<double>(stats.reading_ns) / 1e6;
    return out;
}

}  // namespace mimi

// A language model's sizes as Python's own objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lm/geometry.h"

namespace mimi {

inline nanobind::dict gated_transformer_dict(const GatedTransformerGeometry& transformer) {
    nanobind::dict out;
    out["dim"] = transformer.dim;
    out["layers"] = transformer.layers;
    out["heads"] = transformer.heads;
    out["key_heads"] = transformer.key_heads;
    out["gating_width"] = transformer.gating_width;
    out["context_steps"] = transformer.context_steps;
    return out;
}

inline nanobind::list conditioner_list(const LmGeometry& geometry) {
    nanobind::list out;
    for (const ConditionerGeometry& conditioner : geometry.conditioners) {
        nanobind::dict entry;
        entry["name"] = conditioner.name;
        entry["width"] = conditioner.width;
        entry["labels"] = conditioner.labels;
        out.append(entry);
    }
    return out;
}

inline nanobind::dict lm_geometry_dict(const LmGeometry& geometry) {
    nanobind::dict out;
    out["audio_channels"] = geometry.audio_channels;
    out["depformer_levels"] = geometry.depformer_levels;
    out["own_levels"] = geometry.own_levels;
    out["user_levels"] = geometry.user_channels();
    out["codebook_entries"] = geometry.codebook_entries;
    out["text_entries"] = geometry.text_entries;
    out["text_outputs"] = geometry.text_outputs;
    out["text_padding_id"] = geometry.text_padding_id;
    out["text_ids"] = geometry.text_ids();
    out["delays_steps"] = nanobind::tuple(nanobind::cast(geometry.delays_steps));
    out["temporal"] = gated_transformer_dict(geometry.temporal);
    out["depformer"] = gated_transformer_dict(geometry.depformer);
    out["weight_sets"] = nanobind::tuple(nanobind::cast(geometry.weight_sets));
    out["extra_heads"] = geometry.extra_heads;
    out["extra_head_dim"] = geometry.extra_head_dim;
    out["conditioners"] = conditioner_list(geometry);
    return out;
}

}  // namespace mimi

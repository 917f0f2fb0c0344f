// A model file's metadata as Python's own objects.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "weights/gguf_reader.h"

namespace mimi {

inline nanobind::object metadata_object(const GgufValue& value) {
    if (const auto* array = std::get_if<GgufArray>(&value)) {
        nanobind::dict out;
        out["element_type"] = std::string(value_type_name(array->element_type));
        out["count"] = array->count;
        return out;
    }
    const auto cast = [](const auto& content) -> nanobind::object { return nanobind::cast(content); };
    return std::visit(cast, std::get<GgufScalar>(value));
}

// Single values as such; an array as a dict of its element_type and count.
inline nanobind::dict metadata_dict(const GgufReader& file) {
    nanobind::dict out;
    for (const auto& [key, value] : file.metadata()) out[nanobind::cast(key)] = metadata_object(value);
    return out;
}

}  // namespace mimi

// inspect_model(): what a model file holds, after the same checks as loading it; and the names raw files have for tensors.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/metadata_objects.h"
#include "model/contract.h"
#include "model/geometry.h"
#include "model/tensor_names.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_values.h"

namespace nb = nanobind;

namespace mimi {

namespace {

struct Inspection {
    explicit Inspection(const std::string& path) : file(path), geometry(read_geometry(file)) {
        weight_class = check_contract(file, geometry);
        numerics = default_numerics(file);
        names = restored_names(file, geometry);
        for (const GgufTensor& tensor : file.tensors()) check_values(file, tensor);
    }

    std::string name() const {
        const std::string base = file.path().substr(file.path().find_last_of('/') + 1);
        return file.text("general.name").value_or(base.substr(0, base.find_last_of('.')));
    }

    GgufReader file;
    Geometry geometry;
    std::string weight_class;
    std::string numerics;
    std::vector<std::string> names;  // of file.tensors()
};

nb::dict conv_dict(const ConvGeometry& conv) {
    nb::dict out;
    out["in_channels"] = conv.in_channels;
    out["out_channels"] = conv.out_channels;
    out["kernel"] = conv.kernel;
    out["stride"] = conv.stride;
    return out;
}

nb::dict seanet_dict(const SeanetGeometry& seanet) {
    nb::list stages;
    for (const StageGeometry& stage : seanet.stages) {
        nb::dict entry;
        entry["residual_wide"] = conv_dict(stage.residual_wide);
        entry["residual_point"] = conv_dict(stage.residual_point);
        entry["resample"] = conv_dict(stage.resample);
        stages.append(entry);
    }
    nb::dict out;
    out["first"] = conv_dict(seanet.first);
    out["stages"] = stages;
    out["last"] = conv_dict(seanet.last);
    return out;
}

nb::dict transformer_dict(const TransformerGeometry& transformer) {
    nb::dict out;
    out["dim"] = transformer.dim;
    out["layers"] = transformer.layers;
    out["heads"] = transformer.heads;
    out["head_dim"] = transformer.head_dim;
    out["mlp_width"] = transformer.mlp_width;
    out["context_steps"] = transformer.context_steps;
    out["max_period"] = transformer.max_period;
    return out;
}

nb::dict rvq_dict(const RvqGeometry& rvq) {
    nb::dict out;
    out["dim"] = rvq.dim;
    out["codebook_dim"] = rvq.codebook_dim;
    out["codebook_entries"] = rvq.codebook_entries;
    out["semantic_levels"] = rvq.semantic_levels;
    out["acoustic_levels"] = rvq.acoustic_levels;
    out["levels"] = rvq.levels();
    return out;
}

nb::dict geometry_dict(const Geometry& geometry) {
    nb::dict out;
    out["sample_rate_hz"] = geometry.sample_rate_hz;
    out["frame_rate_hz"] = geometry.frame_rate_hz;
    out["frame_samples"] = geometry.frame_samples;
    out["default_levels"] = geometry.default_levels;
    out["encoder"] = seanet_dict(geometry.encoder);
    out["decoder"] = seanet_dict(geometry.decoder);
    out["encoder_transformer"] = transformer_dict(geometry.encoder_transformer);
    out["decoder_transformer"] = transformer_dict(geometry.decoder_transformer);
    out["downsample"] = conv_dict(geometry.downsample);
    out["upsample"] = conv_dict(geometry.upsample);
    out["rvq"] = rvq_dict(geometry.rvq);
    return out;
}

nb::list tensor_list(const Inspection& inspection) {
    nb::list out;
    for (std::size_t i = 0; i < inspection.names.size(); ++i) {
        const GgufTensor& tensor = inspection.file.tensors()[i];
        nb::list shape;
        for (auto dim = tensor.dims.rbegin(); dim != tensor.dims.rend(); ++dim) shape.append(*dim);
        nb::dict entry;
        entry["name"] = inspection.names[i];
        entry["stored_name"] = tensor.name;
        entry["type"] = std::string(tensor_type_name(tensor.type));
        entry["shape"] = nb::tuple(shape);
        entry["bytes"] = tensor.size_bytes;
        out.append(entry);
    }
    return out;
}

Inspection inspect_without_gil(const std::string& path) {
    const nb::gil_scoped_release release;
    return Inspection(path);
}

nb::dict inspect_model(const std::string& path) {
    const Inspection inspection = inspect_without_gil(path);
    nb::dict out;
    out["weight_class"] = inspection.weight_class;
    out["numerics"] = inspection.numerics;
    out["name"] = inspection.name();
    out["geometry"] = geometry_dict(inspection.geometry);
    out["tensors"] = tensor_list(inspection);
    out["metadata"] = metadata_dict(inspection.file);
    out["file_bytes"] = inspection.file.file_size_bytes();
    return out;
}

constexpr const char* inspect_model_doc =
    "Checks a model file completely, values included, and says what it holds.\n\n"
    "Returns a dict: weight_class, numerics (the file's default), name (general.name, else the file's own),\n"
    "geometry (nested dict), tensors (list of dict: name, stored_name, type, shape slowest-varying first as numpy has it,\n"
    "bytes), metadata (values as Python's own; an array as its element_type and count), file_bytes.\n"
    "Memory use does not grow with the file. Raises ModelAccessError, ModelFormatError or ModelContractError.";

}  // namespace

void bind_model_file(nb::module_& module) {
    module.def("inspect_model", &inspect_model, nb::arg("path"),
               nb::sig("def inspect_model(path: str) -> dict[str, typing.Any]"), inspect_model_doc);
    module.def(
        "mangled_name", [](const std::string& name) { return mangled_name(name); }, nb::arg("name"),
        "Returns a tensor's name as raw files of moshi.cpp store it: shortened to 8 characters if it has 64 or more.");
}

}  // namespace mimi

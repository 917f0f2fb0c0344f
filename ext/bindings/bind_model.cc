// CodecModel: opening a file, and what it says of itself.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "bindings/bindings.h"
#include "codec/codec_model.h"
#include "codec/session.h"

namespace nb = nanobind;

namespace mimi {

namespace {

std::shared_ptr<CodecModel> open_model(const std::string& path, const std::string& numerics, const std::string& isa,
                                       std::size_t threads) {
    const nb::gil_scoped_release release;
    // Python knows no const; every method bound below is.
    return std::const_pointer_cast<CodecModel>(CodecModel::open(path, {numerics, isa, threads}));
}

}  // namespace

void bind_model(nb::module_& module) {
    nb::class_<CodecModel>(module, "CodecModel", "A loaded model: immutable, shared by every session.")
        .def_static(
            "open", &open_model, nb::arg("path"), nb::arg("numerics") = "", nb::arg("isa") = "", nb::arg("threads") = 1,
            "Reads, checks and packs a GGUF file. Empty `numerics`: what the file asks for. Empty `isa`: the best here.")
        .def_prop_ro("name", &CodecModel::name)
        .def_prop_ro("weight_class", &CodecModel::weight_class)
        .def_prop_ro("numerics", [](const CodecModel& model) { return std::string(numerics_name(model.numerics())); })
        .def_prop_ro("isa", [](const CodecModel& model) { return std::string(model.kernels().isa); })
        .def_prop_ro("threads", [](const CodecModel& model) { return model.pool().threads(); })
        .def_prop_ro("sample_rate_hz", [](const CodecModel& model) { return model.geometry().sample_rate_hz; })
        .def_prop_ro("frame_samples", [](const CodecModel& model) { return model.geometry().frame_samples; })
        .def_prop_ro("frame_rate_hz", [](const CodecModel& model) { return model.geometry().frame_rate_hz; })
        .def_prop_ro("levels", [](const CodecModel& model) { return model.geometry().rvq.levels(); })
        .def_prop_ro("default_levels", [](const CodecModel& model) { return model.geometry().default_levels; })
        .def_prop_ro("codebook_entries", [](const CodecModel& model) { return model.geometry().rvq.codebook_entries; })
        .def_prop_ro("context_steps",
                     [](const CodecModel& model) { return model.geometry().encoder_transformer.context_steps; })
        .def_prop_ro("weights_bytes", &CodecModel::weights_bytes)
        .def_prop_ro("encoder_state_bytes",
                     [](const CodecModel& model) { return model.encoder().state_layout()->state_bytes(); })
        .def_prop_ro("decoder_state_bytes",
                     [](const CodecModel& model) { return model.decoder().state_layout()->state_bytes(); });
}

}  // namespace mimi

// CodecModel: opening a file, and what it says of itself.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include "bindings/bindings.h"
#include "bindings/window_objects.h"
#include "codec/codec_model.h"
#include "codec/session.h"

namespace nb = nanobind;

namespace mimi {

namespace {

std::shared_ptr<CodecModel> open_model(const std::string& path, const std::string& numerics, const std::string& isa,
                                       std::size_t threads, std::size_t ram_budget_bytes, std::size_t window_slots) {
    const nb::gil_scoped_release release;
    // Python knows no const; every method bound below is.
    return std::const_pointer_cast<CodecModel>(
        CodecModel::open(path, {numerics, isa, threads, {.budget_bytes = ram_budget_bytes, .slots = window_slots}}));
}

constexpr const char* open_doc =
    "Reads, checks and packs a GGUF file. Empty `numerics`: what the file asks for. Empty `isa`: the best here.\n\n"
    "`ram_budget_bytes`: most bytes of weights in memory, 0 for no limit; `window_slots`: slots of the tensor window, 0 for "
    "as\n"
    "many as serve.";

nb::dict plan_window_of(const std::string& path, std::size_t ram_budget_bytes, const std::string& numerics) {
    WindowPlan plan;
    {
        const nb::gil_scoped_release release;
        ModelOptions options;
        options.numerics = numerics;
        options.window.budget_bytes = ram_budget_bytes;
        plan = plan_model_window(GgufReader(path), options);
    }
    return plan_dict(plan);
}

constexpr const char* plan_window_doc =
    "What of a model would stay in memory under a budget (0: no limit), without loading more than what always does.\n\n"
    "Returns a dict of sizes in bytes and counts: budget_bytes, minimum_bytes (the least budget), full_bytes (from there on "
    "all\n"
    "stays), fixed_bytes (what always stays), staging_bytes, layers, resident_layers, resident_bytes (fixed and layers),\n"
    "streamed_bytes, slots, slot_bytes, memory_bytes. Raises as CodecModel.open().";

}  // namespace

void bind_model(nb::module_& module) {
    nb::class_<CodecModel>(module, "CodecModel", "A loaded model: immutable, shared by every session.")
        .def_static("open", &open_model, nb::arg("path"), nb::arg("numerics") = "", nb::arg("isa") = "", nb::arg("threads") = 1,
                    nb::arg("ram_budget_bytes") = 0, nb::arg("window_slots") = 0, open_doc)
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
        .def_prop_ro(
            "window_plan", [](const CodecModel& model) { return plan_dict(model.window().bound_plan()); },
            nb::for_getter(nb::sig("def window_plan(self, /) -> dict[str, int]")))
        .def_prop_ro(
            "window_stats", [](const CodecModel& model) { return stats_dict(model.window().stats()); },
            nb::for_getter(nb::sig("def window_stats(self, /) -> dict[str, typing.Any]")))
        .def_prop_ro("encode_read_bytes", [](const CodecModel& model) { return model.encoder().streamed_file_bytes(); })
        .def_prop_ro("decode_read_bytes", [](const CodecModel& model) { return model.decoder().streamed_file_bytes(); })
        .def_prop_ro("encoder_state_bytes",
                     [](const CodecModel& model) { return model.encoder().state_layout()->state_bytes(); })
        .def_prop_ro("decoder_state_bytes",
                     [](const CodecModel& model) { return model.decoder().state_layout()->state_bytes(); });
    module.def("plan_window", &plan_window_of, nb::arg("path"), nb::arg("ram_budget_bytes"), nb::arg("numerics") = "",
               nb::sig("def plan_window(path: str, ram_budget_bytes: int, numerics: str = \"\") -> dict[str, int]"),
               plan_window_doc);
}

}  // namespace mimi

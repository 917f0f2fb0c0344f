// The language model: opening a file, sessions and the batched step.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/language_geometry.h"
#include "bindings/session_arguments.h"
#include "bindings/window_objects.h"
#include "lm/language_session.h"

namespace mimi {

namespace {

using Codes = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tokens = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Noise = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::dict plan_language_window_of(const std::string& path, std::size_t ram_budget_bytes) {
    WindowPlan plan;
    {
        const nb::gil_scoped_release release;
        plan = plan_language_window(GgufReader(path), {.budget_bytes = ram_budget_bytes});
    }
    return plan_dict(plan);
}

nb::dict language_stats(const LanguageModel& model) {
    nb::dict out = stats_dict(model.window().stats());
    out["rows_read"] = model.rows() == nullptr ? 0 : model.rows()->rows_read();
    out["row_bytes_read"] = model.rows() == nullptr ? 0 : model.rows()->bytes_read();
    return out;
}

std::shared_ptr<LanguageModel> open_language_model(const std::string& path, const std::string& isa, std::size_t threads,
                                                   std::size_t ram_budget_bytes, std::size_t window_slots) {
    const nb::gil_scoped_release release;
    // Python knows no const; every method bound below is.
    return std::const_pointer_cast<LanguageModel>(
        LanguageModel::open(path, {isa, threads, {.budget_bytes = ram_budget_bytes, .slots = window_slots}}));
}

Sampling sampling_of(double text_temperature, std::size_t text_top_k, double temperature, std::size_t top_k,
                     const std::string& generator, std::uint64_t seed) {
    Sampling sampling{{text_temperature, text_top_k}, {temperature, top_k}, RandomGenerator::counted, seed};
    if (generator == "torch-cpu")
        sampling.generator = RandomGenerator::torch_cpu;
    else if (generator != "counted")
        throw Error(ErrorCode::setting, "generator", generator, "counted or torch-cpu");
    return sampling;
}

// labels[i] of each conditioner, None for absent; rows and which of them are filled, for the one that takes rows.
ConditionRequest request_of(const LanguageModel& model, const std::vector<std::optional<std::size_t>>& labels,
                            const std::optional<Rows>& rows, const std::vector<bool>& filled) {
    ConditionRequest request;
    const auto& conditioners = model.geometry().conditioners;
    if (labels.size() != conditioners.size())
        throw Error(ErrorCode::input_shape, "labels", std::to_string(labels.size()), std::to_string(conditioners.size()));
    request.labels = labels;
    std::size_t width = 0;
    for (const ConditionerGeometry& conditioner : conditioners)
        if (conditioner.labels == 0) width = conditioner.width;
    if (rows) {
        if (rows->shape(1) != width || rows->shape(0) != filled.size())
            throw Error(ErrorCode::input_shape, "condition rows",
                        "[" + std::to_string(rows->shape(0)) + ", " + std::to_string(rows->shape(1)) + "]",
                        "[" + std::to_string(filled.size()) + ", " + std::to_string(width) + "]");
        request.rows.assign(rows->data(), rows->data() + rows->size());
        request.filled.assign(filled.begin(), filled.end());
    }
    return request;
}

template <class Array>
void require_rows(const char* what, const std::optional<Array>& array, std::size_t lanes, std::size_t width) {
    if (!array || (array->shape(0) == lanes && array->shape(1) == width)) return;
    throw Error(ErrorCode::input_shape, what,
                "[" + std::to_string(array->shape(0)) + ", " + std::to_string(array->shape(1)) + ", ...]",
                "[" + std::to_string(lanes) + ", " + std::to_string(width) + ", ...]");
}

template <class Value>
const Value* row_of(const std::vector<Value>& values, std::size_t offset) {
    return values.empty() ? nullptr : values.data() + offset;
}

// Copies of what the caller passed, made while the interpreter is locked. A row is a step of a session.
struct StepArguments {
    StepArguments(std::size_t rows, const LmGeometry& geometry, const Codes& user_codes, const Tokens& text,
                  const std::optional<Codes>& given, const std::optional<Codes>& kept_codes, const std::optional<Noise>& race,
                  const std::optional<Rows>& embeddings) {
        require_rows("user codes", std::optional<Codes>(user_codes), rows, geometry.user_channels());
        if (text.shape(0) != rows)
            throw Error(ErrorCode::input_shape, "texts", std::to_string(text.shape(0)), std::to_string(rows));
        require_rows("codes", given, rows, geometry.own_levels);
        require_rows("kept codes", kept_codes, rows, geometry.own_levels);
        require_rows("noise", race, rows, 1 + geometry.own_levels);
        require_rows("embeddings", embeddings, rows, geometry.temporal.dim);
        user = owned_copy<std::int32_t>(user_codes);
        texts = owned_copy<std::int32_t>(text);
        if (given) codes = owned_copy<std::int32_t>(*given);
        if (kept_codes) kept = owned_copy<std::int32_t>(*kept_codes);
        if (race) noise = owned_copy<float>(*race);
        if (embeddings) sums = owned_copy<float>(*embeddings);
        const std::size_t entries = race ? race->shape(2) : 0;
        for (std::size_t row = 0; row < rows; ++row)
            inputs.push_back({.user = user.data() + row * geometry.user_channels(),
                              .text = texts[row],
                              .codes = row_of(codes, row * geometry.own_levels),
                              .kept = row_of(kept, row * geometry.own_levels),
                              .noise = row_of(noise, row * (1 + geometry.own_levels) * entries),
                              .noise_entries = entries,
                              .sum = row_of(sums, row * geometry.temporal.dim)});
    }

    std::vector<std::int32_t> user, texts, codes, kept;
    std::vector<float> noise, sums;
    std::vector<LanguageInput> inputs;
};

// Calls run(outputs) with the interpreter unlocked, and returns them as Python takes them: by row, extra heads of the last
// step.
template <class Run>
nb::tuple answered(std::size_t rows, std::size_t lanes, const LmGeometry& geometry, const Run& run) {
    const std::size_t heads = geometry.extra_heads * geometry.extra_head_dim;
    auto chosen = std::make_unique<std::int32_t[]>(rows * geometry.own_levels);
    auto probabilities = std::make_unique<float[]>(lanes * heads);
    std::vector<LanguageOutput> outputs(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        outputs[row].codes = chosen.get() + row * geometry.own_levels;
        if (row + lanes >= rows) outputs[row].extra_heads = probabilities.get() + (row + lanes - rows) * heads;
    }
    {
        const nb::gil_scoped_release release;
        run(outputs);
    }
    nb::list text;
    for (const LanguageOutput& output : outputs) text.append(output.ready ? nb::cast(output.text) : nb::object(nb::none()));
    return nb::make_tuple(text, own<CodeResult>(std::move(chosen), {rows, geometry.own_levels}),
                          own<FloatResult>(std::move(probabilities), {lanes, geometry.extra_heads, geometry.extra_head_dim}));
}

nb::tuple step_rows(const SessionList<LanguageSession>& sessions, const Codes& user, const Tokens& texts,
                    const std::optional<Codes>& codes, const std::optional<Codes>& kept, const std::optional<Noise>& noise,
                    const nb::object& observer) {
    const HeldSessions<LanguageSession> held(sessions);
    const std::size_t lanes = held.pointers.size();
    const LmGeometry& geometry = held.pointers.front()->model().geometry();
    const StepArguments arguments(lanes, geometry, user, texts, codes, kept, noise, std::nullopt);
    const ChosenObserver stages(observer);
    return answered(lanes, lanes, geometry, [&](std::vector<LanguageOutput>& outputs) {
        step_batch(held.pointers, arguments.inputs, outputs, stages.get());
    });
}

nb::tuple prompt_rows(const SessionList<LanguageSession>& sessions, const Codes& user, const Tokens& texts,
                      const std::optional<Codes>& codes, const std::optional<Rows>& embeddings) {
    const HeldSessions<LanguageSession> held(sessions);
    const std::size_t rows = user.shape(0);
    const LmGeometry& geometry = held.pointers.front()->model().geometry();
    const StepArguments arguments(rows, geometry, user, texts, codes, std::nullopt, std::nullopt, embeddings);
    return answered(rows, held.pointers.size(), geometry,
                    [&](std::vector<LanguageOutput>& outputs) { prompt_batch(held.pointers, arguments.inputs, outputs); });
}

nb::bytes save_state(LanguageSession& session) {
    std::string bytes;
    {
        const nb::gil_scoped_release release;
        bytes = session.save_state();
    }
    return nb::bytes(bytes.data(), bytes.size());
}

nb::object condition_vectors(const LanguageSession& session) {
    const Conditions& conditions = session.conditions();
    const std::size_t dim = session.model().geometry().temporal.dim;
    const auto copy = [dim](const std::vector<float>& values) {
        auto owned = std::make_unique<float[]>(values.size());
        std::copy(values.begin(), values.end(), owned.get());
        return own<FloatResult>(std::move(owned), {values.size() / dim, dim});
    };
    return nb::make_tuple(copy(conditions.sum), copy(conditions.cross));
}

nb::object step_bytes(const LanguageModel& model) {
    return nb::make_tuple(model.temporal().step_bytes(), model.depformer() == nullptr ? 0 : model.depformer()->step_bytes());
}

void bind_model_class(nb::module_& module) {
    nb::class_<LanguageModel>(module, "LanguageModel", "A loaded language model: immutable, shared by every session.")
        .def_static("open", &open_language_model, nb::arg("path"), nb::arg("isa") = "", nb::arg("threads") = 1,
                    nb::arg("ram_budget_bytes") = 0, nb::arg("window_slots") = 0,
                    "Reads, checks and packs a GGUF file of the enriched form. Empty `isa`: the best here.\n\n"
                    "`ram_budget_bytes`: most bytes of weights in memory, 0 for no limit; `window_slots`: slots of the tensor\n"
                    "window, 0 for as many as serve.")
        .def_prop_ro("name", &LanguageModel::name)
        .def_prop_ro("conditioners", &LanguageModel::conditioners)
        .def_prop_ro("weight_class", &LanguageModel::weight_class)
        .def_prop_ro("isa", [](const LanguageModel& model) { return std::string(model.kernels().isa); })
        .def_prop_ro("threads", [](const LanguageModel& model) { return model.pool().threads(); })
        .def_prop_ro("weights_bytes", &LanguageModel::weights_bytes)
        .def_prop_ro("step_bytes", &step_bytes, nb::for_getter(nb::sig("def step_bytes(self, /) -> tuple[int, int]")),
                     "Bytes of matrices that one step multiplies: of the temporal transformer and of the depformer.")
        .def_prop_ro(
            "window_plan", [](const LanguageModel& model) { return plan_dict(model.window().bound_plan()); },
            nb::for_getter(nb::sig("def window_plan(self, /) -> dict[str, int]")))
        .def_prop_ro("window_stats", &language_stats,
                     nb::for_getter(nb::sig("def window_stats(self, /) -> dict[str, typing.Any]")))
        .def_prop_ro("step_read_bytes", &LanguageModel::step_read_bytes)
        .def_prop_ro("state_bytes", [](const LanguageModel& model) { return model.state_layout()->state_bytes(); })
        .def_prop_ro(
            "geometry", [](const LanguageModel& model) { return lm_geometry_dict(model.geometry()); },
            nb::for_getter(nb::sig("def geometry(self, /) -> dict[str, typing.Any]")));
}

void bind_session_class(nb::module_& module) {
    nb::class_<LanguageSession>(module, "LanguageSession", "One stream's state.")
        .def(
            "__init__",
            [](LanguageSession* self, const std::shared_ptr<LanguageModel>& model, double text_temperature,
               std::size_t text_top_k, double temperature, std::size_t top_k, const std::string& generator, std::uint64_t seed,
               const std::vector<std::optional<std::size_t>>& labels, const std::optional<Rows>& rows,
               const std::vector<bool>& filled) {
                new (self)
                    LanguageSession(model, sampling_of(text_temperature, text_top_k, temperature, top_k, generator, seed),
                                    request_of(*model, labels, rows, filled));
            },
            nb::arg("model"), nb::arg("text_temperature"), nb::arg("text_top_k"), nb::arg("temperature"), nb::arg("top_k"),
            nb::arg("generator"), nb::arg("seed"), nb::arg("labels"), nb::arg("rows").none(), nb::arg("filled"))
        .def_prop_ro("position_steps", &LanguageSession::position_steps)
        .def_prop_ro("state_bytes", &LanguageSession::state_bytes)
        .def_prop_ro("condition_vectors", &condition_vectors,
                     nb::for_getter(nb::sig("def condition_vectors(self, /) -> tuple[typing.Any, typing.Any]")),
                     "(sum [0 or 1, dim], rows for cross attention [rows, dim])")
        .def("require_open", &LanguageSession::require_open)
        .def("reset", &LanguageSession::reset, nb::call_guard<nb::gil_scoped_release>())
        .def("close", &LanguageSession::close)
        .def("save_state", &save_state)
        .def_static(
            "restore",
            [](const std::shared_ptr<LanguageModel>& model, const nb::bytes& state) {
                return LanguageSession::restore(model, std::string(state.c_str(), state.size()));
            },
            nb::arg("model"), nb::arg("state"));
}

void bind_prompt(nb::module_& module) {
    module.attr("MOST_PROMPT_STEPS") = most_prompt_steps;
    module.def("language_prompt_batch", &prompt_rows, nb::arg("sessions"), nb::arg("user_codes"), nb::arg("texts"),
               nb::arg("codes").none() = nb::none(), nb::arg("embeddings").none() = nb::none(),
               nb::sig("def language_prompt_batch(sessions: list[LanguageSession], user_codes: typing.Any, texts: typing.Any, "
                       "codes: typing.Any = None, embeddings: typing.Any = None) -> tuple[list[int | None], typing.Any, "
                       "typing.Any]"),
               "Up to MOST_PROMPT_STEPS steps of each session at once, rows being the first step of every session, then the\n"
               "second of every session, and so on: user codes int32 [rows, user levels], texts int32 [rows], codes int32\n"
               "[rows, own levels], embeddings float32 [rows, dim] in place of the sum of the tokens' own. Only the last\n"
               "steps' texts and codes may be -2. Returns texts and codes by row and the last steps' extra heads, as\n"
               "language_step_batch does.");
    module.def("plan_language_window", &plan_language_window_of, nb::arg("path"), nb::arg("ram_budget_bytes"),
               nb::sig("def plan_language_window(path: str, ram_budget_bytes: int) -> dict[str, int]"),
               "What of a language model would stay in memory under a budget (0: no limit), as plan_window() says of a codec.");
}

}  // namespace

void bind_language(nb::module_& module) {
    bind_model_class(module);
    bind_session_class(module);
    module.def(
        "language_step_batch", &step_rows, nb::arg("sessions"), nb::arg("user_codes"), nb::arg("texts"),
        nb::arg("codes").none() = nb::none(), nb::arg("kept").none() = nb::none(), nb::arg("noise").none() = nb::none(),
        nb::arg("observer") = nb::none(),
        nb::sig("def language_step_batch(sessions: list[LanguageSession], user_codes: typing.Any, texts: typing.Any, "
                "codes: typing.Any = None, kept: typing.Any = None, noise: typing.Any = None, "
                "observer: typing.Any = None) -> tuple[list[int | None], typing.Any, typing.Any]"),
        "One step of each session: user codes int32 [sessions, user levels] and texts int32 [sessions], -2 where the\n"
        "choice is free; likewise codes and kept, int32 [sessions, own levels]; noise float32 [sessions, 1 + own levels,\n"
        "entries]. Returns a list of texts, None where there is none yet, codes int32 [sessions, own levels], and the\n"
        "probabilities of the extra heads, float32 [sessions, heads, head dim].");
    bind_prompt(module);
}

}  // namespace mimi

// Sessions and the batched steps. The GIL is released around compute only.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/session_arguments.h"
#include "codec/latents.h"
#include "codec/session.h"

namespace nb = nanobind;

namespace mimi {

namespace {

using FloatRows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CodeRows = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require_shape(const char* what, std::size_t rows, std::size_t columns, std::size_t sessions, std::size_t width) {
    if (rows != sessions || columns != width)
        throw Error(ErrorCode::input_shape, what, "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]",
                    "[" + std::to_string(sessions) + ", " + std::to_string(width) + "]");
}

CodeResult encode_rows(const SessionList<EncoderSession>& sessions, const FloatRows& pcm, const nb::object& observer) {
    const HeldSessions<EncoderSession> held(sessions);
    const std::vector<EncoderSession*>& pointers = held.pointers;
    const EncoderSession& first = *pointers.front();
    require_shape("PCM", pcm.shape(0), pcm.shape(1), pointers.size(), first.model().geometry().frame_samples);
    const std::vector<float> samples = owned_copy<float>(pcm);
    std::vector<const float*> rows;
    for (std::size_t lane = 0; lane < pointers.size(); ++lane) rows.push_back(samples.data() + lane * pcm.shape(1));
    auto codes = std::make_unique<std::int32_t[]>(pointers.size() * first.levels());
    const ChosenObserver stages(observer);
    {
        const nb::gil_scoped_release release;
        encode_batch(pointers, rows.data(), codes.get(), stages.get());
    }
    return own<CodeResult>(std::move(codes), {pointers.size(), first.levels()});
}

FloatResult decode_rows(const SessionList<DecoderSession>& sessions, const CodeRows& codes, const nb::object& observer) {
    const HeldSessions<DecoderSession> held(sessions);
    const std::vector<DecoderSession*>& pointers = held.pointers;
    const DecoderSession& first = *pointers.front();
    require_shape("codes", codes.shape(0), codes.shape(1), pointers.size(), first.levels());
    const std::vector<std::int32_t> owned_codes = owned_copy<std::int32_t>(codes);
    const std::size_t samples = first.model().geometry().frame_samples;
    auto pcm = std::make_unique<float[]>(pointers.size() * samples);
    std::vector<float*> rows;
    for (std::size_t lane = 0; lane < pointers.size(); ++lane) rows.push_back(pcm.get() + lane * samples);
    const ChosenObserver stages(observer);
    {
        const nb::gil_scoped_release release;
        decode_batch(pointers, owned_codes.data(), rows.data(), stages.get());
    }
    return own<FloatResult>(std::move(pcm), {pointers.size(), samples});
}

std::pair<CodeResult, FloatResult> encode_rows_with_latents(const SessionList<EncoderSession>& sessions, const FloatRows& pcm) {
    const HeldSessions<EncoderSession> held(sessions);
    const std::vector<EncoderSession*>& pointers = held.pointers;
    const EncoderSession& first = *pointers.front();
    const Geometry& geometry = first.model().geometry();
    require_shape("PCM", pcm.shape(0), pcm.shape(1), pointers.size(), geometry.frame_samples);
    const std::vector<float> samples = owned_copy<float>(pcm);
    std::vector<const float*> rows;
    for (std::size_t lane = 0; lane < pointers.size(); ++lane) rows.push_back(samples.data() + lane * pcm.shape(1));
    auto codes = std::make_unique<std::int32_t[]>(pointers.size() * first.levels());
    auto latents = std::make_unique<float[]>(pointers.size() * geometry.rvq.dim);
    {
        const nb::gil_scoped_release release;
        encode_batch_with_latents(pointers, rows.data(), codes.get(), latents.get());
    }
    return {own<CodeResult>(std::move(codes), {pointers.size(), first.levels()}),
            own<FloatResult>(std::move(latents), {pointers.size(), geometry.rvq.dim})};
}

FloatResult latents_of_codes(const CodecModel& model, const CodeRows& codes) {
    const std::size_t frames = codes.shape(0);
    const std::size_t levels = codes.shape(1);
    const std::size_t dim = model.geometry().rvq.dim;
    const std::vector<std::int32_t> owned_codes = owned_copy<std::int32_t>(codes);
    auto latents = std::make_unique<float[]>(frames * dim);
    {
        const nb::gil_scoped_release release;
        decode_latents(model, owned_codes.data(), frames, levels, latents.get());
    }
    return own<FloatResult>(std::move(latents), {frames, dim});
}

FloatResult codebook_of_level(const CodecModel& model, std::size_t level) {
    const RvqGeometry& geometry = model.geometry().rvq;
    auto codewords = std::make_unique<float[]>(geometry.codebook_entries * geometry.codebook_dim);
    copy_codebook(model, level, codewords.get());
    return own<FloatResult>(std::move(codewords), {geometry.codebook_entries, geometry.codebook_dim});
}

nb::bytes save_state(Session& session) {
    std::string bytes;
    {
        const nb::gil_scoped_release release;
        bytes = session.save_state();
    }
    return nb::bytes(bytes.data(), bytes.size());
}

void load_state(Session& session, const nb::bytes& bytes) {
    session.load_state(std::string(bytes.c_str(), bytes.size()));
}

template <class SessionType>
void bind_session(nb::module_& module, const char* name, const char* doc) {
    nb::class_<SessionType, Session>(module, name, doc)
        .def(
            "__init__",
            [](SessionType* self, const std::shared_ptr<CodecModel>& model, std::size_t levels) {
                new (self) SessionType(model, levels);
            },
            nb::arg("model"), nb::arg("levels"));
}

void bind_latents(nb::module_& module) {
    module.def("encode_batch_with_latents", &encode_rows_with_latents, nb::arg("sessions"), nb::arg("pcm"),
               "One frame of each session: float32 [sessions, frame_samples] -> int32 [sessions, levels] and the latents\n"
               "these were chosen for, float32 [sessions, dim].");
    module.def("decode_latents", &latents_of_codes, nb::arg("model"), nb::arg("codes"),
               "What the decoder makes of codes before it upsamples: int32 [frames, levels] -> float32 [frames, dim].");
    module.def("codebook", &codebook_of_level, nb::arg("model"), nb::arg("level"),
               "The codewords of a level: float32 [entries, codebook dim].");
}

}  // namespace

void bind_sessions(nb::module_& module) {
    nb::class_<Session>(module, "Session", "One stream's state.")
        .def_prop_ro("levels", &Session::levels)
        .def_prop_ro("position_frames", &Session::position_frames)
        .def_prop_ro("state_bytes", &Session::state_bytes)
        .def("require_open", &Session::require_open)
        .def("reset", &Session::reset, nb::call_guard<nb::gil_scoped_release>())
        .def("close", &Session::close)
        .def("save_state", &save_state)
        .def("load_state", &load_state, nb::arg("state"));
    bind_session<EncoderSession>(module, "EncoderSession", "PCM to codes.");
    bind_session<DecoderSession>(module, "DecoderSession", "Codes to PCM.");
    module.def("encode_batch", &encode_rows, nb::arg("sessions"), nb::arg("pcm"), nb::arg("observer") = nb::none(),
               "One frame of each session: float32 [sessions, frame_samples] -> int32 [sessions, levels].\n\n"
               "`observer(name, float32 [lanes, rows, channels])` sees every stage; what it raises ends the step unmade.\n"
               "A StageClock in its place only notes the time.");
    module.def("decode_batch", &decode_rows, nb::arg("sessions"), nb::arg("codes"), nb::arg("observer") = nb::none(),
               "One frame of each session: int32 [sessions, levels] -> float32 [sessions, frame_samples], not clipped.");
    bind_latents(module);
}

}  // namespace mimi

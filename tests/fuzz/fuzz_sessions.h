// What the fuzz targets of sessions share: one small model under each numerics, and sessions chosen by the input's first bytes.
// MIMI_FUZZ_MODEL names the model's file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>

#include "base/error.h"
#include "codec/codec_model.h"
#include "codec/session.h"

namespace mimi_fuzz {

constexpr std::array numerics_names = {"kyutai", "ggml", "ggml-causal"};
constexpr std::size_t head_bytes = 2;

inline std::shared_ptr<const mimi::CodecModel> model_of(std::uint8_t choice) {
    static std::array<std::shared_ptr<const mimi::CodecModel>, numerics_names.size()> models;
    const std::size_t index = (choice >> 1) % numerics_names.size();
    if (!models[index])
        models[index] = mimi::CodecModel::open(
            std::getenv("MIMI_FUZZ_MODEL"), {.numerics = numerics_names[index], .isa = "scalar", .threads = 1, .window = {}});
    return models[index];
}

inline bool decodes(std::uint8_t choice) {
    return (choice & 1) != 0;
}

inline std::size_t levels_of(const mimi::CodecModel& model, std::uint8_t choice) {
    return 1 + choice % model.geometry().rvq.levels();
}

inline void require(bool holds) {
    if (!holds) std::abort();
}

// Only these may come of an input, and each says what of it is wrong.
inline void require_refusal(const mimi::Error& error, std::initializer_list<mimi::ErrorCode> legal) {
    bool is_legal = false;
    for (const mimi::ErrorCode code : legal) is_legal = is_legal || error.code() == code;
    require(is_legal && !error.subject().empty() && !error.found().empty());
}

}  // namespace mimi_fuzz

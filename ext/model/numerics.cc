#include "model/numerics.h"

#include <string>

#include "base/error.h"

namespace mimi {

Numerics parse_numerics(std::string_view name) {
    if (name == "kyutai") return Numerics::kyutai;
    if (name == "ggml") return Numerics::ggml;
    throw Error(ErrorCode::setting, "numerics", std::string(name), "kyutai or ggml");
}

std::string_view numerics_name(Numerics numerics) {
    return numerics == Numerics::kyutai ? "kyutai" : "ggml";
}

}  // namespace mimi

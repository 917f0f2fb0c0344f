// A tensor's payload as finite f32 values, whatever it is stored as (f16 widens exactly).
#pragma once

#include <vector>

#include "weights/gguf_reader.h"

namespace mimi {

// The tensor's values in file order. Error{model_contract} naming tensor, index and value where one is NaN or infinite, and
// where the type is one this engine does not widen.
std::vector<float> read_values(const GgufReader& file, const GgufTensor& tensor);

// The same check without keeping the values: reads the payload through a buffer of fixed size.
void check_values(const GgufReader& file, const GgufTensor& tensor);

}  // namespace mimi

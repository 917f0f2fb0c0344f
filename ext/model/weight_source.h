// The tensors of a checked model file as finite f32 values, by their published names.
#pragma once

#include <string>
#include <vector>

#include "model/contract.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_values.h"

namespace mimi {

class WeightSource {
public:
    explicit WeightSource(const GgufReader& file) : file_(file) {}
    std::vector<float> values(const std::string& name) const { return read_values(file_, find_required(file_, name)); }

private:
    const GgufReader& file_;
};

}  // namespace mimi

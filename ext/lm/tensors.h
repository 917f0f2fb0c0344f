// The tensors of a language model's file, checked against its geometry, under one name each: files store the attention of all
// weight sets fused or one by one, and number a gating or not.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lm/geometry.h"
#include "weights/gguf_reader.h"

namespace mimi {

class LmTensors {
public:
    // Checks that every tensor of the geometry is there, once, with the right shape and a type this engine takes, and that none
    // is left over. Error{model_contract} naming tensor, found, expected. Needs no payload; keeps a reference to `file`.
    LmTensors(const GgufReader& file, const LmGeometry& geometry);

    // Names are those of the files without their leading "lm."; attention is `in_projs.J.weight`, `out_projs.J.weight` and
    // gating `gating.J.linear_in.weight`, J = 0 where there is one set. Valid as long as this.
    const GgufTensor& tensor(const std::string& name) const;
    // Rows first .. first + count - 1 of a matrix, as a tensor of their own.
    GgufTensor rows(const std::string& name, std::size_t first, std::size_t count) const;
    // Finite f32 values. Errors of read_rows().
    std::vector<float> values(const std::string& name) const;
    const GgufReader& file() const { return file_; }

private:
    const GgufReader& file_;
    std::map<std::string, GgufTensor> tensors_;
};

// The conditioners a file has tensors of, in order of their names. Error{model_contract} where one lacks its projection or has
// a width beyond reason; `dim` is what the projections lead to.
std::vector<ConditionerGeometry> read_conditioners(const GgufReader& file, std::size_t dim);

}  // namespace mimi

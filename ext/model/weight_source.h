// The tensors of a checked model file as finite values, by their published names.
#pragma once

#include <string>
#include <vector>

#include "layers/linear.h"
#include "layers/residual_vq.h"
#include "model/contract.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_values.h"

namespace mimi {

class WeightSource {
public:
    explicit WeightSource(const GgufReader& file) : file_(file) {}
    // A projection, as values or as the blocks it is stored in.
    StoredMatrix matrix(const std::string& name) const {
        const GgufTensor& tensor = find_required(file_, name);
        if (tensor.type == TensorType::q8_0) return read_blocks(file_, tensor);
        return read_values(file_, tensor);
    }
    // A codebook, as values or as the halves it is stored in.
    StoredCodewords codewords(const std::string& name) const {
        const GgufTensor& tensor = find_required(file_, name);
        if (tensor.type == TensorType::f16) return read_halves(file_, tensor);
        return read_values(file_, tensor);
    }
    std::vector<float> values(const std::string& name) const { return read_values(file_, find_required(file_, name)); }
    // What a matrix is stored as: f32, f16 or q8_0.
    MatrixStorage storage(const std::string& name) const {
        switch (find_required(file_, name).type) {
            case TensorType::f16: return MatrixStorage::f16;
            case TensorType::q8_0: return MatrixStorage::q8_0;
            default: return MatrixStorage::f32;
        }
    }
    // Where a tensor lies, for who reads it later; valid as long as the file.
    const GgufTensor& tensor(const std::string& name) const { return find_required(file_, name); }

private:
    const GgufReader& file_;
};

}  // namespace mimi

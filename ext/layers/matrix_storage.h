// What a file stores a matrix as, and memory too: nothing is widened before it is multiplied, but f16 and bf16 under tree sums.
#pragma once

namespace mimi {

enum class MatrixStorage { f32, f16, bf16, q8_0, q4_0, q4_k };

// Blocks of integers with scales, multiplied as integers.
constexpr bool is_quantised(MatrixStorage storage) {
    return storage == MatrixStorage::q8_0 || storage == MatrixStorage::q4_0 || storage == MatrixStorage::q4_k;
}

}  // namespace mimi

// One kernel table from one lane type: all an instruction set's unit includes.
#pragma once

#include "kernels/body_attention.h"
#include "kernels/body_elementary.h"
#include "kernels/body_matmul.h"
#include "kernels/body_nearest_codeword.h"
#include "kernels/kernel_table.h"

namespace mimi {

template <class Vec>
constexpr KernelTable make_kernel_table(const char* isa) {
    return {isa,
            &Matmul<Vec>::run,
            &Elementary<Vec>::elu_array,
            &Elementary<Vec>::gelu_array,
            &LayerNorm<Vec>::run,
            &Attention<Vec>::run,
            &NearestCodeword<Vec>::run};
}

}  // namespace mimi

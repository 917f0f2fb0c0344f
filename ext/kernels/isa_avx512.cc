#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx512.h"

namespace mimi {

const KernelTable avx512_kernels = make_kernel_table<Avx512Vec>("avx512");

}  // namespace mimi

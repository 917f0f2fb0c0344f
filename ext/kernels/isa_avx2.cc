#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx2.h"

namespace mimi {

const KernelTable avx2_kernels = make_kernel_table<Avx2Vec>("avx2");

}  // namespace mimi

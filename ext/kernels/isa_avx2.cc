#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx2.h"

namespace mimi {

const IsaKernels avx2_kernels = make_isa_kernels<Avx2Vec, Avx2Dots, Avx2NibbleDots>("avx2");

}  // namespace mimi

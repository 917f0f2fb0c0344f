#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx512.h"

namespace mimi {

const IsaKernels avx512_kernels = make_isa_kernels<Avx512Vec, Avx512Dots, Avx512NibbleDots>("avx512");

}  // namespace mimi

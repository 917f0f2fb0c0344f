#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_scalar.h"

namespace mimi {

const IsaKernels scalar_kernels = make_isa_kernels<ScalarVec, ScalarDots, ScalarNibbleDots>("scalar");

}  // namespace mimi

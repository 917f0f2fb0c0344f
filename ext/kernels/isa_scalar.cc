#include "kernels/body_table.h"
#include "kernels/dispatch.h"
#include "kernels/vec_scalar.h"

namespace mimi {

const KernelTable scalar_kernels = make_kernel_table<ScalarVec>("scalar");

}  // namespace mimi

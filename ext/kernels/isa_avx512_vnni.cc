#include "kernels/body_quantised_matmul.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx512_vnni.h"

namespace mimi {

void avx512_vnni_quantised_matmul(const QuantisedMatmulTask& task) {
    QuantisedMatmul<Avx512Vec, Avx512VnniDots>::run(task);
}

}  // namespace mimi

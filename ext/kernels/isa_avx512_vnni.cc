#include "kernels/body_nibble_matmul.h"
#include "kernels/dispatch.h"
#include "kernels/vec_avx512_vnni.h"

namespace mimi {

void avx512_vnni_byte_matmul(const QuantisedMatmulTask& task) {
    QuantisedMatmul<Avx512Vec, ByteForm<Avx512Vec, Avx512VnniDots>>::run(task);
}

void avx512_vnni_nibble_matmul(const QuantisedMatmulTask& task) {
    QuantisedMatmul<Avx512Vec, NibbleForm<Avx512Vec, Avx512VnniNibbleDots>>::run(task);
}

void avx512_vnni_super_nibble_matmul(const QuantisedMatmulTask& task) {
    QuantisedMatmul<Avx512Vec, SuperNibbleForm<Avx512Vec, Avx512VnniNibbleDots>>::run(task);
}

}  // namespace mimi

// Which kernel tables this machine can run, and the choice among them. The choice is passed down, never global, so that one
// process can run every instruction set beside the others.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"

namespace mimi {

extern const IsaKernels scalar_kernels;
#ifdef MIMI_X86_64
extern const IsaKernels avx2_kernels;
extern const IsaKernels avx512_kernels;
void avx512_vnni_byte_matmul(const QuantisedMatmulTask& task);
void avx512_vnni_nibble_matmul(const QuantisedMatmulTask& task);
void avx512_vnni_super_nibble_matmul(const QuantisedMatmulTask& task);
#endif

// Tables usable here, best first; "scalar" is always the last. A table is usable where the CPU has the instructions and the
// operating system saves the registers.
std::vector<const IsaKernels*> usable_kernels();

// The table named `isa`, or the best where `isa` is empty. Error{unavailable} listing what this machine has where it lacks
// `isa`; never a silent fall-back.
const IsaKernels& choose_kernels(std::string_view isa);

}  // namespace mimi

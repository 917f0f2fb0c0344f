#include "kernels/dispatch.h"

#include <string>

#include "base/error.h"

namespace mimi {

#ifdef MIMI_X86_64
namespace {

// The kernels of AVX-512 but for the products of integers.
const IsaKernels& avx512_vnni_kernels() {
    static const IsaKernels kernels = [] {
        IsaKernels changed = avx512_kernels;
        for (KernelTable* table : {&changed.kyutai, &changed.ggml}) {
            table->isa = "avx512_vnni";
            table->byte_matmul = &avx512_vnni_byte_matmul;
            table->nibble_matmul = &avx512_vnni_nibble_matmul;
            table->super_nibble_matmul = &avx512_vnni_super_nibble_matmul;
        }
        return changed;
    }();
    return kernels;
}

}  // namespace
#endif

std::vector<const IsaKernels*> usable_kernels() {
    std::vector<const IsaKernels*> usable;
#ifdef MIMI_X86_64
    // The builtin asks CPUID and XGETBV: a feature whose registers the operating system does not save reads as absent.
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl")) {
        if (__builtin_cpu_supports("avx512vnni")) usable.push_back(&avx512_vnni_kernels());
        usable.push_back(&avx512_kernels);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        usable.push_back(&avx2_kernels);
#endif
    usable.push_back(&scalar_kernels);
    return usable;
}

const IsaKernels& choose_kernels(std::string_view isa) {
    const std::vector<const IsaKernels*> usable = usable_kernels();
    if (isa.empty()) return *usable.front();
    std::string names;
    for (const IsaKernels* kernels : usable) {
        if (isa == kernels->kyutai.isa) return *kernels;
        names += (names.empty() ? "" : ", ") + std::string(kernels->kyutai.isa);
    }
    throw Error(ErrorCode::unavailable, "instruction set", std::string(isa), "one of those this machine has: " + names);
}

}  // namespace mimi

// The math the codec is made of, one table of functions per instruction set. Every entry is defined by `isa_scalar.cc`
// (plain loops); every other table gives the same bits, because all of them fix the order and rounding of each sum:
//
//   chain(x, y)   acc = +0; acc = fma(x[i], y[i], acc) for i ascending: one rounding per element
//   lanes16(...)  sixteen chains, element i in chain i mod 16, then s[l] += s[l+8], s[l+4], s[l+2], s[l+1]
//
// A table may rearrange only which output is computed when. Pointers never alias unless an entry says so.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

// Outputs computed side by side: the width of a block of packed weights.
constexpr std::size_t block_outputs = 16;

// Elements of one chain of `matmul`; longer reductions add their blocks in order.
constexpr std::size_t reduction_block = 256;

constexpr std::size_t count_blocks(std::size_t outputs) {
    return (outputs + block_outputs - 1) / block_outputs;
}

// A range of output blocks of one matrix product.
//   y[n][m] = ((chain of block 0 + chain of block 1) + ...) + bias[m],  chain over k of weights[m][k] * x[n][k]
struct MatmulTask {
    const float* weights;     // [block][k][block_outputs], zero beyond `outputs`
    const float* bias;        // [outputs] or nullptr: no addition at all
    std::size_t outputs;      // M
    std::size_t reduction;    // K
    std::size_t first_block;  // blocks first_block .. last_block - 1 of the M / 16 are computed
    std::size_t last_block;
    const float* const* columns;  // [n] -> x[n], K floats each; columns may overlap one another
    float* const* rows;           // [n] -> y[n], M floats each; distinct
    std::size_t count;            // N
};

// One query against a window of a ring of keys and values: keys first_slot, first_slot + 1, ... modulo `slots`.
//   w[i] = lanes16(q, key i) * scale;  e[i] = exp(w[i] - max w);  out[d] = chain over i of (e[i] / lanes16 sum of e) *
//   value[i][d]
struct AttentionTask {
    const float* query;  // [head_dim]
    const float* keys;   // this head's part of slot 0; slots are `slot_stride` floats apart
    const float* values;
    std::size_t slot_stride;  // floats
    std::size_t slots;
    std::size_t first_slot;
    std::size_t count;     // keys seen, >= 1
    std::size_t head_dim;  // at most max_head_dim
    float scale;
    float* weights;  // scratch, room for `count` rounded up to a multiple of 16
    float* out;      // [head_dim]
};

constexpr std::size_t max_head_dim = 256;

// Search of one codebook for several vectors. The nearest codeword minimises |e|^2 / 2 - e.r, which differs from half the
// squared distance only by what all entries share; leaving that out keeps the small differences between entries exact.
struct NearestTask {
    const float* codebook;    // [block][k][block_outputs], zero beyond `entries`
    const float* half_norms;  // [entries rounded up to whole blocks]: |e|^2 / 2, +inf beyond `entries`
    std::size_t entries;
    std::size_t dim;
    const float* const* residuals;  // [n] -> dim floats
    std::size_t count;
    std::int32_t* codes;  // [n]: argmin of half_norm - chain over k of e[k] r[k], lowest index on a tie
};

struct KernelTable {
    const char* isa;
    void (*matmul)(const MatmulTask& task);
    // x > 0 ? x : expm1(x), within 2 ULP. `out` may be `in`.
    void (*elu)(const float* in, float* out, std::size_t count);
    // 0.5 x (1 + erf(x / sqrt 2)); erf within 2 ULP. `out` may be `in`.
    void (*gelu)(const float* in, float* out, std::size_t count);
    // (x - mean) / sqrt(variance + 1e-5) * weight + bias over `dim` values; biased variance; sums by lanes16.
    void (*layer_norm)(const float* in, const float* weight, const float* bias, float* out, std::size_t dim);
    void (*attention)(const AttentionTask& task);
    void (*nearest_codeword)(const NearestTask& task);
};

}  // namespace mimi

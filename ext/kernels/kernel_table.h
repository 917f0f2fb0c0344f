// The math the codec is made of, one table of functions per instruction set and numerics. Every entry is defined by its unit
// for `scalar` (plain loops); every other instruction set gives the same bits, because the order and rounding of each sum are
// fixed. A table may rearrange only which output is computed when. Pointers never alias unless an entry says so.
//
// Sums under `kyutai` numerics:
//   chain(x, y)   acc = +0; acc = fma(x[i], y[i], acc) for i ascending: one rounding per element
//   lanes16(...)  sixteen chains, element i in chain i mod 16, then s[l] += s[l+8], s[l+4], s[l+2], s[l+1]
// Sums under `ggml` numerics (n elements, of which the last n mod 32 are the tail):
//   tree32(x, y)  a[j][l] = chain of elements 32b + 8j + l over b; s[l] = (a[0][l] + a[2][l]) + (a[1][l] + a[3][l]);
//                 t[l] = s[l] + s[l+4]; (t[0] + t[1]) + (t[2] + t[3]); the tail by fma in order
//   half32(x, y)  the same, but the tail's products are added in double and the result is rounded once more. Both operands
//                 hold values of f16, so that f32 holds every product
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

// Outputs computed side by side: the width of a block of packed weights.
constexpr std::size_t block_outputs = 16;

constexpr std::size_t count_blocks(std::size_t outputs) {
    return (outputs + block_outputs - 1) / block_outputs;
}

// Elements of one block of tree32 and half32.
constexpr std::size_t tree_elements = 32;

// Weights of tree sums lie in the order in which the tree takes them in: of a segment of `whole` elements (a multiple of 32),
// the element that lies at `position` is number tree_element(position, whole). Chains a[0][l] and a[2][l] lie interleaved,
// then a[1][l] and a[3][l], for l = 0, 4, 1, 5, 2, 6, 3, 7: the sum of two neighbours is a sum of the tree, on every level of
// it. Elements of the tail stay where they are.
constexpr std::size_t tree_chains = 32;

constexpr std::size_t tree_element(std::size_t position, std::size_t whole) {
    const std::size_t pair_elements = whole / (tree_chains / 2);
    const std::size_t pair = position / pair_elements;
    const std::size_t element = position % pair_elements;
    const std::size_t lane = pair / 4 + 4 * (pair / 2 % 2);
    return tree_elements * (element / 2) + 8 * (pair % 2 + 2 * (element % 2)) + lane;
}

// A range of output blocks of one matrix product.
//   y[n][m] = ((sum of segment 0 + sum of segment 1) + ...) + bias[m],  each over k of weights[m][k] * x[n][k]
struct MatmulTask {
    const void* weights;           // [block][k][block_outputs] f32, f16 or bf16 as the entry says, zero beyond `outputs`; k in
                                   // tree order under tree sums
    const float* bias;             // [outputs] or nullptr: no addition at all
    std::size_t outputs;           // M
    std::size_t reduction;         // K
    std::size_t segment;           // elements summed on their own, the last segment may be shorter; >= 1
    const std::uint32_t* offsets;  // [K]: what goes with weight k is columns[n][offsets[k]]; nullptr: columns[n][k].
                                   // Chain sums take nullptr only
    std::size_t first_block;       // blocks first_block .. last_block - 1 of the M / 16 are computed
    std::size_t last_block;
    const float* const* columns;  // [n] -> x[n]; columns may overlap one another
    float* const* rows;           // [n] -> y[n], M floats each; distinct
    std::size_t count;            // N
};

// Inputs of a quantised product, in groups of 32: input k is values[k] * scales[k / 32] and an error of half a scale.
// With a = the largest magnitude of a group: scale = a / 127; values = x * (127 / a), rounded, to the nearest integer, ties to
// even; all 0 where a < 2^-100. A group with a value that is not finite has the scale NaN.
constexpr std::size_t quantised_group = 32;

struct QuantisedColumn {
    std::int8_t* values;   // [K], -127 .. 127
    float* scales;         // [K / 32]
    std::int32_t* shifts;  // [K / 32]: -128 times the sum of the group's values, since weights of q8_0 lie 128 too high
};

// Blocks of quantised weights are made of rows of 64 bytes, four for each of 16 outputs.
constexpr std::size_t quantised_row_bytes = 64;

// q8_0: [group][8][16][4], 128 + the weight for input 32 g + 4 i + j of output o at [g][i][o][j]; then [group][16] scales as
// f16, filled up to whole rows.
constexpr std::size_t byte_block_rows(std::size_t groups) {
    return groups * 8 + (groups + 1) / 2;
}
// q4_0: [group][4][16][4], low four bits of [g][i][o][j] 8 + the weight for input 32 g + 4 i + j, high ones 8 + that for input
// 32 g + 16 + 4 i + j; then the scales in the same way.
constexpr std::size_t nibble_block_rows(std::size_t groups) {
    return groups * 4 + (groups + 1) / 2;
}
// q4_k: for each super-block of 256 inputs eight groups as q4_0 has them, the weights' own integers; one row [2][16] of f16,
// the scales of group scales and those of group minima; three rows [12][16] of the file's packed bytes of both.
constexpr std::size_t super_block_groups = 8;
constexpr std::size_t super_block_rows = super_block_groups * 4 + 4;
constexpr std::size_t super_nibble_block_rows(std::size_t groups) {
    return groups / super_block_groups * super_block_rows;
}

// A range of output blocks of one product of quantised weights and inputs, the same under all numerics. With dot(m, n, g) the
// exact integer sum over a group's 32 products of weight and input, and sum[n][g] that of the inputs alone:
//   q8_0, q4_0  y[n][m] = chain over the groups g of (dot(m, n, g), weight scale[m][g] * input scale[n][g])
//   q4_k        for every group in turn y = fma(dot(m, n, g), (scale[m] group scale[m][g]) * input scale[n][g], y), then
//               y = fma(minimum[m] group minimum[m][g], -(input scale[n][g] * sum[n][g]), y)
// Products with the input scale are rounded to f32; those in front of them are exact.
struct QuantisedMatmulTask {
    const std::uint8_t* weights;  // [block] rows in the kernel's own form, above. Outputs beyond `outputs`: scales 0
    std::size_t outputs;          // M
    std::size_t groups;           // K / 32
    std::size_t first_block;      // blocks first_block .. last_block - 1 of the M / 16 are computed
    std::size_t last_block;
    const QuantisedColumn* columns;  // [n]
    float* const* rows;              // [n] -> y[n], M floats each; distinct
    std::size_t count;               // N
};

// One query against the ring of keys and values, slot by slot in the order of the sums.
//   kyutai: w[i] = lanes16(q, key i) scale; e[i] = exp(w[i] - max w); out[d] = chain over i of (e[i] / lanes16 sum of e)
//   value[i][d] ggml:   as NUMERICS' sections on attention say: bf16 operands, sums in 4 x 8 lanes with a tail in double
struct AttentionTask {
    const float* query;  // [head_dim]
    const float* keys;   // this head's part of slot 0; slots are `slot_stride` floats apart
    const float* values;
    const float* next_keys;     // of the query that comes next, fetched meanwhile; nullptr: the same keys, or unknown
    std::size_t slot_stride;    // floats
    const std::int32_t* slots;  // [count]: slot of each key; negative: a place that counts but is not seen
    std::size_t count;          // >= 1
    std::size_t head_dim;
    float scale;
    float* weights;  // scratch, room for `count` rounded up to a multiple of 16
    float* out;      // [head_dim]
};

// Search of one codebook for several vectors.
//   kyutai: argmin of half_norm - chain over k of e[k] r[k], the lowest index on a tie. |e|^2 / 2 - e.r differs from half the
//           squared distance only by what all entries share; leaving that out keeps small differences between entries exact.
//   ggml:   argmax of 1 / (1 + d), the highest index on a tie; d sums f32 squares in double
struct NearestTask {
    const void* codebook;     // [block][k][block_outputs] f32 or f16 as the entry says, zero beyond `entries`
    const float* half_norms;  // [entries rounded up to whole blocks]: |e|^2 / 2, +inf beyond `entries`
    float longest_half_norm;  // the largest of them up to `entries`
    std::size_t entries;
    std::size_t dim;
    const float* const* residuals;  // [n] -> dim floats
    std::size_t count;
    float* scores;        // scratch, [count][entries rounded up to whole blocks]
    std::int32_t* codes;  // [n]
};

struct KernelTable {
    const char* isa;
    // Linear layers and transposed convs. kyutai: each segment one chain. ggml: tree32.
    void (*matmul)(const MatmulTask& task);
    // Other convs and the quantiser's projections. kyutai: each segment one chain. ggml: half32, after round_conv_operand.
    void (*conv_matmul)(const MatmulTask& task);
    // The same as `matmul` under `kyutai` over weights of f16 or bf16, each widened to f32 first, which is exact.
    void (*matmul_f16)(const MatmulTask& task);
    void (*matmul_bf16)(const MatmulTask& task);
    // Weights of q8_0, q4_0 and q4_k. Exact integers within a group, so that no machine's way of adding them shows.
    void (*byte_matmul)(const QuantisedMatmulTask& task);
    void (*nibble_matmul)(const QuantisedMatmulTask& task);
    void (*super_nibble_matmul)(const QuantisedMatmulTask& task);
    // `count` inputs, a multiple of 32.
    void (*quantise_column)(const float* in, std::size_t count, const QuantisedColumn& out);
    // Rounds the inputs of conv_matmul in place to what its operands can hold; nullptr: they stay f32. ggml: f16.
    void (*round_conv_operand)(float* values, std::size_t count);
    // The same for queries, keys and values. ggml: bf16.
    void (*round_attention_operand)(float* values, std::size_t count);
    // x > 0 ? x : expm1(x). `out` may be `in`. kyutai: within 2 ULP. ggml: glibc's expm1f.
    void (*elu)(const float* in, float* out, std::size_t count);
    // `out` may be `in`. kyutai: 0.5 x (1 + erf(x / sqrt 2)), erf within 3 ULP. ggml: tanh form through a table of halves.
    void (*gelu)(const float* in, float* out, std::size_t count);
    // (x - mean) / sqrt(variance + 1e-5) * weight + bias over `dim` values; biased variance. `out` may be `in`.
    // kyutai: sums by lanes16. ggml: sums in double.
    void (*layer_norm)(const float* in, const float* weight, const float* bias, float* out, std::size_t dim);
    // x (weight / sqrt(1e-8 + mean)) over `dim` values, mean = lanes16(x, x) / dim: the language model's norm. The factor is
    // rounded before it meets x. `out` may be `in`.
    void (*rms_norm)(const float* in, const float* weight, float* out, std::size_t dim);
    // silu(u) v over `count` values, silu within 3 ULP: e = exp(-|u|), (u < 0 ? u e : u) / (1 + e). `out` may be `u` or `v`.
    void (*silu_gate)(const float* u, const float* v, float* out, std::size_t count);
    void (*attention)(const AttentionTask& task);
    void (*nearest_codeword)(const NearestTask& task);
    // The same over codewords of f16, each widened to f32 first, which is exact.
    void (*nearest_codeword_f16)(const NearestTask& task);
};

// Loops that measure what the machine can do at most. What they return only keeps them from being left out.
struct LimitKernels {
    std::size_t flop_per_round;
    // Multiplies and adds `rounds` times flop_per_round / 2 values, each sum independent of enough others.
    float (*multiply_add)(std::size_t rounds);
    // Reads `count` floats, a multiple of 64, from end to end.
    float (*read)(const float* values, std::size_t count);
};

// What one instruction set offers.
struct IsaKernels {
    KernelTable kyutai;
    KernelTable ggml;
    LimitKernels limits;
};

}  // namespace mimi

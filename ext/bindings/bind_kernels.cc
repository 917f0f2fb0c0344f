// Kernels by instruction set, for tests and benchmarks only.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "bindings/bindings.h"
#include "kernels/dispatch.h"
#include "kernels/ggml_libm.h"
#include "kernels/rotary.h"
#include "layers/linear.h"
#include "layers/quantised_matrix.h"
#include "layers/residual_vq.h"
#include "model/numerics.h"

namespace nb = nanobind;

namespace mimi {

namespace {

using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Halves = nb::ndarray<const std::uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Result = nb::ndarray<nb::numpy, float, nb::c_contig>;

Result copy_out(const float* values, std::initializer_list<std::size_t> shape) {
    std::size_t count = 1;
    for (const std::size_t extent : shape) count *= extent;
    float* data = new float[count];
    const nb::capsule owner(data, [](void* pointer) noexcept { delete[] static_cast<float*>(pointer); });
    std::copy_n(values, count, data);
    return Result(data, shape, owner);
}

using ArrayKernel = void (*)(const float* in, float* out, std::size_t count);

// The kernels of one instruction set.
struct Kernels {
    Kernels(const std::string& isa, const std::string& name)
        : numerics(parse_numerics(name)), table(numerics_kernels(numerics, choose_kernels(isa))) {}
    Numerics numerics;
    const KernelTable& table;
};

Result apply(ArrayKernel kernel, const Vector& in) {
    std::vector<float> out(in.size());
    kernel(in.data(), out.data(), in.size());
    return copy_out(out.data(), {out.size()});
}

void require(bool holds, const char* what) {
    if (!holds) throw Error(ErrorCode::input_shape, what, "", "shapes that fit one another");
}

Result matmul(const Kernels& kernels, const Matrix& weights, const Matrix& columns, bool conv_operands, std::size_t segment) {
    require(weights.shape(1) == columns.shape(1), "weights and columns");
    const PackedMatrix packed(numerics_policy(kernels.numerics), weights.shape(0), weights.shape(1),
                              MatrixForm{.conv_operands = conv_operands, .segment = segment},
                              [&](std::size_t o, std::size_t i) { return weights(o, i); });
    std::vector<const float*> in;
    std::vector<float*> out;
    std::vector<float> values(columns.shape(0) * weights.shape(0));
    for (std::size_t n = 0; n < columns.shape(0); ++n) {
        in.push_back(columns.data() + n * columns.shape(1));
        out.push_back(values.data() + n * weights.shape(0));
    }
    ScratchArena scratch;
    ScratchPool scratches;
    const StepContext context{kernels.table, ThreadPool::none(), scratches, scratch, {}, nullptr};
    packed.multiply(context, nullptr, in.data(), out.data(), in.size());
    return copy_out(values.data(), {columns.shape(0), weights.shape(0)});
}

// weights: [M][K] bits of f16 or bf16.
Result narrow_matmul(const Kernels& kernels, const Halves& weights, const Matrix& columns, bool bfloat16) {
    const std::size_t outputs = weights.shape(0), inputs = weights.shape(1), count = columns.shape(0);
    require(inputs == columns.shape(1), "weights and columns");
    const PackedMatrix matrix(numerics_policy(kernels.numerics), outputs, inputs,
                              bfloat16 ? MatrixStorage::bf16 : MatrixStorage::f16);
    AlignedBuffer packed(matrix.packed_bytes() / sizeof(float));
    auto* bytes = reinterpret_cast<std::byte*>(packed.data());
    matrix.pack_rows(reinterpret_cast<const std::byte*>(weights.data()), 0, outputs, bytes);
    std::vector<const float*> in;
    std::vector<float*> out;
    std::vector<float> values(count * outputs);
    for (std::size_t n = 0; n < count; ++n) {
        in.push_back(columns.data() + n * inputs);
        out.push_back(values.data() + n * outputs);
    }
    ScratchArena scratch;
    ScratchPool scratches;
    const StepContext context{kernels.table, ThreadPool::none(), scratches, scratch, {}, nullptr};
    matrix.multiply(context, bytes, nullptr, in.data(), out.data(), count);
    return copy_out(values.data(), {count, outputs});
}

MatrixStorage quantised_storage(const std::string& type) {
    if (type == "q8_0") return MatrixStorage::q8_0;
    if (type == "q4_0") return MatrixStorage::q4_0;
    if (type == "q4_k") return MatrixStorage::q4_k;
    throw Error(ErrorCode::setting, "type", type, "q8_0, q4_0 or q4_k");
}

// blocks: [M][bytes of a row].
Result quantised_matmul(const Kernels& kernels, const Bytes& blocks, const Matrix& columns, const std::string& type) {
    const MatrixStorage storage = quantised_storage(type);
    const std::size_t outputs = blocks.shape(0);
    const std::size_t inputs = columns.shape(1);
    const std::size_t elements = storage == MatrixStorage::q4_k ? NibbleSuperBlock::elements : quantised_group;
    const QuantisedMatrix matrix(storage, outputs, inputs);
    require(inputs % elements == 0 && blocks.shape(1) == matrix.stored_row_bytes(), "blocks and columns");
    AlignedBuffer packed(matrix.packed_bytes() / sizeof(float));
    auto* bytes = reinterpret_cast<std::byte*>(packed.data());
    matrix.pack_rows(reinterpret_cast<const std::byte*>(blocks.data()), 0, outputs, bytes);
    std::vector<const float*> in;
    std::vector<float*> out;
    std::vector<float> values(columns.shape(0) * outputs);
    for (std::size_t n = 0; n < columns.shape(0); ++n) {
        in.push_back(columns.data() + n * inputs);
        out.push_back(values.data() + n * outputs);
    }
    ScratchArena scratch;
    ScratchPool scratches;
    const StepContext context{kernels.table, ThreadPool::none(), scratches, scratch, {}, nullptr};
    matrix.multiply(context, bytes, in.data(), out.data(), in.size());
    return copy_out(values.data(), {columns.shape(0), outputs});
}

Result layer_norm(const Kernels& kernels, const Vector& in, const Vector& weight, const Vector& bias) {
    require(in.size() == weight.size() && in.size() == bias.size(), "values, weight and bias");
    std::vector<float> out(in.size());
    kernels.table.layer_norm(in.data(), weight.data(), bias.data(), out.data(), in.size());
    return copy_out(out.data(), {out.size()});
}

Result rms_norm(const Kernels& kernels, const Vector& in, const Vector& weight) {
    require(in.size() == weight.size(), "values and weight");
    std::vector<float> out(in.size());
    kernels.table.rms_norm(in.data(), weight.data(), out.data(), in.size());
    return copy_out(out.data(), {out.size()});
}

Result silu_gate(const Kernels& kernels, const Vector& u, const Vector& v) {
    require(u.size() == v.size(), "both halves");
    std::vector<float> out(u.size());
    kernels.table.silu_gate(u.data(), v.data(), out.data(), out.size());
    return copy_out(out.data(), {out.size()});
}

Result attention(const Kernels& kernels, const Vector& query, const Matrix& keys, const Matrix& values,
                 const std::vector<std::int32_t>& slots, float scale) {
    require(keys.shape(1) == query.size() && values.shape(1) == query.size() && keys.shape(0) == values.shape(0),
            "keys and values");
    for (const std::int32_t slot : slots) require(slot < static_cast<std::int32_t>(keys.shape(0)), "slots");
    std::vector<float> weights(slots.size() + block_outputs);
    std::vector<float> out(query.size());
    kernels.table.attention({query.data(), keys.data(), values.data(), nullptr, keys.shape(1), slots.data(), slots.size(),
                             query.size(), scale, weights.data(), out.data()});
    return copy_out(out.data(), {out.size()});
}

// codewords: [entries][dim] values, or bits of f16.
template <class Codewords>
std::vector<std::int32_t> nearest_codeword(const Kernels& kernels, const Codewords& codewords, const Matrix& residuals) {
    require(codewords.shape(1) == residuals.shape(1), "codewords and residuals");
    const Codebook codebook(std::vector(codewords.data(), codewords.data() + codewords.size()), codewords.shape(0),
                            codewords.shape(1));
    std::vector<const float*> rows;
    for (std::size_t n = 0; n < residuals.shape(0); ++n) rows.push_back(residuals.data() + n * residuals.shape(1));
    std::vector<std::int32_t> codes(rows.size());
    std::vector<float> scores(rows.size() * codebook.score_floats());
    codebook.nearest(kernels.table, rows.data(), rows.size(), scores.data(), codes.data());
    return codes;
}

Result rotary(std::uint64_t position_steps, std::size_t pairs, double max_period, bool glibc) {
    const Rotary rotary(glibc ? RotaryAngles::glibc : RotaryAngles::correctly_rounded, pairs, max_period);
    std::vector<float> values(2 * pairs);
    rotary.angles(position_steps, values.data(), values.data() + pairs);
    return copy_out(values.data(), {2, pairs});
}

Result sines_and_cosines(const Vector& angles) {
    std::vector<float> values(2 * angles.size());
    for (std::size_t i = 0; i < angles.size(); ++i) ggml_sincosf(angles(i), values[i], values[angles.size() + i]);
    return copy_out(values.data(), {2, angles.size()});
}

template <float (*Function)(float)>
Result apply_to_each(const Vector& in) {
    std::vector<float> out(in.size());
    std::transform(in.data(), in.data() + in.size(), out.begin(), Function);
    return copy_out(out.data(), {out.size()});
}

// The values as they are where the numerics round nothing.
Result round_by(void (*kernel)(float*, std::size_t), const Vector& in) {
    std::vector<float> values(in.data(), in.data() + in.size());
    if (kernel) kernel(values.data(), values.size());
    return copy_out(values.data(), {values.size()});
}

std::vector<std::string> usable_isas() {
    std::vector<std::string> names;
    for (const IsaKernels* kernels : usable_kernels()) names.emplace_back(kernels->kyutai.isa);
    return names;
}

}  // namespace

void bind_kernels(nb::module_& module) {
    nb::class_<Kernels>(module, "Kernels", "The kernels of one instruction set, for tests and benchmarks.")
        .def(nb::init<const std::string&, const std::string&>(), nb::arg("isa"), nb::arg("numerics") = "kyutai")
        .def_static("usable_isas", &usable_isas, "Names of the kernel tables this machine can run, best first.")
        .def_static("rotary", &rotary, nb::arg("position_steps"), nb::arg("pairs"), nb::arg("max_period"),
                    nb::arg("glibc") = false, "float32 [2, pairs]: cosines, sines")
        .def_static("ggml_expf", &apply_to_each<ggml_expf>, nb::arg("values"), "for values in -104 .. 0; 0 below")
        .def_static("ggml_expm1f", &apply_to_each<ggml_expm1f>, nb::arg("values"))
        .def_static("ggml_tanhf", &apply_to_each<ggml_tanhf>, nb::arg("values"))
        .def_static("ggml_sincosf", &sines_and_cosines, nb::arg("angles"),
                    "0 <= angles < 2^22 -> float32 [2, N]: sines, cosines")
        .def(
            "elu", [](const Kernels& kernels, const Vector& in) { return apply(kernels.table.elu, in); }, nb::arg("values"))
        .def(
            "gelu", [](const Kernels& kernels, const Vector& in) { return apply(kernels.table.gelu, in); }, nb::arg("values"))
        .def(
            "round_conv_operand",
            [](const Kernels& kernels, const Vector& in) { return round_by(kernels.table.round_conv_operand, in); },
            nb::arg("values"), "to what an input of a conv can hold")
        .def(
            "round_attention_operand",
            [](const Kernels& kernels, const Vector& in) { return round_by(kernels.table.round_attention_operand, in); },
            nb::arg("values"), "to what a query, key or value can hold")
        .def("matmul", &matmul, nb::arg("weights"), nb::arg("columns"), nb::arg("conv_operands") = false,
             nb::arg("segment") = 0, "weights [M, K], columns [N, K] -> float32 [N, M]")
        .def("quantised_matmul", &quantised_matmul, nb::arg("blocks"), nb::arg("columns"), nb::arg("type") = "q8_0",
             "blocks uint8 [M, bytes of K values] of q8_0, q4_0 or q4_k, columns [N, K] -> float32 [N, M]")
        .def("narrow_matmul", &narrow_matmul, nb::arg("weights"), nb::arg("columns"), nb::arg("bfloat16"),
             "weights uint16 [M, K], the bits of f16 or bf16, columns [N, K] -> float32 [N, M]")
        .def("rms_norm", &rms_norm, nb::arg("values"), nb::arg("weight"))
        .def("silu_gate", &silu_gate, nb::arg("u"), nb::arg("v"))
        .def("layer_norm", &layer_norm, nb::arg("values"), nb::arg("weight"), nb::arg("bias"))
        .def("attention", &attention, nb::arg("query"), nb::arg("keys"), nb::arg("values"), nb::arg("slots"), nb::arg("scale"),
             "keys, values: [slots, head_dim] -> float32 [head_dim]")
        .def("nearest_codeword", &nearest_codeword<Matrix>, nb::arg("codewords"), nb::arg("residuals"),
             "codewords [entries, dim], residuals [N, dim] -> N codes")
        .def("narrow_nearest_codeword", &nearest_codeword<Halves>, nb::arg("codewords"), nb::arg("residuals"),
             "codewords uint16 [entries, dim], the bits of f16, residuals [N, dim] -> N codes");
}

}  // namespace mimi

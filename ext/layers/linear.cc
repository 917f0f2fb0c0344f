#include "layers/linear.h"

#include <algorithm>

#include "layers/product_pieces.h"

namespace mimi {

namespace {

// Outputs above which copying the columns together costs less than fetching them from where they lie: out of the weights'
// order, or so that many fall into the same sets of the cache, as rows of a power of two do.
constexpr std::size_t gather_outputs = 512;
constexpr std::size_t gather_columns = 4;

}  // namespace

void PackedMatrix::arrange(const NumericsPolicy& policy) {
    if (policy.sum_order == SumOrder::chains) {
        form_.segment = chain_elements;
        return;
    }
    if (form_.segment == 0) form_.segment = inputs_;
    std::vector<std::uint32_t> offsets(inputs_);
    order_.resize(inputs_);
    for (std::size_t begin = 0; begin < inputs_; begin += form_.segment) {
        const std::size_t count = std::min(form_.segment, inputs_ - begin);
        const std::size_t whole = count / tree_elements * tree_elements;
        for (std::size_t position = 0; position < count; ++position) {
            const std::size_t input = begin + (position < whole ? tree_element(position, whole) : position);
            order_[begin + position] = static_cast<std::uint32_t>(input);
            offsets[begin + position] = form_.offsets.empty() ? static_cast<std::uint32_t>(input) : form_.offsets[input];
        }
    }
    form_.offsets = std::move(offsets);
}

const float** PackedMatrix::gather(const StepContext& context, const float* const* columns, std::size_t count) const {
    const float** copies = context.scratch.take_array<const float*>(count);
    // A cache line more, or columns of a power of two would all fall into the same sets of the cache.
    const std::size_t stride = inputs_ + 16;
    float* room = context.scratch.take(count * stride);
    context.pool.run_ranges(count, [&](std::size_t begin, std::size_t end) {
        for (std::size_t n = begin; n < end; ++n) {
            float* copy = room + n * stride;
            if (form_.offsets.empty())
                std::copy_n(columns[n], inputs_, copy);
            else
                for (std::size_t k = 0; k < inputs_; ++k) copy[k] = columns[n][form_.offsets[k]];
            copies[n] = copy;
        }
    });
    return copies;
}

// Tile by tile, as wide as a cache line is long: each line of the rows is read once, however many of them fall into one set.
template <class Stored, class Kept, class Convert>
void PackedMatrix::pack_elements(const Stored* rows, std::size_t first, std::size_t count, Kept* packed,
                                 Convert convert) const {
    for (std::size_t begin = 0; begin < count; begin += block_outputs) {
        Kept* block = packed + (first + begin) * inputs_;
        const std::size_t outputs = std::min<std::size_t>(block_outputs, count - begin);
        if (outputs < block_outputs) std::fill_n(block, inputs_ * block_outputs, Kept{0});
        for (std::size_t tile = 0; tile < inputs_; tile += block_outputs) {
            const std::size_t end = std::min<std::size_t>(inputs_, tile + block_outputs);
            for (std::size_t o = 0; o < outputs; ++o) {
                const Stored* row = rows + (begin + o) * inputs_;
                for (std::size_t position = tile; position < end; ++position)
                    block[position * block_outputs + o] = convert(row[input_at(position)]);
            }
        }
    }
}

void PackedMatrix::pack_rows(const std::byte* rows, std::size_t first, std::size_t count, std::byte* packed) const {
    const auto as_it_is = [](auto element) { return element; };
    const auto* narrow_rows = reinterpret_cast<const std::uint16_t*>(rows);
    auto* wide = reinterpret_cast<float*>(packed);
    if (stored_ == MatrixStorage::f32)
        pack_elements(reinterpret_cast<const float*>(rows), first, count, wide, as_it_is);
    else if (storage_ == stored_)
        pack_elements(narrow_rows, first, count, reinterpret_cast<std::uint16_t*>(packed), as_it_is);
    else
        pack_elements(narrow_rows, first, count, wide, stored_ == MatrixStorage::f16 ? half_to_float : bfloat16_to_float);
}

namespace {

using MatmulKernel = void (*)(const MatmulTask& task);

MatmulKernel kernel_of(const KernelTable& kernels, MatrixStorage storage, bool conv_operands) {
    switch (storage) {
        case MatrixStorage::f16: return kernels.matmul_f16;
        case MatrixStorage::bf16: return kernels.matmul_bf16;
        default: return conv_operands ? kernels.conv_matmul : kernels.matmul;
    }
}

}  // namespace

void PackedMatrix::multiply(const StepContext& context, const void* packed, const float* bias, const float* const* columns,
                            float* const* rows, std::size_t count) const {
    const ScratchArena::Mark mark(context.scratch);
    const bool gathered = outputs_ >= gather_outputs && (!form_.offsets.empty() || count >= gather_columns);
    if (gathered) columns = gather(context, columns, count);
    const MatmulTask whole{
        .weights = packed,
        .bias = bias,
        .outputs = outputs_,
        .reduction = inputs_,
        .segment = form_.segment,
        .offsets = gathered || form_.offsets.empty() ? nullptr : form_.offsets.data(),
        .first_block = 0,
        .last_block = count_blocks(outputs_),
        .columns = columns,
        .rows = rows,
        .count = count,
    };
    const MatmulKernel kernel = kernel_of(context.kernels, storage_, form_.conv_operands);
    share_product(context, outputs_, inputs_, count, [&](const ProductPiece& piece) {
        MatmulTask task = whole;
        task.first_block = piece.first_block;
        task.last_block = piece.last_block;
        task.columns = columns + piece.first_column;
        task.rows = rows + piece.first_column;
        task.count = piece.last_column - piece.first_column;
        kernel(task);
    });
}

void PackedMatrix::round_operand(const StepContext& context, const Activations& in) const {
    if (!form_.conv_operands || !context.kernels.round_conv_operand) return;
    context.each_lane([&](std::size_t lane) { context.kernels.round_conv_operand(in.row(lane, 0), in.row_floats()); });
}

namespace {

// The file's class decides, never the machine.
std::variant<PackedMatrix, QuantisedMatrix> packed(const NumericsPolicy& policy, const StoredMatrix& weight,
                                                   std::size_t outputs, std::size_t inputs, MatrixForm form) {
    if (const auto* blocks = std::get_if<std::vector<QuantisedBlock>>(&weight))
        return QuantisedMatrix(*blocks, outputs, inputs);
    const auto& values = std::get<std::vector<float>>(weight);
    return PackedMatrix(policy, outputs, inputs, std::move(form),
                        [&](std::size_t o, std::size_t i) { return values[o * inputs + i]; });
}

}  // namespace

Linear::Linear(const NumericsPolicy& policy, const StoredMatrix& weight, std::size_t outputs, std::size_t inputs,
               MatrixForm form)
    : matrix_(packed(policy, weight, outputs, inputs, std::move(form))) {}

Linear::Linear(const NumericsPolicy& policy, MatrixStorage stored, std::size_t outputs, std::size_t inputs)
    : matrix_(is_quantised(stored) ? decltype(matrix_)(QuantisedMatrix(stored, outputs, inputs))
                                   : decltype(matrix_)(PackedMatrix(policy, outputs, inputs, stored))) {}

std::size_t Linear::size_bytes() const {
    return std::visit([](const auto& matrix) { return matrix.size_bytes(); }, matrix_);
}

std::size_t Linear::packed_bytes() const {
    return std::visit([](const auto& matrix) { return matrix.packed_bytes(); }, matrix_);
}

std::size_t Linear::stored_row_bytes() const {
    return std::visit([](const auto& matrix) { return matrix.stored_row_bytes(); }, matrix_);
}

void Linear::pack_rows(const std::byte* stored, std::size_t first, std::size_t count, std::byte* packed) const {
    std::visit([&](const auto& matrix) { matrix.pack_rows(stored, first, count, packed); }, matrix_);
}

void Linear::step(const StepContext& context, const std::byte* packed, const Activations& in, const Activations& out) const {
    const ScratchArena::Mark mark(context.scratch);
    const std::size_t count = in.lanes * in.rows;
    const float** columns = context.scratch.take_array<const float*>(count);
    float** rows = context.scratch.take_array<float*>(count);
    for (std::size_t lane = 0; lane < in.lanes; ++lane) {
        for (std::size_t t = 0; t < in.rows; ++t) {
            columns[lane * in.rows + t] = in.row(lane, static_cast<std::ptrdiff_t>(t));
            rows[lane * in.rows + t] = out.row(lane, static_cast<std::ptrdiff_t>(t));
        }
    }
    if (const auto* quantised = std::get_if<QuantisedMatrix>(&matrix_))
        return quantised->multiply(context, packed, columns, rows, count);
    const PackedMatrix& plain = std::get<PackedMatrix>(matrix_);
    plain.round_operand(context, in);
    if (packed == nullptr)
        plain.multiply(context, nullptr, columns, rows, count);
    else
        plain.multiply(context, packed, nullptr, columns, rows, count);
}

}  // namespace mimi

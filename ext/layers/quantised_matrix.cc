#include "layers/quantised_matrix.h"

#include <algorithm>
#include <cstring>

#include "layers/product_pieces.h"

namespace mimi {

namespace {

static_assert(QuantisedBlock::elements == quantised_group);
static_assert(NibbleBlock::elements == quantised_group);
static_assert(NibbleSuperBlock::group_elements == quantised_group && NibbleSuperBlock::groups == super_block_groups);

// Bytes of one output that lie side by side in a row; they are moved together, since the tensor window packs at the rate of the
// disk.
constexpr std::size_t lane_bytes = quantised_row_bytes / block_outputs;
static_assert(lane_bytes == sizeof(std::uint32_t));

void put_half(std::uint16_t half, std::uint8_t* row, std::size_t lane) {
    row[2 * lane] = static_cast<std::uint8_t>(half & 0xffu);
    row[2 * lane + 1] = static_cast<std::uint8_t>(half >> 8);
}

// Byte i of an output goes to row i / 4 from `row` on.
std::uint8_t& byte_at(std::uint8_t* row, std::size_t lane, std::size_t i) {
    return row[i / lane_bytes * quantised_row_bytes + lane_bytes * lane + i % lane_bytes];
}

void pack(const QuantisedBlock& stored, std::size_t lane, std::uint8_t* row, std::uint8_t* scales) {
    for (std::size_t i = 0; i < quantised_group; i += lane_bytes) {
        std::uint32_t four;
        std::memcpy(&four, stored.quants + i, sizeof four);
        four ^= 0x80808080u;  // 128 added to each
        std::memcpy(&byte_at(row, lane, i), &four, sizeof four);
    }
    put_half(stored.scale, scales, lane);
}

void pack(const NibbleBlock& stored, std::size_t lane, std::uint8_t* row, std::uint8_t* scales) {
    for (std::size_t i = 0; i < sizeof stored.nibbles; i += lane_bytes)
        std::memcpy(&byte_at(row, lane, i), stored.nibbles + i, lane_bytes);
    put_half(stored.scale, scales, lane);
}

// Two groups share their bytes in the file; here, as in q4_0, the halves of one do.
void pack(const NibbleSuperBlock& stored, std::size_t lane, std::uint8_t* row) {
    constexpr std::size_t half = quantised_group / 2;
    for (std::size_t group = 0; group < super_block_groups; ++group, row += half / lane_bytes * quantised_row_bytes) {
        const std::uint8_t* nibbles = stored.nibbles + group / 2 * quantised_group;
        const unsigned shift = group % 2 * 4;
        for (std::size_t i = 0; i < half; ++i)
            byte_at(row, lane, i) =
                static_cast<std::uint8_t>(((nibbles[i] >> shift) & 15u) | ((nibbles[half + i] >> shift) & 15u) << 4);
    }
    put_half(stored.scale, row, lane);
    put_half(stored.minimum, row + quantised_row_bytes / 2, lane);
    for (std::size_t i = 0; i < sizeof stored.packed; ++i)
        row[quantised_row_bytes + i * block_outputs + lane] = stored.packed[i];
}

template <class Block>
void pack_groups(const std::byte* row, std::size_t groups, std::size_t group_rows, std::size_t lane, std::uint8_t* block) {
    std::uint8_t* scales = block + groups * group_rows * quantised_row_bytes;
    for (std::size_t group = 0; group < groups; ++group) {
        Block stored;
        std::memcpy(&stored, row + group * sizeof stored, sizeof stored);
        pack(stored, lane, block + group * group_rows * quantised_row_bytes, scales + group * 2 * block_outputs);
    }
}

}  // namespace

QuantisedMatrix::QuantisedMatrix(std::span<const QuantisedBlock> blocks, std::size_t outputs, std::size_t inputs)
    : QuantisedMatrix(MatrixStorage::q8_0, outputs, inputs) {
    bytes_ = AlignedBuffer(packed_bytes() / sizeof(float));
    pack_rows(reinterpret_cast<const std::byte*>(blocks.data()), 0, outputs, reinterpret_cast<std::byte*>(bytes_.data()));
}

std::size_t QuantisedMatrix::stored_row_bytes() const {
    switch (storage_) {
        case MatrixStorage::q4_0: return groups_ * sizeof(NibbleBlock);
        case MatrixStorage::q4_k: return groups_ / super_block_groups * sizeof(NibbleSuperBlock);
        default: return groups_ * sizeof(QuantisedBlock);
    }
}

std::size_t QuantisedMatrix::block_rows() const {
    switch (storage_) {
        case MatrixStorage::q4_0: return nibble_block_rows(groups_);
        case MatrixStorage::q4_k: return super_nibble_block_rows(groups_);
        default: return byte_block_rows(groups_);
    }
}

void QuantisedMatrix::pack_row(const std::byte* row, std::size_t lane, std::uint8_t* block) const {
    switch (storage_) {
        case MatrixStorage::q4_0: return pack_groups<NibbleBlock>(row, groups_, 4, lane, block);
        case MatrixStorage::q4_k:
            for (std::size_t i = 0; i < groups_ / super_block_groups; ++i) {
                NibbleSuperBlock stored;
                std::memcpy(&stored, row + i * sizeof stored, sizeof stored);
                pack(stored, lane, block + i * super_block_rows * quantised_row_bytes);
            }
            return;
        default: return pack_groups<QuantisedBlock>(row, groups_, 8, lane, block);
    }
}

void QuantisedMatrix::pack_rows(const std::byte* rows, std::size_t first, std::size_t count, std::byte* packed) const {
    const std::size_t row_bytes = stored_row_bytes(), block_bytes = block_rows() * quantised_row_bytes;
    for (std::size_t row = 0; row < count; ++row) {
        const std::size_t output = first + row;
        auto* block = reinterpret_cast<std::uint8_t*>(packed) + output / block_outputs * block_bytes;
        const std::size_t lane = output % block_outputs;
        // A slot may hold another layer's weights where this matrix has none.
        if (lane == 0 && outputs_ - output < block_outputs) std::fill_n(block, block_bytes, std::uint8_t{0});
        pack_row(rows + row * row_bytes, lane, block);
    }
}

const QuantisedColumn* QuantisedMatrix::quantise(const StepContext& context, const float* const* columns,
                                                 std::size_t count) const {
    auto* quantised = context.scratch.take_array<QuantisedColumn>(count);
    const std::size_t inputs = groups_ * quantised_group;
    auto* values = context.scratch.take_array<std::int8_t>(count * inputs);
    float* scales = context.scratch.take(count * groups_);
    auto* shifts = context.scratch.take_array<std::int32_t>(count * groups_);
    context.pool.run_ranges(count, [&](std::size_t begin, std::size_t end) {
        for (std::size_t n = begin; n < end; ++n) {
            quantised[n] = {values + n * inputs, scales + n * groups_, shifts + n * groups_};
            context.kernels.quantise_column(columns[n], inputs, quantised[n]);
        }
    });
    return quantised;
}

namespace {

using QuantisedKernel = void (*)(const QuantisedMatmulTask& task);

QuantisedKernel kernel_of(const KernelTable& kernels, MatrixStorage storage) {
    switch (storage) {
        case MatrixStorage::q4_0: return kernels.nibble_matmul;
        case MatrixStorage::q4_k: return kernels.super_nibble_matmul;
        default: return kernels.byte_matmul;
    }
}

}  // namespace

void QuantisedMatrix::multiply(const StepContext& context, const std::byte* packed, const float* const* columns,
                               float* const* rows, std::size_t count) const {
    const ScratchArena::Mark mark(context.scratch);
    const QuantisedColumn* quantised = quantise(context, columns, count);
    const QuantisedKernel kernel = kernel_of(context.kernels, storage_);
    share_product(context, outputs_, groups_ * quantised_group, count, [&](const ProductPiece& piece) {
        kernel({
            .weights = packed != nullptr ? reinterpret_cast<const std::uint8_t*>(packed)
                                         : reinterpret_cast<const std::uint8_t*>(bytes_.data()),
            .outputs = outputs_,
            .groups = groups_,
            .first_block = piece.first_block,
            .last_block = piece.last_block,
            .columns = quantised + piece.first_column,
            .rows = rows + piece.first_column,
            .count = piece.last_column - piece.first_column,
        });
    });
}

}  // namespace mimi

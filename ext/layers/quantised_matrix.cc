#include "layers/quantised_matrix.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "layers/product_pieces.h"

namespace mimi {

static_assert(QuantisedBlock::elements == quantised_group);

QuantisedMatrix::QuantisedMatrix(std::span<const QuantisedBlock> blocks, std::size_t outputs, std::size_t inputs)
    : outputs_(outputs), groups_(inputs / quantised_group), bytes_(packed_bytes() / sizeof(float)) {
    pack_rows(blocks.data(), 0, outputs, reinterpret_cast<std::byte*>(bytes_.data()));
}

void QuantisedMatrix::pack_rows(const QuantisedBlock* rows, std::size_t first, std::size_t count, std::byte* packed) const {
    auto* bytes = reinterpret_cast<std::uint8_t*>(packed);
    for (std::size_t row = 0; row < count; ++row) {
        const std::size_t output = first + row;
        std::uint8_t* block = bytes + output / block_outputs * quantised_block_bytes(groups_);
        std::uint8_t* scales = block + groups_ * 8 * quantised_row_bytes;
        const std::size_t lane = output % block_outputs;
        // A slot may hold another layer's weights where this matrix has none.
        if (lane == 0 && outputs_ - output < block_outputs) std::fill_n(block, quantised_block_bytes(groups_), std::uint8_t{0});
        for (std::size_t group = 0; group < groups_; ++group) {
            const QuantisedBlock& stored = rows[row * groups_ + group];
            // Four at a time, 128 added to each: the tensor window packs at the rate of the disk.
            for (std::size_t i = 0; i < quantised_group; i += 4) {
                std::uint32_t four;
                std::memcpy(&four, stored.quants + i, sizeof four);
                four ^= 0x80808080u;
                std::memcpy(block + (group * 8 + i / 4) * quantised_row_bytes + 4 * lane, &four, sizeof four);
            }
            std::uint8_t* scale = scales + 2 * (group * block_outputs + lane);
            scale[0] = static_cast<std::uint8_t>(stored.scale & 0xffu);
            scale[1] = static_cast<std::uint8_t>(stored.scale >> 8);
        }
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

void QuantisedMatrix::multiply(const StepContext& context, const std::byte* packed, const float* const* columns,
                               float* const* rows, std::size_t count) const {
    const ScratchArena::Mark mark(context.scratch);
    const QuantisedColumn* quantised = quantise(context, columns, count);
    share_product(context, outputs_, groups_ * quantised_group, count, [&](const ProductPiece& piece) {
        context.kernels.quantised_matmul({
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

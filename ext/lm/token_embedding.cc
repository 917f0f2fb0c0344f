#include "lm/token_embedding.h"

#include <algorithm>
#include <vector>

#include "weights/dequantise.h"
#include "weights/tensor_values.h"

namespace mimi {

namespace {

// Of a table that stays in the file, looked at at once.
constexpr std::size_t checked_bytes = std::size_t{1} << 20;

std::size_t floats_for(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes + sizeof(float) - 1) / sizeof(float));
}

}  // namespace

EmbeddingTable::EmbeddingTable(const GgufTensor& tensor)
    : tensor_(tensor),
      rows_(static_cast<std::size_t>(tensor.elements / tensor.dims[0])),
      width_(static_cast<std::size_t>(tensor.dims[0])),
      row_bytes_(static_cast<std::size_t>(tensor.size_bytes) / rows_) {}

void EmbeddingTable::keep(const GgufReader& file) {
    bytes_ = AlignedBuffer(floats_for(tensor_.size_bytes));
    file.read(tensor_, bytes_.data());
    check_run(tensor_, 0, bytes_.data(), size_bytes());
}

void EmbeddingTable::leave_in_file(const GgufReader& file, const RowReader& reader) {
    const std::size_t most_rows = std::max<std::size_t>(1, checked_bytes / row_bytes_);
    std::vector<std::byte> part(std::min(most_rows, rows_) * row_bytes_);
    for (std::size_t first = 0; first < rows_; first += most_rows) {
        const std::size_t size = std::min(most_rows, rows_ - first) * row_bytes_;
        file.read_part(tensor_, first * row_bytes_, size, part.data());
        check_run(tensor_, first * row_bytes_, part.data(), size);
    }
    reader_ = &reader;
}

void EmbeddingTable::copy_row(ScratchArena& scratch, std::size_t row, float* out) const {
    if (reader_ == nullptr) {
        const auto* stored = reinterpret_cast<const std::byte*>(bytes_.data()) + row * row_bytes_;
        return dequantise(tensor_.type, stored, width_, out);
    }
    const ScratchArena::Mark mark(scratch);
    auto* room = scratch.take_array<std::byte>(RowReader::room_bytes(row_bytes_));
    dequantise(tensor_.type, reader_->read(tensor_.offset_bytes + row * row_bytes_, row_bytes_, room), width_, out);
}

TokenEmbedding::TokenEmbedding(const LmTensors& tensors, const std::string& name, Form form, MatrixBlock& block)
    : table_(tensors.tensor(name + ".weight")), form_(form) {
    if (form == Form::low_rank) first_matrix_ = block.add(tensors.tensor(name + ".low_rank.weight"));
    if (form == Form::muxed) {
        first_matrix_ = block.add(tensors.tensor(name + ".out1.weight"));
        second_matrix_ = block.add(tensors.tensor(name + ".out2.weight"));
    }
}

void TokenEmbedding::look_up(const StepContext& context, const MatrixBlock::Visit& visit, const std::int32_t* tokens,
                             const Activations& out) const {
    if (form_ == Form::plain) return copy_rows(context, tokens, out);
    const ScratchArena::Mark mark(context.scratch);
    if (form_ == Form::muxed) return look_up_muxed(context, visit, tokens, out);
    const Activations rows = context.take(1, table_.width());
    copy_rows(context, tokens, rows);
    visit.multiply(first_matrix_, context, rows, out);
}

void TokenEmbedding::look_up_muxed(const StepContext& context, const MatrixBlock::Visit& visit, const std::int32_t* tokens,
                                   const Activations& out) const {
    const auto count = static_cast<std::int32_t>(table_.rows());
    auto* left = context.scratch.take_array<std::int32_t>(out.lanes);
    auto* right = context.scratch.take_array<std::int32_t>(out.lanes);
    bool any = false;
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        left[lane] = tokens[lane] < 0 ? zero_token : tokens[lane] % count;
        right[lane] = tokens[lane] < 0 ? zero_token : tokens[lane] / count - 1;
        any = any || right[lane] >= 0;
    }
    const Activations rows = context.take(1, table_.width());
    copy_rows(context, left, rows);
    visit.multiply(first_matrix_, context, rows, out);
    if (!any) return;
    const Activations second = context.take(1, out.channels);
    copy_rows(context, right, rows);
    visit.multiply(second_matrix_, context, rows, second);
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        if (right[lane] < 0) continue;
        for (std::size_t c = 0; c < out.channels; ++c) out.row(lane, 0)[c] += second.row(lane, 0)[c];
    }
}

void TokenEmbedding::copy_rows(const StepContext& context, const std::int32_t* rows, const Activations& out) const {
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        if (rows[lane] < 0)
            std::fill_n(out.row(lane, 0), table_.width(), 0.0f);
        else
            table_.copy_row(context.scratch, static_cast<std::size_t>(rows[lane]), out.row(lane, 0));
    }
}

}  // namespace mimi

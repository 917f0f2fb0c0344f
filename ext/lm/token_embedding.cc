#include "lm/token_embedding.h"

#include <algorithm>

#include "weights/dequantise.h"
#include "weights/tensor_values.h"

namespace mimi {

namespace {

std::size_t floats_for(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes + sizeof(float) - 1) / sizeof(float));
}

}  // namespace

EmbeddingTable::EmbeddingTable(const GgufReader& file, const GgufTensor& tensor)
    : type_(tensor.type),
      rows_(static_cast<std::size_t>(tensor.elements / tensor.dims[0])),
      width_(static_cast<std::size_t>(tensor.dims[0])),
      row_bytes_(static_cast<std::size_t>(tensor.size_bytes) / rows_),
      bytes_(floats_for(tensor.size_bytes)) {
    file.read(tensor, bytes_.data());
    check_run(tensor, 0, bytes_.data(), static_cast<std::size_t>(tensor.size_bytes));
}

void EmbeddingTable::copy_row(std::size_t row, float* out) const {
    dequantise(type_, reinterpret_cast<const std::byte*>(bytes_.data()) + row * row_bytes_, width_, out);
}

TokenEmbedding::TokenEmbedding(const LmTensors& tensors, const std::string& name, Form form, MatrixBlock& block)
    : table_(tensors.file(), tensors.tensor(name + ".weight")), form_(form) {
    if (form == Form::low_rank) first_matrix_ = block.add(tensors.tensor(name + ".low_rank.weight"));
    if (form == Form::muxed) {
        first_matrix_ = block.add(tensors.tensor(name + ".out1.weight"));
        second_matrix_ = block.add(tensors.tensor(name + ".out2.weight"));
    }
}

void TokenEmbedding::look_up(const StepContext& context, const MatrixBlock::Visit* visit, const std::int32_t* tokens,
                             const Activations& out) const {
    if (form_ == Form::plain) return copy_rows(tokens, out);
    const ScratchArena::Mark mark(context.scratch);
    if (form_ == Form::muxed) return look_up_muxed(context, *visit, tokens, out);
    const Activations rows = context.take(1, table_.width());
    copy_rows(tokens, rows);
    visit->multiply(first_matrix_, context, rows, out);
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
    copy_rows(left, rows);
    visit.multiply(first_matrix_, context, rows, out);
    if (!any) return;
    const Activations second = context.take(1, out.channels);
    copy_rows(right, rows);
    visit.multiply(second_matrix_, context, rows, second);
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        if (right[lane] < 0) continue;
        for (std::size_t c = 0; c < out.channels; ++c) out.row(lane, 0)[c] += second.row(lane, 0)[c];
    }
}

void TokenEmbedding::copy_rows(const std::int32_t* rows, const Activations& out) const {
    for (std::size_t lane = 0; lane < out.lanes; ++lane) {
        if (rows[lane] < 0)
            std::fill_n(out.row(lane, 0), table_.width(), 0.0f);
        else
            table_.copy_row(static_cast<std::size_t>(rows[lane]), out.row(lane, 0));
    }
}

}  // namespace mimi

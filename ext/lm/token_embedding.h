// Tokens to vectors: a table of rows as the file stores them, and the matrices some models put behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/aligned_buffer.h"
#include "base/scratch_arena.h"
#include "layers/step_context.h"
#include "lm/matrix_block.h"
#include "lm/tensors.h"
#include "weights/row_reader.h"

namespace mimi {

// A token that stands for nothing: its vector is exactly zero.
constexpr std::int32_t zero_token = -1;

// [rows][width], as it is stored: in memory, or in the file, from which rows are read as they are needed.
class EmbeddingTable {
public:
    // Reads nothing yet. One of the following is called before a row is asked for.
    explicit EmbeddingTable(const GgufTensor& tensor);
    // Takes the whole table into memory. Error{model_contract} where a value is not finite.
    void keep(const GgufReader& file);
    // Leaves it in the file, whose rows `reader` reads; it must live as long as this. Error{model_contract} likewise.
    void leave_in_file(const GgufReader& file, const RowReader& reader);

    std::size_t rows() const { return rows_; }
    std::size_t width() const { return width_; }
    // As it is stored.
    std::size_t size_bytes() const { return static_cast<std::size_t>(tensor_.size_bytes); }
    // As f32, by dequantise(). row < rows(). Errors of RowReader::read() where the table is in the file.
    void copy_row(ScratchArena& scratch, std::size_t row, float* out) const;

private:
    GgufTensor tensor_;
    std::size_t rows_;
    std::size_t width_;
    std::size_t row_bytes_;
    AlignedBuffer bytes_;  // empty: in the file
    const RowReader* reader_ = nullptr;
};

class TokenEmbedding {
public:
    // How what the table holds becomes the vector.
    enum class Form {
        plain,
        low_rank,  // by NAME.low_rank.weight
        muxed,     // two tokens in one id, NAME.out1.weight for the one and NAME.out2.weight for the other
    };

    // Table NAME.weight; its matrices are added to `block`.
    TokenEmbedding(const LmTensors& tensors, const std::string& name, Form form, MatrixBlock& block);

    // tokens[lane]: an id of the table (or muxed ids) or zero_token -> out: [lane][1][dim]. `visit` of the block. Muxed: out1
    // T[id mod rows] + out2 T[id / rows - 1], the latter only where id / rows > 0.
    void look_up(const StepContext& context, const MatrixBlock::Visit& visit, const std::int32_t* tokens,
                 const Activations& out) const;
    EmbeddingTable& table() { return table_; }

private:
    void look_up_muxed(const StepContext& context, const MatrixBlock::Visit& visit, const std::int32_t* tokens,
                       const Activations& out) const;
    void copy_rows(const StepContext& context, const std::int32_t* rows, const Activations& out) const;

    EmbeddingTable table_;
    Form form_;
    std::size_t first_matrix_ = 0;
    std::size_t second_matrix_ = 0;
};

}  // namespace mimi

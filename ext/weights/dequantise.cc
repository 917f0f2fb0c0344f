#include "weights/dequantise.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/half_float.h"
#include "base/quantised_block.h"
#include "weights/quoted_text.h"
#include "weights/tensor_values.h"

namespace mimi {

namespace {

// Whole blocks of every type, and small enough to stay in the cache between being read, widened and checked.
constexpr std::size_t part_elements = 64 * 1024;

template <typename Block>
void dequantise_blocks(const void* stored, std::size_t elements, float* out) {
    const auto* bytes = static_cast<const std::byte*>(stored);
    for (std::size_t i = 0; i < elements / Block::elements; ++i) {
        Block block;
        std::memcpy(&block, bytes + i * sizeof block, sizeof block);
        block_values(block, out + i * Block::elements);
    }
}

template <typename Widen>
void widen_halves(const void* stored, std::size_t elements, float* out, Widen widen) {
    const auto* bytes = static_cast<const std::byte*>(stored);
    for (std::size_t i = 0; i < elements; ++i) {
        std::uint16_t half;
        std::memcpy(&half, bytes + i * sizeof half, sizeof half);
        out[i] = widen(half);
    }
}

std::uint64_t bytes_of(const TensorTypeTraits& traits, std::uint64_t elements) {
    return elements / traits.block_elements * traits.block_bytes;
}

const TensorTypeTraits& required_traits(const GgufTensor& tensor) {
    if (!is_dequantisable(tensor.type)) {
        throw Error(ErrorCode::model_contract, "tensor " + quoted(tensor.name) + " type",
                    std::string(tensor_type_name(tensor.type)), "f32, f16, bf16, q8_0, q4_0 or q4_k");
    }
    return *find_tensor_type(static_cast<std::uint32_t>(tensor.type));
}

// Reads values `first` .. `first + count` of the tensor, `part_elements` at a time; `out(done)` says where those go that come
// after the first `done`.
template <typename Out>
void read_finite(const GgufReader& file, const GgufTensor& tensor, std::uint64_t first, std::uint64_t count, Out out) {
    const TensorTypeTraits& traits = required_traits(tensor);
    std::vector<std::byte> stored(static_cast<std::size_t>(bytes_of(traits, std::min<std::uint64_t>(part_elements, count))));
    for (std::uint64_t done = 0; done < count; done += part_elements) {
        const auto elements = static_cast<std::size_t>(std::min<std::uint64_t>(part_elements, count - done));
        const auto size_bytes = static_cast<std::size_t>(bytes_of(traits, elements));
        file.read_part(tensor, bytes_of(traits, first + done), size_bytes, stored.data());
        float* values = out(done);
        dequantise(tensor.type, stored.data(), elements, values);
        require_finite_values(tensor, first + done, values, elements);
    }
}

}  // namespace

bool is_dequantisable(TensorType type) {
    switch (type) {
        case TensorType::f32:
        case TensorType::f16:
        case TensorType::bf16:
        case TensorType::q4_0:
        case TensorType::q8_0:
        case TensorType::q4_k: return true;
        default: return false;
    }
}

void dequantise(TensorType type, const void* stored, std::size_t elements, float* out) {
    switch (type) {
        case TensorType::f32: std::memcpy(out, stored, elements * sizeof(float)); return;
        case TensorType::f16: widen_halves(stored, elements, out, half_to_float); return;
        case TensorType::bf16: widen_halves(stored, elements, out, bfloat16_to_float); return;
        case TensorType::q8_0: dequantise_blocks<QuantisedBlock>(stored, elements, out); return;
        case TensorType::q4_0: dequantise_blocks<NibbleBlock>(stored, elements, out); return;
        case TensorType::q4_k: dequantise_blocks<NibbleSuperBlock>(stored, elements, out); return;
        default: throw Error(ErrorCode::internal, "type", std::string(tensor_type_name(type)), "one that can be dequantised");
    }
}

void read_rows(const GgufReader& file, const GgufTensor& tensor, std::uint64_t first_row, std::uint64_t rows, float* out) {
    const std::uint64_t row_elements = tensor.dims.front();
    read_finite(file, tensor, first_row * row_elements, rows * row_elements, [out](std::uint64_t done) { return out + done; });
}

void check_finite(const GgufReader& file, const GgufTensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(std::min<std::uint64_t>(part_elements, tensor.elements)));
    read_finite(file, tensor, 0, tensor.elements, [&values](std::uint64_t) { return values.data(); });
}

}  // namespace mimi

#include "weights/tensor_layout.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

// Sizes stay below this, so that adding an alignment to one cannot wrap.
constexpr std::uint64_t size_limit = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const std::string& subject, std::string found, std::string expected) {
    throw Error(ErrorCode::model_format, subject, std::move(found), std::move(expected));
}

std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b, const std::string& field) {
    if (a > size_limit / b) refuse(field, std::to_string(a) + " times " + std::to_string(b), "a size below 2^63");
    return a * b;
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

void check_place(const GgufTensor& tensor, std::uint64_t data_start, std::uint64_t alignment, std::uint64_t file_size_bytes) {
    const std::string field = "tensor " + quoted(tensor.name) + " offset";
    if (tensor.offset_bytes % alignment != 0) {
        refuse(field, std::to_string(tensor.offset_bytes), "a multiple of " + std::to_string(alignment));
    }
    const std::uint64_t data_bytes = data_start > file_size_bytes ? 0 : file_size_bytes - data_start;
    if (tensor.size_bytes > data_bytes || tensor.offset_bytes > data_bytes - tensor.size_bytes) {
        refuse(field, std::to_string(tensor.offset_bytes) + " for " + std::to_string(tensor.size_bytes) + " bytes",
               "inside the file's " + std::to_string(data_bytes) + " bytes of data");
    }
}

// Tensors must tile the data section: `expected` is where the next may start, `previous` the one before it.
void check_tiling(const GgufTensor& tensor, const GgufTensor* previous, std::uint64_t expected) {
    if (tensor.offset_bytes == expected) return;
    const std::string field = "tensor " + quoted(tensor.name) + " offset";
    const std::string after = previous == nullptr ? "the start of the data" : "the end of tensor " + quoted(previous->name);
    refuse(field,
           std::to_string(tensor.offset_bytes) + (tensor.offset_bytes < expected ? ", an overlap" : ", a hole before it"),
           std::to_string(expected) + ", " + after);
}

}  // namespace

void size_tensor(GgufTensor& tensor, const TensorTypeTraits& traits) {
    const std::string field = "tensor " + quoted(tensor.name) + " dims";
    if (tensor.dims.front() % traits.block_elements != 0) {
        refuse(field, "rows of " + std::to_string(tensor.dims.front()) + " elements",
               "a multiple of " + std::to_string(traits.block_elements) + " for " + std::string(traits.name));
    }
    tensor.elements = 1;
    for (const std::uint64_t dim : tensor.dims) tensor.elements = bounded_product(tensor.elements, dim, field);
    tensor.size_bytes = bounded_product(tensor.elements / traits.block_elements, traits.block_bytes, field);
}

void place_tensors(GgufHeader& header, std::uint64_t header_bytes, std::uint64_t file_size_bytes) {
    const std::uint64_t alignment = header.alignment_bytes;
    const std::uint64_t data_start = align_up(header_bytes, alignment);
    std::vector<GgufTensor*> by_offset;
    for (GgufTensor& tensor : header.tensors) {
        check_place(tensor, data_start, alignment, file_size_bytes);
        by_offset.push_back(&tensor);
    }
    std::stable_sort(by_offset.begin(), by_offset.end(),
                     [](const GgufTensor* a, const GgufTensor* b) { return a->offset_bytes < b->offset_bytes; });
    std::uint64_t expected = 0;
    const GgufTensor* previous = nullptr;
    for (const GgufTensor* tensor : by_offset) {
        check_tiling(*tensor, previous, expected);
        expected = align_up(tensor->offset_bytes + tensor->size_bytes, alignment);
        previous = tensor;
    }
    if (file_size_bytes > data_start + expected) {
        refuse("end of the file", std::to_string(file_size_bytes - data_start - expected) + " bytes after the last tensor",
               "none");
    }
    for (GgufTensor& tensor : header.tensors) tensor.offset_bytes += data_start;
}

}  // namespace mimi

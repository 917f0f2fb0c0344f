// GgufFile: what a GGUF file holds, whatever it is of, and its tensors' rows as f32.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bindings/bindings.h"
#include "bindings/language_geometry.h"
#include "bindings/metadata_objects.h"
#include "lm/tensors.h"
#include "weights/dequantise.h"
#include "weights/gguf_reader.h"
#include "weights/metadata_arrays.h"
#include "weights/quoted_text.h"

namespace nb = nanobind;

namespace mimi {

namespace {

using FloatRows = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

nb::list file_tensors(const GgufReader& file) {
    nb::list out;
    for (const GgufTensor& tensor : file.tensors()) {
        nb::list dims;
        for (const std::uint64_t dim : tensor.dims) dims.append(dim);
        nb::dict entry;
        entry["name"] = tensor.name;
        entry["type"] = std::string(tensor_type_name(tensor.type));
        entry["dims"] = nb::tuple(dims);
        entry["offset_bytes"] = tensor.offset_bytes;
        entry["bytes"] = tensor.size_bytes;
        out.append(entry);
    }
    return out;
}

nb::object array_values(const GgufReader& file, const std::string& key) {
    const auto found = file.metadata().find(key);
    const auto* array = found == file.metadata().end() ? nullptr : std::get_if<GgufArray>(&found->second);
    if (array == nullptr) throw nb::key_error(key.c_str());
    if (static_cast<ValueType>(array->element_type) == ValueType::string) return nb::cast(*texts(file, key));
    const std::vector<std::byte> bytes = *number_bytes(file, key);
    return nb::bytes(bytes.data(), bytes.size());
}

const GgufTensor& named_tensor(const GgufReader& file, const std::string& name) {
    const GgufTensor* tensor = file.find(name);
    if (tensor == nullptr) throw Error(ErrorCode::setting, "tensor " + quoted(name), "no such tensor", "a tensor of the file");
    return *tensor;
}

FloatRows tensor_rows(const GgufReader& file, const std::string& name, std::uint64_t first_row, std::uint64_t rows) {
    const GgufTensor& tensor = named_tensor(file, name);
    const std::uint64_t row_elements = tensor.dims.front();
    const std::uint64_t all_rows = tensor.elements / row_elements;
    if (first_row > all_rows || rows > all_rows - first_row) {
        throw Error(ErrorCode::setting, "rows of tensor " + quoted(name),
                    std::to_string(rows) + " from row " + std::to_string(first_row), "within its " + std::to_string(all_rows));
    }
    auto values = std::make_unique<std::vector<float>>(static_cast<std::size_t>(rows * row_elements));
    {
        const nb::gil_scoped_release release;
        read_rows(file, tensor, first_row, rows, values->data());
    }
    float* data = values->data();
    nb::capsule owner(values.release(), [](void* kept) noexcept { delete static_cast<std::vector<float>*>(kept); });
    return FloatRows(data, {static_cast<std::size_t>(rows), static_cast<std::size_t>(row_elements)}, owner);
}

nb::bytes tensor_payload(const GgufReader& file, const std::string& name) {
    const GgufTensor& tensor = named_tensor(file, name);
    std::vector<std::byte> stored(static_cast<std::size_t>(tensor.size_bytes));
    {
        const nb::gil_scoped_release release;
        file.read(tensor, stored.data());
    }
    return nb::bytes(stored.data(), stored.size());
}

nb::dict check_language_model(const GgufReader& file) {
    LmGeometry geometry;
    {
        const nb::gil_scoped_release release;
        geometry = read_lm_geometry(file);
        const LmTensors tensors(file, geometry);
        for (const GgufTensor& tensor : file.tensors()) check_finite(file, tensor);
    }
    return lm_geometry_dict(geometry);
}

}  // namespace

void bind_gguf_file(nb::module_& module) {
    nb::class_<GgufReader>(
        module, "GgufFile",
        "A GGUF file whose header has been checked; of what it is, and whether that is complete, nothing is known.\n\n"
        "Raises ModelAccessError or ModelFormatError.")
        .def(nb::init<const std::string&>(), nb::arg("path"))
        .def_prop_ro("path", &GgufReader::path)
        .def_prop_ro("file_bytes", &GgufReader::file_size_bytes)
        .def_prop_ro(
            "tensors", &file_tensors, nb::sig("def tensors(self) -> list[dict[str, typing.Any]]"),
            "In the file's order: name, type, dims (fastest-varying first), offset_bytes (from the start of the file), "
            "bytes.")
        .def_prop_ro("metadata", &metadata_dict, nb::sig("def metadata(self) -> dict[str, typing.Any]"),
                     "Values as Python's own; an array as its element_type and count.")
        .def("array", &array_values, nb::arg("key"), nb::sig("def array(self, key: str) -> list[str] | bytes"),
             "The elements of an array: strings as such, numbers as the bytes they are in the file.")
        .def("payload", &tensor_payload, nb::arg("name"), "A tensor's payload as it lies in the file.")
        .def("rows", &tensor_rows, nb::arg("name"), nb::arg("first_row"), nb::arg("rows"),
             "Rows of a tensor of f32, f16, bf16, q8_0, q4_0 or q4_k as float32 [rows, dims[0]]; finite.");
    module.def("check_language_model", &check_language_model, nb::arg("file"),
               nb::sig("def check_language_model(file: GgufFile) -> dict[str, typing.Any]"),
               "Checks a language model's file completely, values included, and returns its sizes.\n\n"
               "Memory use does not grow with the file. Raises ModelContractError, ModelFormatError or ModelAccessError.");
}

}  // namespace mimi

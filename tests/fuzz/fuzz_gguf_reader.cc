// libFuzzer target: any bytes as a model file, through the reader, the geometry, the contract and the values. Only the errors
// that a file may cause may come of it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "fuzz_memory_file.h"
#include "model/contract.h"
#include "model/geometry.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_values.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const mimi_fuzz::MemoryFile file;
    file.fill(data, size);
    try {
        const mimi::GgufReader reader(file.path());
        const mimi::Geometry geometry = mimi::read_geometry(reader);
        mimi::check_contract(reader, geometry);
        for (const mimi::GgufTensor& tensor : reader.tensors()) mimi::read_values(reader, tensor);
    } catch (const mimi::Error& error) {
        if (!mimi_fuzz::may_come_of_a_file(error.code()) || error.subject().empty()) std::abort();
    }
    return 0;
}

// libFuzzer target: any bytes as a model file, through the reader, the geometry, the contract and the values. Only the three
// errors that a file may cause, and `unavailable` for a class this version does not run, may come of it.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "model/contract.h"
#include "model/geometry.h"
#include "weights/gguf_reader.h"
#include "weights/tensor_values.h"

namespace {

// A file in memory, written anew for each input.
class MemoryFile {
public:
    MemoryFile() : descriptor_(memfd_create("fuzzed", 0)) {
        if (descriptor_ < 0) std::abort();
    }
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
    void fill(const std::uint8_t* data, std::size_t size) const {
        if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) std::abort();
        if (pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
    }

private:
    int descriptor_;
};

bool may_come_of_a_file(mimi::ErrorCode code) {
    return code == mimi::ErrorCode::model_access || code == mimi::ErrorCode::model_format ||
           code == mimi::ErrorCode::model_contract || code == mimi::ErrorCode::unavailable;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const MemoryFile file;
    file.fill(data, size);
    try {
        const mimi::GgufReader reader(file.path());
        const mimi::Geometry geometry = mimi::read_geometry(reader);
        mimi::check_contract(reader, geometry);
        for (const mimi::GgufTensor& tensor : reader.tensors()) mimi::read_values(reader, tensor);
    } catch (const mimi::Error& error) {
        if (!may_come_of_a_file(error.code()) || error.subject().empty()) std::abort();
    }
    return 0;
}

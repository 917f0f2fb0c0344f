// A file in memory, written anew for each input.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace mimi_fuzz {

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

// The errors that a file may cause, and `unavailable` for a class this version does not run.
inline bool may_come_of_a_file(mimi::ErrorCode code) {
    return code == mimi::ErrorCode::model_access || code == mimi::ErrorCode::model_format ||
           code == mimi::ErrorCode::model_contract || code == mimi::ErrorCode::unavailable;
}

}  // namespace mimi_fuzz

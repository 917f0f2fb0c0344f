// Bytes of known length that can be read at any place: a file, or a buffer in a test or fuzzer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

class ByteSource {
public:
    virtual ~ByteSource() = default;
    virtual std::uint64_t size_bytes() const = 0;

    // Fills `destination` with bytes offset .. offset + size - 1. The caller has checked that they lie inside the source.
    // Throws Error{model_access} where they can no longer be had.
    virtual void read_at(std::uint64_t offset, void* destination, std::size_t size) const = 0;
};

}  // namespace mimi

// Long runs of a file for the tensor window, read into aligned room: the one place where a test puts faults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mimi {

// What direct I/O may ask of a place in memory and in the file. No file system in use asks for more.
constexpr std::size_t direct_alignment_bytes = 4096;

class ByteReader {
public:
    virtual ~ByteReader() = default;

    // Reads bytes offset .. offset + size - 1 into `room`, which is aligned to direct_alignment_bytes and has room_bytes(size)
    // bytes, and returns where in it the first of them lies. May be called by several threads at once, each with its own room.
    // Error{model_access} where the bytes cannot be had or the file is not as it was when it was opened.
    virtual const std::byte* read(std::uint64_t offset, std::size_t size, std::byte* room) const = 0;

    // Room for a run of `size` bytes wherever it starts.
    static constexpr std::size_t room_bytes(std::size_t size) {
        return (size + 2 * direct_alignment_bytes - 1) / direct_alignment_bytes * direct_alignment_bytes;
    }
};

}  // namespace mimi

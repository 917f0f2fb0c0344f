// Single rows of a file's tables, read as they are needed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "weights/byte_reader.h"

namespace mimi {

class RowReader {
public:
    explicit RowReader(std::unique_ptr<const ByteReader> reader) : reader_(std::move(reader)) {}

    // Bytes offset .. offset + size - 1 of the file, somewhere in `room`, which has room_bytes(size) bytes. Several threads may
    // read at once, each with its own room. Error{model_access} as of ByteReader::read().
    const std::byte* read(std::uint64_t offset, std::size_t size, std::byte* room) const {
        const auto address = reinterpret_cast<std::uintptr_t>(room);
        const std::uintptr_t aligned = (address + direct_alignment_bytes - 1) / direct_alignment_bytes * direct_alignment_bytes;
        const std::byte* found = reader_->read(offset, size, room + (aligned - address));
        rows_.fetch_add(1, std::memory_order_relaxed);
        bytes_.fetch_add(size, std::memory_order_relaxed);
        return found;
    }
    static constexpr std::size_t room_bytes(std::size_t size) { return ByteReader::room_bytes(size) + direct_alignment_bytes; }

    // Since it was made.
    std::uint64_t rows_read() const { return rows_.load(std::memory_order_relaxed); }
    std::uint64_t bytes_read() const { return bytes_.load(std::memory_order_relaxed); }

private:
    std::unique_ptr<const ByteReader> reader_;
    mutable std::atomic<std::uint64_t> rows_{0};
    mutable std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace mimi

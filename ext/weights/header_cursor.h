// Reads a GGUF header front to back from a bounded source. Every read states the field it is for; one that would pass the end
// of the source is an Error{model_format} naming that field, before anything is allocated for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weights/byte_source.h"

namespace mimi {

class HeaderCursor {
public:
    // Keeps a reference to `source`, which must outlive the cursor.
    explicit HeaderCursor(const ByteSource& source) : source_(source) {}

    std::uint64_t position_bytes() const { return position_; }
    std::uint64_t bytes_left() const { return source_.size_bytes() - position_; }

    // A little-endian number.
    template <typename Number>
    Number number(std::string_view field) {
        static_assert(std::is_arithmetic_v<Number>);
        Number value;
        read(&value, sizeof value, field);
        return value;
    }

    // A string: its length as u64, then that many bytes. Refuses more than `cap_bytes`, a length past the end of the source,
    // bytes that are not UTF-8, and NUL.
    std::string text(std::string_view field, std::uint64_t cap_bytes);

    void skip(std::uint64_t size, std::string_view field);

private:
    void require(std::uint64_t size, std::string_view field) const;
    void read(void* destination, std::size_t size, std::string_view field);

    const ByteSource& source_;
    std::uint64_t position_ = 0;
    std::vector<unsigned char> buffer_;  // bytes buffer_start_ .. of the source
    std::uint64_t buffer_start_ = 0;
};

}  // namespace mimi

#include "weights/header_cursor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace mimi {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are read as they lie in the file");

namespace {

constexpr std::uint64_t buffer_bytes = 64 * 1024;

// Length of the well-formed UTF-8 sequence at `text`, 0 where there is none: no overlong forms, surrogates, or values
// past U+10FFFF.
std::size_t utf8_sequence_length(std::string_view text) {
    const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
    const unsigned char second_low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char second_high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(1) < second_low || byte(1) > second_high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    }
    return length;
}

void require_clean_text(std::string_view text, std::string_view field) {
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_sequence_length(text.substr(i));
        if (length == 0) {
            throw Error(ErrorCode::model_format, std::string(field), "a byte that is not UTF-8 at index " + std::to_string(i),
                        "UTF-8 text");
        }
        if (text[i] == '\0') {
            throw Error(ErrorCode::model_format, std::string(field), "a NUL byte at index " + std::to_string(i),
                        "text without NUL");
        }
        i += length;
    }
}

}  // namespace

void HeaderCursor::require(std::uint64_t size, std::string_view field) const {
    if (size <= bytes_left()) return;
    throw Error(ErrorCode::model_format, std::string(field),
                "the end of the file at byte " + std::to_string(source_.size_bytes()),
                std::to_string(size) + " bytes from byte " + std::to_string(position_));
}

void HeaderCursor::read(void* destination, std::size_t size, std::string_view field) {
    require(size, field);
    auto* out = static_cast<unsigned char*>(destination);
    while (size > 0) {
        if (position_ < buffer_start_ || position_ >= buffer_start_ + buffer_.size()) {
            buffer_.resize(static_cast<std::size_t>(std::min(buffer_bytes, bytes_left())));
            buffer_start_ = position_;
            source_.read_at(position_, buffer_.data(), buffer_.size());
        }
        const auto start = static_cast<std::size_t>(position_ - buffer_start_);
        const std::size_t take = std::min(size, buffer_.size() - start);
        std::memcpy(out, buffer_.data() + start, take);
        out += take;
        size -= take;
        position_ += take;
    }
}

std::string HeaderCursor::text(std::string_view field, std::uint64_t cap_bytes) {
    const auto length = number<std::uint64_t>(field);
    if (length > cap_bytes) {
        throw Error(ErrorCode::model_format, std::string(field), "a length of " + std::to_string(length) + " bytes",
                    "at most " + std::to_string(cap_bytes));
    }
    require(length, field);
    std::string text(static_cast<std::size_t>(length), '\0');
    read(text.data(), text.size(), field);
    require_clean_text(text, field);
    return text;
}

void HeaderCursor::skip(std::uint64_t size, std::string_view field) {
    require(size, field);
    position_ += size;
}

}  // namespace mimi

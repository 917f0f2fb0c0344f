#include "weights/gguf_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

// Linux moves at most 2 GiB less a page in one call; staying under it keeps the loop the same everywhere.
constexpr std::size_t largest_read_bytes = std::size_t{1} << 30;

std::string_view kept_type_name(const GgufValue& value) {
    if (std::holds_alternative<GgufArray>(value)) return "an array";
    constexpr std::string_view names[] = {"an unsigned integer", "a signed integer", "a real number", "a bool", "a string"};
    return names[std::get<GgufScalar>(value).index()];
}

[[noreturn]] void refuse_value(std::string_view key, std::string_view found, std::string_view expected) {
    throw Error(ErrorCode::model_format, "key " + quoted(key), std::string(found), std::string(expected));
}

}  // namespace

GgufReader::File::File(const std::string& path) : path_(path) {
    constexpr std::string_view expected = "a readable regular file";
    if (path.find('\0') != std::string::npos) refuse_file_access(path, "a path with a NUL byte", std::string(expected));
    // Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor_ < 0) refuse_file_access(path, system_message(errno), std::string(expected));
    try {
        identity_ = identify_file(descriptor_, path_);
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

GgufReader::File::~File() {
    ::close(descriptor_);
}

void GgufReader::File::read_at(std::uint64_t offset, void* destination, std::size_t size) const {
    auto* out = static_cast<unsigned char*>(destination);
    while (size > 0) {
        const ssize_t got = ::pread(descriptor_, out, std::min(size, largest_read_bytes), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse_file_access(path_, system_message(errno), "a file that can be read");
        if (got == 0) {
            refuse_file_access(path_, "its end at byte " + std::to_string(offset),
                               "the " + std::to_string(identity_.size_bytes) + " bytes it had when it was opened");
        }
        out += got;
        offset += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
}

void GgufReader::File::require_unchanged() const {
    require_same_file(descriptor_, path_, identity_);
}

GgufReader::GgufReader(const std::string& path) : path_(path), file_(path), header_(parse_gguf_header(file_)) {
    file_.require_unchanged();
}

const GgufTensor* GgufReader::find(std::string_view name) const {
    const auto found = header_.index.find(name);
    return found == header_.index.end() ? nullptr : &header_.tensors[found->second];
}

const GgufScalar* GgufReader::scalar(std::string_view key, std::string_view expected) const {
    const auto found = header_.metadata.find(key);
    if (found == header_.metadata.end()) return nullptr;
    const auto* value = std::get_if<GgufScalar>(&found->second);
    if (value == nullptr) refuse_value(key, kept_type_name(found->second), expected);
    return value;
}

std::optional<std::uint64_t> GgufReader::unsigned_integer(std::string_view key) const {
    constexpr std::string_view expected = "an integer that is not negative";
    const GgufScalar* value = scalar(key, expected);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<std::uint64_t>(value)) return *number;
    const auto* number = std::get_if<std::int64_t>(value);
    if (number == nullptr) refuse_value(key, kept_type_name(*value), expected);
    if (*number < 0) refuse_value(key, std::to_string(*number), expected);
    return static_cast<std::uint64_t>(*number);
}

std::optional<double> GgufReader::real(std::string_view key) const {
    constexpr std::string_view expected = "a real number";
    const GgufScalar* value = scalar(key, expected);
    if (value == nullptr) return std::nullopt;
    const auto* number = std::get_if<double>(value);
    if (number == nullptr) refuse_value(key, kept_type_name(*value), expected);
    return *number;
}

std::optional<std::string> GgufReader::text(std::string_view key) const {
    constexpr std::string_view expected = "a string";
    const GgufScalar* value = scalar(key, expected);
    if (value == nullptr) return std::nullopt;
    const auto* content = std::get_if<std::string>(value);
    if (content == nullptr) refuse_value(key, kept_type_name(*value), expected);
    return *content;
}

std::optional<bool> GgufReader::boolean(std::string_view key) const {
    constexpr std::string_view expected = "a bool";
    const GgufScalar* value = scalar(key, expected);
    if (value == nullptr) return std::nullopt;
    const auto* content = std::get_if<bool>(value);
    if (content == nullptr) refuse_value(key, kept_type_name(*value), expected);
    return *content;
}

std::optional<std::vector<std::uint64_t>> GgufReader::unsigned_integers(std::string_view key, std::uint64_t most) const {
    constexpr std::string_view expected = "an array of integers that are not negative";
    const auto found = header_.metadata.find(key);
    if (found == header_.metadata.end()) return std::nullopt;
    const auto* array = std::get_if<GgufArray>(&found->second);
    if (array == nullptr) refuse_value(key, kept_type_name(found->second), expected);
    const auto type = static_cast<ValueType>(array->element_type);
    const bool is_signed = type == ValueType::i8 || type == ValueType::i16 || type == ValueType::i32 || type == ValueType::i64;
    if (!is_signed && type != ValueType::u8 && type != ValueType::u16 && type != ValueType::u32 && type != ValueType::u64)
        refuse_value(key, "an array of " + std::string(value_type_name(array->element_type)), expected);
    if (array->count > most) refuse_value(key, std::to_string(array->count) + " values", "at most " + std::to_string(most));
    const std::size_t size = static_cast<std::size_t>(value_type_bytes(type));
    std::vector<unsigned char> bytes(static_cast<std::size_t>(array->count) * size);
    file_.read_at(array->offset_bytes, bytes.data(), bytes.size());
    file_.require_unchanged();
    std::vector<std::uint64_t> values(static_cast<std::size_t>(array->count));
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t byte = size; byte-- > 0;) values[i] = values[i] << 8 | bytes[i * size + byte];
        if (is_signed && bytes[(i + 1) * size - 1] >= 0x80) refuse_value(key, "a negative value", expected);
    }
    return values;
}

void GgufReader::read(const GgufTensor& tensor, void* destination) const {
    read_part(tensor, 0, static_cast<std::size_t>(tensor.size_bytes), destination);
}

void GgufReader::read_part(const GgufTensor& tensor, std::uint64_t start_bytes, std::size_t size_bytes,
                           void* destination) const {
    if (start_bytes > tensor.size_bytes || size_bytes > tensor.size_bytes - start_bytes) {
        throw Error(ErrorCode::internal, "tensor " + quoted(tensor.name), "a read past its end", "a read inside its payload");
    }
    file_.read_at(tensor.offset_bytes + start_bytes, destination, size_bytes);
    file_.require_unchanged();
}

}  // namespace mimi

// Recognises what people pass by mistake where a GGUF file belongs, to say so instead of "bad magic".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mimi {

// `found` and `expected` of the error to raise. `found` is never empty.
struct ForeignFormat {
    std::string found;
    std::string expected;  // names the remedy where there is one
};

// `head` holds the file's first bytes (512 are plenty), which do not start with GGUF's magic.
ForeignFormat describe_foreign_format(std::string_view head, std::uint64_t file_size_bytes);

}  // namespace mimi

#include "codec/code_range.h"

#include <string>

#include "base/error.h"

namespace mimi {

void require_codes_in_range(const std::int32_t* codes, std::size_t levels, std::size_t entries, const char* owner,
                            std::size_t index) {
    for (std::size_t level = 0; level < levels; ++level)
        if (codes[level] < 0 || static_cast<std::size_t>(codes[level]) >= entries)
            throw Error(ErrorCode::code_range,
                        "code at level " + std::to_string(level) + " of " + owner + " " + std::to_string(index),
                        std::to_string(codes[level]), "0 .. " + std::to_string(entries - 1));
}

}  // namespace mimi

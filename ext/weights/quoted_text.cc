#include "weights/quoted_text.h"

namespace mimi {

std::string quoted(std::string_view text) {
    constexpr std::size_t shown_bytes = 100;
    constexpr char digits[] = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text.substr(0, shown_bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            out += c;
        } else {
            out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
    }
    if (text.size() > shown_bytes) out += "...";
    return out + "'";
}

}  // namespace mimi

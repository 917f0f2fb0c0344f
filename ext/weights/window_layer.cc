#include "weights/window_layer.h"

#include <algorithm>

namespace mimi {

std::vector<WindowChunk> cut_into_chunks(const std::vector<WindowPart>& parts) {
    std::vector<WindowChunk> chunks;
    std::size_t packed_offset = 0;
    for (const WindowPart& part : parts) {
        const auto stored = static_cast<std::size_t>(part.tensor->size_bytes);
        const std::size_t unit = part.packer->stored_unit_bytes();
        const std::size_t most = std::max(unit, chunk_bytes / unit * unit);
        for (std::size_t start = 0; start < stored; start += most)
            chunks.push_back(
                {part.packer, part.tensor->offset_bytes + start, start, std::min(most, stored - start), packed_offset});
        packed_offset += part.packer->packed_bytes();
    }
    return chunks;
}

std::size_t packed_layer_bytes(const std::vector<WindowPart>& parts) {
    std::size_t bytes = 0;
    for (const WindowPart& part : parts) bytes += part.packer->packed_bytes();
    return bytes;
}

}  // namespace mimi

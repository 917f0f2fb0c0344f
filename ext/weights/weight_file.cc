#include "weights/weight_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace mimi {

namespace {

constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

std::uint64_t round_down(std::uint64_t offset) {
    return offset / direct_alignment_bytes * direct_alignment_bytes;
}
std::uint64_t round_up(std::uint64_t offset) {
    return round_down(offset + direct_alignment_bytes - 1);
}

}  // namespace

WeightFile::WeightFile(const std::string& path, const FileIdentity& identity, PageCache page_cache)
    : path_(path), identity_(identity), release_(page_cache == PageCache::bypass) {
    open(page_cache);
    try {
        require_same_file(descriptor_, path_, identity_);
        if (direct_) {
            // Some file systems grant the flag and then refuse every read.
            alignas(direct_alignment_bytes) std::byte probe[direct_alignment_bytes];
            direct_ = ::pread(descriptor_, probe, sizeof probe, 0) >= 0;
            if (!direct_) {
                ::close(descriptor_);
                open(PageCache::keep);
                require_same_file(descriptor_, path_, identity_);
            }
        }
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

WeightFile::~WeightFile() {
    ::close(descriptor_);
}

void WeightFile::open(PageCache page_cache) {
    descriptor_ = -1;
#ifdef O_DIRECT
    if (page_cache == PageCache::bypass) descriptor_ = ::open(path_.c_str(), open_flags | O_DIRECT);
    direct_ = descriptor_ >= 0;
#endif
    if (descriptor_ < 0) descriptor_ = ::open(path_.c_str(), open_flags);
    if (descriptor_ < 0) refuse_file_access(path_, system_message(errno), "a readable regular file");
    // Advice: where it is not taken, more is read than was asked for.
    if (page_cache == PageCache::sparse) static_cast<void>(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM));
}

const std::byte* WeightFile::read(std::uint64_t offset, std::size_t size, std::byte* room) const {
    const std::uint64_t begin = direct_ ? round_down(offset) : offset;
    const std::size_t skipped = static_cast<std::size_t>(offset - begin);
    const std::uint64_t end = direct_ ? round_up(offset + size) : offset + size;
    read_aligned(begin, skipped + size, static_cast<std::size_t>(end - begin), room);
    if (release_ && !direct_) release_pages(offset, size);
    require_same_file(descriptor_, path_, identity_);
    return room + skipped;
}

// Reads up to `size` bytes, of which the first `wanted` must be there: the file may end within the last block.
void WeightFile::read_aligned(std::uint64_t begin, std::size_t wanted, std::size_t size, std::byte* room) const {
    std::size_t done = 0;
    while (done < wanted) {
        const ssize_t got = ::pread(descriptor_, room + done, size - done, static_cast<off_t>(begin + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse_file_access(path_, system_message(errno), "a file that can be read");
        const std::size_t reached = done + static_cast<std::size_t>(got);
        // Direct I/O can only go on from a whole block; what lies behind the last one is read again.
        const std::size_t next = direct_ && reached < wanted ? static_cast<std::size_t>(round_down(reached)) : reached;
        if (next <= done)
            refuse_file_access(path_, "its end at byte " + std::to_string(begin + reached),
                               "the " + std::to_string(identity_.size_bytes) + " bytes it had when it was opened");
        done = next;
    }
}

// Whole pages only: the ends of a run share theirs with its neighbours, which are yet to be read.
void WeightFile::release_pages(std::uint64_t offset, std::size_t size) const {
    const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t begin = (offset + page_bytes - 1) / page_bytes * page_bytes;
    const std::uint64_t end = (offset + size) / page_bytes * page_bytes;
    // Advice: where it is not taken the budget still holds for this process, though not for the system's cache.
    if (begin < end)
        static_cast<void>(
            ::posix_fadvise(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED));
}

}  // namespace mimi

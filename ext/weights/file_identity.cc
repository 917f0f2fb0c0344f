#include "weights/file_identity.h"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "weights/quoted_text.h"

namespace mimi {

namespace {

std::string_view kind_name(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

}  // namespace

void refuse_file_access(const std::string& path, std::string found, std::string expected) {
    throw Error(ErrorCode::model_access, "model file " + quoted(path), std::move(found), std::move(expected));
}

std::string system_message(int number) {
    return std::generic_category().message(number);
}

FileIdentity identify_file(int descriptor, const std::string& path) {
    struct stat status = {};
    if (::fstat(descriptor, &status) != 0) refuse_file_access(path, system_message(errno), "a file whose status can be read");
    if (!S_ISREG(status.st_mode)) refuse_file_access(path, std::string(kind_name(status.st_mode)), "a readable regular file");
    return {
        .device = static_cast<std::uint64_t>(status.st_dev),
        .inode = static_cast<std::uint64_t>(status.st_ino),
        .size_bytes = static_cast<std::uint64_t>(status.st_size),
        .modified_ns = static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec,
    };
}

void require_same_file(int descriptor, const std::string& path, const FileIdentity& before) {
    const FileIdentity now = identify_file(descriptor, path);
    if (now.device != before.device || now.inode != before.inode)
        refuse_file_access(path, "another file than the one that was opened first", "a file that stays as it is");
    if (now.size_bytes != before.size_bytes)
        refuse_file_access(path, "a size of " + std::to_string(now.size_bytes) + " bytes",
                           "the " + std::to_string(before.size_bytes) + " bytes it had when it was opened");
    if (now.modified_ns != before.modified_ns) refuse_file_access(path, "modified while in use", "a file that stays as it is");
}

}  // namespace mimi

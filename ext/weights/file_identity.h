// What tells one state of an open file from another: where it lies, its size and the time of its last change.
#pragma once

#include <cstdint>
#include <string>

namespace mimi {

struct FileIdentity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t size_bytes = 0;
    std::int64_t modified_ns = 0;
};

// Of an open regular file; `path` is what messages call it. Error{model_access} where its status cannot be read, or it is no
// regular file.
FileIdentity identify_file(int descriptor, const std::string& path);

// Error{model_access} saying what has changed where the open file is no longer as `before`. That another file now has its path
// is no change: what is open stays as it was.
void require_same_file(int descriptor, const std::string& path, const FileIdentity& before);

// Error{model_access} about the file at `path`.
[[noreturn]] void refuse_file_access(const std::string& path, std::string found, std::string expected);

// What the system calls an error number.
std::string system_message(int number);

}  // namespace mimi

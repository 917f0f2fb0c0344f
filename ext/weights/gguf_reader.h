// A GGUF v3 file: its bytes to named, bounds-checked tensor ranges and typed metadata. Trusts nothing in the file: every count,
// length, type, dimension and offset is checked against the file's size before it is used, and nothing is allocated past that
// size. Payloads are read with pread into the caller's memory, never through a mapping: a file that shrinks or changes while it
// is in use is an error, not a signal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/file_identity.h"
#include "weights/gguf_format.h"
#include "weights/gguf_header.h"

namespace mimi {

// Immutable once constructed; const calls may run on several threads.
class GgufReader {
public:
    // Opens a regular file (or a link to one) and reads its header. Throws Error{model_access} where the file cannot be opened,
    // is no regular file or changes meanwhile, Error{model_format} naming the field, found and expected where the header lies.
    explicit GgufReader(const std::string& path);

    const std::string& path() const { return path_; }
    std::uint64_t file_size_bytes() const { return file_.size_bytes(); }
    const std::vector<GgufTensor>& tensors() const { return header_.tensors; }
    const std::map<std::string, GgufValue, std::less<>>& metadata() const { return header_.metadata; }

    // The file as it was when it was opened.
    const FileIdentity& identity() const { return file_.identity(); }

    // nullptr where there is no such tensor. Valid as long as the reader.
    const GgufTensor* find(std::string_view name) const;

    // nullopt where the key is absent; Error{model_format} where it has another type. `unsigned_integer` accepts any integer
    // type whose value is not negative; `real` accepts f32 and f64.
    std::optional<std::uint64_t> unsigned_integer(std::string_view key) const;
    std::optional<double> real(std::string_view key) const;
    std::optional<std::string> text(std::string_view key) const;
    std::optional<bool> boolean(std::string_view key) const;
    // An array of any integer type, none of them negative. Error{model_format} also where there are more than `most` of them.
    std::optional<std::vector<std::uint64_t>> unsigned_integers(std::string_view key, std::uint64_t most) const;

    // Reads the tensor's payload into `destination` (tensor.size_bytes bytes). Error{model_access} where the file has shrunk
    // or was modified since it was opened.
    void read(const GgufTensor& tensor, void* destination) const;

    // The same for `size_bytes` bytes of the payload from its byte `start_bytes`; both must lie inside the payload.
    void read_part(const GgufTensor& tensor, std::uint64_t start_bytes, std::size_t size_bytes, void* destination) const;

    // The whole file, for who reads of its header; they call require_unchanged() before they believe what they read.
    const ByteSource& bytes() const { return file_; }
    void require_unchanged() const { file_.require_unchanged(); }

private:
    // The open descriptor, with the size and time of change it had when it was opened.
    class File : public ByteSource {
    public:
        explicit File(const std::string& path);
        ~File() override;
        File(const File&) = delete;
        File& operator=(const File&) = delete;
        std::uint64_t size_bytes() const override { return identity_.size_bytes; }
        const FileIdentity& identity() const { return identity_; }
        void read_at(std::uint64_t offset, void* destination, std::size_t size) const override;
        void require_unchanged() const;

    private:
        std::string path_;
        int descriptor_ = -1;
        FileIdentity identity_;
    };

    const GgufScalar* scalar(std::string_view key, std::string_view expected) const;

    std::string path_;
    File file_;
    GgufHeader header_;
};

}  // namespace mimi

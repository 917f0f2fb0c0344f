// A model file opened once more, for the payloads alone.
#pragma once

#include <string>

#include "weights/byte_reader.h"
#include "weights/file_identity.h"

namespace mimi {

// What becomes of the system's copy of what is read.
enum class PageCache {
    keep,    // the next process that opens the file will be glad of it
    sparse,  // the same for reads here and there: nothing is read ahead
    bypass,  // none is made where the file system allows it (direct I/O); elsewhere it is released as soon as it was read
};

class WeightFile : public ByteReader {
public:
    // Opens the file at `path`, which must still be the one that `identity` tells. Error{model_access}.
    WeightFile(const std::string& path, const FileIdentity& identity, PageCache page_cache);
    ~WeightFile() override;
    WeightFile(const WeightFile&) = delete;
    WeightFile& operator=(const WeightFile&) = delete;

    const std::byte* read(std::uint64_t offset, std::size_t size, std::byte* room) const override;

    // Whether the system's page cache is left out altogether.
    bool is_direct() const { return direct_; }

private:
    void open(PageCache page_cache);
    void read_aligned(std::uint64_t begin, std::size_t wanted, std::size_t size, std::byte* room) const;
    void release_pages(std::uint64_t offset, std::size_t size) const;

    std::string path_;
    FileIdentity identity_;
    bool release_;
    bool direct_ = false;
    int descriptor_ = -1;
};

}  // namespace mimi

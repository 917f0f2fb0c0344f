#include "weights/foreign_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "weights/quoted_text.h"

namespace mimi {

namespace {

struct Signature {
    std::string_view prefix;  // lower case where it is text
    std::string_view found;
    std::string_view expected;
};

using namespace std::string_view_literals;

constexpr std::string_view web_page_remedy = "a GGUF file: the address led to a web page, download the file itself";
constexpr std::string_view pickle_remedy = "a GGUF file: convert the checkpoint's .safetensors form with `mimi convert`";
constexpr std::string_view unpack_remedy = "a GGUF file: unpack it first";

constexpr std::array signatures = {
    Signature{"<!doctype", "an HTML page", web_page_remedy},
    Signature{"<html", "an HTML page", web_page_remedy},
    Signature{"<?xml", "an XML page", web_page_remedy},
    Signature{"version https://git-lfs", "a git-lfs pointer",
              "a GGUF file: fetch the content it points to with `git lfs pull`"},
    Signature{"pk\x03\x04"sv, "a zip archive (PyTorch checkpoints are zip archives)", pickle_remedy},
    Signature{"\x80\x02"sv, "a Python pickle", pickle_remedy},
    Signature{"\x1f\x8b"sv, "gzip data", unpack_remedy},
    Signature{"\x28\xb5\x2f\xfd"sv, "zstd data", unpack_remedy},
    Signature{"fugg", "a byte-swapped GGUF file", "a little-endian GGUF file"},
    Signature{"tjgg", "a ggml file older than GGUF", "a GGUF file, version 3"},
    Signature{"lmgg", "a ggml file older than GGUF", "a GGUF file, version 3"},
};

std::string lower_case(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return out;
}

bool looks_like_safetensors(std::string_view head, std::uint64_t file_size_bytes) {
    std::uint64_t json_bytes = 0;
    if (head.size() <= sizeof json_bytes) return false;
    std::memcpy(&json_bytes, head.data(), sizeof json_bytes);
    return json_bytes <= file_size_bytes && head[sizeof json_bytes] == '{';
}

}  // namespace

ForeignFormat describe_foreign_format(std::string_view head, std::uint64_t file_size_bytes) {
    if (head.empty()) return {"an empty file", "a GGUF file"};
    if (looks_like_safetensors(head, file_size_bytes)) {
        return {"a safetensors checkpoint", "a GGUF file: make one with `mimi convert CHECKPOINT -o MODEL.gguf`"};
    }
    std::string_view body = head;
    if (body.starts_with("\xef\xbb\xbf")) body.remove_prefix(3);
    body.remove_prefix(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
    const std::string lowered = lower_case(body.substr(0, 32));
    for (const Signature& signature : signatures) {
        if (lowered.starts_with(signature.prefix)) return {std::string(signature.found), std::string(signature.expected)};
    }
    return {"bytes " + quoted(head.substr(0, 4)), "'GGUF'"};
}

}  // namespace mimi

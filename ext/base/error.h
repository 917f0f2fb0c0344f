// The engine's one exception type. Every refusal names what is wrong, what was found and what would be right, and carries
// one code of the shared error tree: `codec_core/errors.py` draws the tree, the bindings map code to class one to one.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace mimi {

enum class ErrorCode {
    model_access,      // the file cannot be opened or read, or changed while it was read
    model_format,      // the bytes are not a well-formed GGUF file
    model_contract,    // well-formed, but not a Mimi model this engine runs
    input_shape,       // an argument with the wrong number of dimensions, length or count
    non_finite_input,  // NaN or infinity in PCM
    code_range,        // a code outside 0 .. codebook_entries - 1
    setting,           // a setting outside its legal values
    unavailable,       // legal, but not on this machine or in this build
    snapshot,          // a snapshot that is damaged or belongs to another model
    session_busy,      // a session entered by a second thread
    session_closed,    // a session used after close()
    numeric_overflow,  // finite input drove the network out of the range of f32
    internal,          // a broken promise of ours; please report
};

// Snake-case name of the code, as used in Python, on the wire and in metrics.
std::string_view error_code_name(ErrorCode code);

class Error : public std::runtime_error {
public:
    // `subject` names the tensor, key, argument or field; `found` and `expected` may be empty where they say nothing more.
    // what() reads "subject: found X, expected Y".
    Error(ErrorCode code, std::string subject, std::string found, std::string expected);

    ErrorCode code() const { return code_; }
    const std::string& subject() const { return subject_; }
    const std::string& found() const { return found_; }
    const std::string& expected() const { return expected_; }

private:
    ErrorCode code_;
    std::string subject_;
    std::string found_;
    std::string expected_;
};

}  // namespace mimi

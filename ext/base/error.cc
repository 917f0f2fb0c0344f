#include "base/error.h"

#include <utility>

namespace mimi {

namespace {

std::string compose_message(const std::string& subject, const std::string& found, const std::string& expected) {
    std::string message = subject;
    if (!found.empty()) message += ": found " + found;
    if (!expected.empty()) message += (found.empty() ? ": expected " : ", expected ") + expected;
    return message;
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::model_access: return "model_access";
        case ErrorCode::model_format: return "model_format";
        case ErrorCode::model_contract: return "model_contract";
        case ErrorCode::input_shape: return "input_shape";
        case ErrorCode::non_finite_input: return "non_finite_input";
        case ErrorCode::code_range: return "code_range";
        case ErrorCode::setting: return "setting";
        case ErrorCode::unavailable: return "unavailable";
        case ErrorCode::snapshot: return "snapshot";
        case ErrorCode::session_busy: return "session_busy";
        case ErrorCode::session_closed: return "session_closed";
        case ErrorCode::numeric_overflow: return "numeric_overflow";
        case ErrorCode::internal: return "internal";
    }
    return "internal";
}

Error::Error(ErrorCode code, std::string subject, std::string found, std::string expected)
    : std::runtime_error(compose_message(subject, found, expected)),
      code_(code),
      subject_(std::move(subject)),
      found_(std::move(found)),
      expected_(std::move(expected)) {}

}  // namespace mimi

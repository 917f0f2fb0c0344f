#include "layers/overflow.h"

#include <string>

#include "base/error.h"

namespace mimi {

void refuse_overflow(const char* what, std::size_t lane) {
    throw Error(ErrorCode::numeric_overflow, std::string(what) + " of lane " + std::to_string(lane),
                "a value that is not finite", "input within about -1 .. 1");
}

}  // namespace mimi

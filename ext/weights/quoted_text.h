// Text that came out of a file, made safe to show: a hostile name may neither forge a log line nor break a terminal.
#pragma once

#include <string>
#include <string_view>

namespace mimi {

// The text in single quotes; bytes outside printable ASCII as \xNN, cut after 100 bytes with "..." to say so.
std::string quoted(std::string_view text);

}  // namespace mimi

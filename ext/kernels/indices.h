// Numbers as a parameter pack, of which a loop can be written out. The standard's own would bring its library into the units of
// one instruction set.
#pragma once

#include <cstddef>

namespace mimi {

// Whether loops over registers are written out. Not where sanitizers watch every access: compiling that would take many
// minutes.
#ifdef MIMI_SANITIZED
inline constexpr bool written_out = false;
#else
inline constexpr bool written_out = true;
#endif

template <std::size_t... Index>
struct Indices {};

// 0 .. Count - 1, as `type`.
template <std::size_t Count, std::size_t... Index>
struct IndicesBelow : IndicesBelow<Count - 1, Count - 1, Index...> {};

template <std::size_t... Index>
struct IndicesBelow<0, Index...> {
    using type = Indices<Index...>;
};

}  // namespace mimi

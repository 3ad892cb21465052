// The byte-level alphabet of GPT-2: each byte written as one printable character, so that a
// vocabulary of bytes can be kept as text. Printable ASCII and most of Latin-1 stand for
// themselves, the other 68 bytes are U+0100 to U+0143 in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vivace {

// The bytes that `token` writes; nullopt if a character of it is not in the alphabet.
std::optional<std::string> BytesFromAlphabet(std::string_view token);

// The other way round.
std::string AlphabetFromBytes(std::string_view bytes);

}  // namespace vivace

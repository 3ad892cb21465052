#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace vivace {
namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kFirstShifted = 0x100;
constexpr int kAlphabetEnd = 0x144;

struct Tables {
  std::array<char16_t, 256> character{};
  std::array<int16_t, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr Tables kTables = [] {
  Tables tables;
  tables.byte.fill(-1);
  int next = kFirstShifted;
  for (int byte = 0; byte < 256; ++byte) {
    const int c = StandsForItself(byte) ? byte : next++;
    tables.character[byte] = static_cast<char16_t>(c);
    tables.byte[c] = static_cast<int16_t>(byte);
  }
  return tables;
}();

}  // namespace

std::optional<std::string> BytesFromAlphabet(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (size_t pos = 0; pos < token.size();) {
    const utf8::Decoded c = utf8::Decode(token, pos);
    if (!c.valid || c.code_point >= kAlphabetEnd || kTables.byte[c.code_point] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kTables.byte[c.code_point]));
    pos += c.length;
  }
  return bytes;
}

std::string AlphabetFromBytes(std::string_view bytes) {
  std::string token;
  token.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    utf8::Append(kTables.character[static_cast<unsigned char>(byte)], &token);
  }
  return token;
}

}  // namespace vivace

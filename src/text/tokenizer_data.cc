#include "text/tokenizer_data.h"

namespace vivace {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::array<std::string, 2>> ParseMerge(std::string_view line, size_t rank) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    return Fail(ErrorCode::kCorruptData, "bad_merge", "merges",
                "merge {} is not two tokens with one space between them", rank);
  }
  return std::array{std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

std::optional<uint8_t> ParseByteToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = HexDigit(token[3]), low = HexDigit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high << 4 | low);
}

}  // namespace vivace

// Words of the template language, as the lexer hands them to the parser.
#pragma once

#include <cstdint>
#include <string_view>

namespace vivace::jinja {

enum class TokenType : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenType type = TokenType::kEnd;
  uint32_t line = 1;
  std::string_view text;  // data, name, operator, or the string's value; owned by the Ast
  uint64_t integer = 0;   // up to 2^63: the parser needs the magnitude of the smallest int64
  double real = 0;

  bool is(TokenType t, std::string_view s) const { return type == t && text == s; }
  bool is_name(std::string_view s) const { return is(TokenType::kName, s); }
  bool is_op(std::string_view s) const { return is(TokenType::kOperator, s); }
};

}  // namespace vivace::jinja

#include "grammar/ebnf.h"

#include <fmt/format.h>

namespace vivace::grammar {
namespace {

std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out = "(";
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += between;
    out += parts[i];
  }
  return out + ")";
}

}  // namespace

std::string Literal(std::string_view utf8) {
  std::string out = "\"";
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Seq(const std::vector<std::string>& parts) {
  if (parts.empty()) return std::string(kEmptyExpression);
  return parts.size() == 1 ? parts[0] : Join(parts, " ");
}

std::string Either(const std::vector<std::string>& options) {
  return options.size() == 1 ? options[0] : Join(options, " | ");
}

std::string Optional(std::string_view expression) { return fmt::format("({})?", expression); }

std::string Repeat(std::string_view expression, int64_t min, int64_t max) {
  if (max == 0) return std::string(kEmptyExpression);
  if (min == 1 && max == 1) return std::string(expression);
  if (min == 0 && max == 1) return Optional(expression);
  if (max == kUnbounded) {
    if (min == 0) return fmt::format("({})*", expression);
    if (min == 1) return fmt::format("({})+", expression);
    return fmt::format("({}){{{},}}", expression, min);
  }
  return fmt::format("({}){{{},{}}}", expression, min, max);
}

std::string EbnfWriter::Reserve(std::string_view hint) {
  return fmt::format("{}_{}", hint, next_++);
}

void EbnfWriter::Define(std::string_view name, std::string_view body) {
  fmt::format_to(std::back_inserter(text_), "{} ::= {}\n", name, body);
}

}  // namespace vivace::grammar

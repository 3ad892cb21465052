#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

// Longest first, so that the first match is the right one.
constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

// CRLF and CR become LF; one final newline is dropped.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool IsWordByte(char c) {
  return IsDigit(c) || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
         static_cast<uint8_t>(c) >= 0x80;
}
int DigitValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

class Lexer {
 public:
  Lexer(std::string_view source, Ast& ast) : ast_(ast) {
    ast_.source = NormalizeNewlines(source);
    text_ = ast_.source;
  }

  std::vector<Token> Run() {
    while (pos_ < text_.size()) LexRoot();
    tokens_.push_back({TokenType::kEnd, line_, {}, 0, 0});
    return std::move(tokens_);
  }

 private:
  bool At(std::string_view word) const { return text_.substr(pos_, word.size()) == word; }
  char Peek(size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  void Push(TokenType type, std::string_view text) { tokens_.push_back({type, line_, text, 0, 0}); }

  // Moves to `end`, keeping count of lines and of whether the next data starts a line.
  void MoveTo(size_t end) {
    const std::string_view passed = text_.substr(pos_, end - pos_);
    line_ += static_cast<uint32_t>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) line_starting_ = passed.back() == '\n';
    pos_ = end;
  }

  size_t FindTag(size_t from) const {
    for (size_t at = text_.find('{', from); at != std::string_view::npos;
         at = text_.find('{', at + 1)) {
      const char next = at + 1 < text_.size() ? text_[at + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return at;
    }
    return text_.size();
  }

  // Data before a tag, less what the tag's sign or lstrip_blocks takes away.
  std::string_view Trimmed(std::string_view data, char sign, bool is_variable) const {
    if (sign == '-') return data.substr(0, StripRightOffset(data));
    if (sign == '+' || is_variable) return data;
    const size_t newline = data.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return data;
    const bool blank = StripRightOffset(data.substr(line_begin)) == 0;
    return blank ? data.substr(0, line_begin) : data;
  }

  void LexRoot() {
    const size_t tag = FindTag(pos_);
    if (tag == text_.size()) {
      Push(TokenType::kData, text_.substr(pos_));
      MoveTo(tag);
      return;
    }
    const char kind = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    const std::string_view data = Trimmed(text_.substr(pos_, tag - pos_), sign, kind == '{');
    if (!data.empty()) Push(TokenType::kData, data);
    MoveTo(tag);
    MoveTo(tag + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (kind == '#') return LexComment();
    if (kind == '%' && LexRaw()) return;
    Push(kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin, {});
    LexTag(kind == '{' ? "}}" : "%}");
  }

  // The length of a closing tag at `at` with its sign and the white space it takes; 0 if none.
  size_t ClosingLength(size_t at, std::string_view close, bool is_block) const {
    const std::string_view rest = text_.substr(at);
    if (rest.starts_with('-') && rest.substr(1).starts_with(close)) {
      const size_t after = 1 + close.size();
      return after + StripLeftOffset(rest.substr(after));
    }
    if (is_block && rest.starts_with('+') && rest.substr(1).starts_with(close)) {
      return 1 + close.size();
    }
    if (!rest.starts_with(close)) return 0;
    const bool newline = is_block && rest.substr(close.size()).starts_with('\n');
    return close.size() + (newline ? 1 : 0);
  }

  void LexComment() {
    size_t end = text_.find("#}", pos_);
    if (end == std::string_view::npos) Raise(kSyntax, "a comment is never closed");
    if (end > pos_ && (text_[end - 1] == '-' || text_[end - 1] == '+')) --end;
    MoveTo(end + ClosingLength(end, "#}", true));
  }

  size_t SkipSpace(size_t at) const { return at + StripLeftOffset(text_.substr(at)); }

  // At `word` and its closing tag (after white space)? Then the offset past them, else 0.
  size_t MatchKeywordTag(size_t at, std::string_view word, bool trim_newline) const {
    at = SkipSpace(at);
    if (text_.substr(at, word.size()) != word) return 0;
    at = SkipSpace(at + word.size());
    const size_t length = ClosingLength(at, "%}", trim_newline);
    return length == 0 ? 0 : at + length;
  }

  // {% raw %}: everything up to {% endraw %} is data.
  bool LexRaw() {
    const size_t body = MatchKeywordTag(pos_, "raw", false);
    if (body == 0) return false;
    MoveTo(body);
    for (size_t tag = text_.find("{%", pos_); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 1)) {
      const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
      const size_t name = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      const size_t after = MatchKeywordTag(name, "endraw", true);
      if (after == 0) continue;
      const std::string_view data = Trimmed(text_.substr(pos_, tag - pos_), sign, false);
      if (!data.empty()) Push(TokenType::kData, data);
      MoveTo(after);
      return true;
    }
    Raise(kSyntax, "a raw block is never closed");
  }

  void LexTag(std::string_view close) {
    const bool is_block = close == "%}";
    std::string brackets;
    while (true) {
      if (brackets.empty()) {
        if (const size_t length = ClosingLength(pos_, close, is_block); length > 0) {
          Push(is_block ? TokenType::kBlockEnd : TokenType::kVariableEnd, {});
          MoveTo(pos_ + length);
          return;
        }
      }
      if (pos_ >= text_.size()) {
        Raise(kSyntax, "a tag opened before is never closed (expected '{}')", close);
      }
      if (const size_t space = StripLeftOffset(text_.substr(pos_)); space > 0) {
        MoveTo(pos_ + space);
      } else if (IsDigit(Peek())) {
        LexNumber();
      } else if (IsWordByte(Peek())) {
        LexName();
      } else if (Peek() == '\'' || Peek() == '"') {
        LexString();
      } else {
        LexOperator(brackets);
      }
    }
  }

  void LexName() {
    size_t end = pos_;
    while (end < text_.size() && IsWordByte(text_[end])) ++end;
    const std::string_view name = text_.substr(pos_, end - pos_);
    for (size_t at = 0; at < name.size();) {
      const char32_t code = NextCodePoint(name, at);
      if (code >= 0x80 && !IsAlnum(code)) Raise(kSyntax, "a name has a character it may not have");
    }
    Push(TokenType::kName, name);
    MoveTo(end);
  }

  void LexOperator(std::string& brackets) {
    const auto it = std::find_if(kOperators.begin(), kOperators.end(),
                                 [&](std::string_view op) { return At(op); });
    if (it == kOperators.end()) Raise(kSyntax, "unexpected character '{}'", text_.substr(pos_, 1));
    const char c = (*it)[0];
    if (c == '{' || c == '(' || c == '[') {
      brackets.push_back(c == '{' ? '}' : c == '(' ? ')' : ']');
    } else if (c == '}' || c == ')' || c == ']') {
      if (brackets.empty() || brackets.back() != c) Raise(kSyntax, "unexpected '{}'", c);
      brackets.pop_back();
    }
    Push(TokenType::kOperator, *it);
    MoveTo(pos_ + it->size());
  }

  // (\d+_)*\d+ from `at`: digits with single underscores between them.
  size_t DigitsEnd(size_t at) const {
    while (at < text_.size() &&
           (IsDigit(text_[at]) || (text_[at] == '_' && IsDigit(text_[at - 1]) &&
                                   at + 1 < text_.size() && IsDigit(text_[at + 1])))) {
      ++at;
    }
    return at;
  }
  bool DigitAt(size_t at) const { return at < text_.size() && IsDigit(text_[at]); }

  // The end of a float literal at the cursor, or 0: digits, then a fraction, an exponent or both.
  size_t FloatEnd() const {
    if (pos_ > 0 && text_[pos_ - 1] == '.') return 0;
    const size_t whole = DigitsEnd(pos_);
    size_t end = whole;
    if (end < text_.size() && text_[end] == '.' && DigitAt(end + 1)) end = DigitsEnd(end + 1);
    if (end < text_.size() && (text_[end] | 0x20) == 'e') {
      const char sign = end + 1 < text_.size() ? text_[end + 1] : '\0';
      const size_t digits = end + (sign == '+' || sign == '-' ? 2 : 1);
      if (DigitAt(digits)) end = DigitsEnd(digits);
    }
    return end == whole ? 0 : end;
  }

  void LexNumber() {
    Token token{TokenType::kFloat, line_, {}, 0, 0};
    if (const size_t end = FloatEnd(); end > 0) {
      std::string digits(text_.substr(pos_, end - pos_));
      std::erase(digits, '_');
      token.real = std::strtod(digits.c_str(), nullptr);
      tokens_.push_back(token);
      return MoveTo(end);
    }
    token.type = TokenType::kInteger;
    const char prefix = Peek() == '0' ? static_cast<char>(Peek(1) | 0x20) : '\0';
    const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    size_t end = base == 10 ? pos_ : pos_ + 2;
    const bool prefixed = base != 10 && DigitValue(Peek(2) == '_' ? Peek(3) : Peek(2)) < base;
    const int radix = prefixed ? base : 10;
    if (!prefixed) end = pos_;
    // A leading zero stands alone: 007 is three numbers to jinja2, and so a syntax error.
    const bool zero = !prefixed && Peek() == '0';
    constexpr uint64_t kMax = uint64_t{1} << 63;
    for (; end < text_.size(); ++end) {
      const char c = text_[end];
      const char next = end + 1 < text_.size() ? text_[end + 1] : '\0';
      if (c == '_' && DigitValue(next) < radix && (end > pos_)) continue;
      if (DigitValue(c) >= radix || (zero && c != '0')) break;
      token.integer =
          token.integer * static_cast<uint64_t>(radix) + static_cast<uint64_t>(DigitValue(c));
      if (token.integer > kMax) Raise(kBadArgument, "an integer literal is beyond 64 bits");
    }
    tokens_.push_back(token);
    MoveTo(end);
  }

  void LexString() {
    const char quote = Peek();
    size_t end = pos_ + 1;
    bool escaped = false;
    while (end < text_.size() && text_[end] != quote) {
      if (text_[end] == '\\') {
        escaped = true;
        ++end;
      }
      ++end;
    }
    if (end >= text_.size()) Raise(kSyntax, "a string is never closed");
    std::string_view value = text_.substr(pos_ + 1, end - pos_ - 1);
    if (escaped) value = ast_.literals.emplace_back(Unescape(value));
    Push(TokenType::kString, value);
    MoveTo(end + 1);
  }

  // Python's "unicode-escape" decoding.
  static std::string Unescape(std::string_view raw) {
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out.push_back(raw[i]);
        continue;
      }
      const char c = raw[++i];
      if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
        out.push_back(kTo[simple]);
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        char32_t code = 0;
        size_t digits = 0;
        while (digits < 3 && i + digits < raw.size() && raw[i + digits] >= '0' &&
               raw[i + digits] <= '7') {
          code = code * 8 + static_cast<char32_t>(raw[i + digits++] - '0');
        }
        AppendUtf8(code, out);
        i += digits - 1;
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        AppendUtf8(HexCode(raw.substr(i + 1, digits), digits), out);
        i += digits;
      } else if (c == 'N') {
        Raise(kSyntax, "escapes by character name (\\N) are not supported");
      } else {
        out.push_back('\\');
        out.push_back(c);
      }
    }
    return out;
  }

  static char32_t HexCode(std::string_view digits, size_t count) {
    uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != count || error != std::errc() || end != digits.data() + count) {
      Raise(kSyntax, "a string has a cut \\x, \\u or \\U escape");
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      Raise(kSyntax, "a string has an escape that is no character");
    }
    return code;
  }

  Ast& ast_;
  std::string_view text_;
  size_t pos_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source, Ast& ast) { return Lexer(source, ast).Run(); }

}  // namespace vivace::jinja

#include "grammar/gbnf.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "grammar/code_points.h"
#include "grammar/ebnf.h"

namespace vivace::grammar {
namespace {

enum class Kind : uint8_t {
  kBlank,   // and comments
  kName,    // or a number
  kRule,    // a name that ::= follows
  kAssign,  // ::=
  kString,
  kClass,
  kOpen,   // ( and (= which begins what xgrammar looks ahead for
  kClose,  // )
  kOr,     // |
  kRepeat,
  kCounts,  // {m,n}
  kAny,     // .
  kOther,
};

struct Token {
  Kind kind;
  std::string_view text;
};

// Names that mean something else to xgrammar.
constexpr std::string_view kTaken[] = {"true",        "false", "Regex",        "Substring",
                                       "TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch"};

bool IsNameChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
         c == '.';
}
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : rest_(text) {}

  std::vector<Token> Tokens() {
    std::vector<Token> tokens;
    while (!rest_.empty()) {
      const auto [kind, size] = Next();
      tokens.push_back({kind, rest_.substr(0, size)});
      rest_.remove_prefix(size);
    }
    return tokens;
  }

 private:
  struct Found {
    Kind kind;
    size_t size;
  };

  Found Next() const {
    switch (rest_[0]) {
      case '#':
        return {Kind::kBlank, std::min(rest_.find_first_of("\r\n"), rest_.size())};
      case '"':
        return {Kind::kString, Quoted('"')};
      case '[':
        return {Kind::kClass, Quoted(']')};
      case '(':
        return {Kind::kOpen, rest_.starts_with("(=") ? size_t{2} : 1};
      case ')':
        return {Kind::kClose, 1};
      case '|':
        return {Kind::kOr, 1};
      case '*':
      case '+':
      case '?':
        return {Kind::kRepeat, 1};
      case '{':
        return {Kind::kCounts, 1 + Run(1, [](char c) { return c != '}' && c != '\n'; })};
      case ':':
        if (rest_.starts_with("::=")) return {Kind::kAssign, 3};
        return {Kind::kOther, 1};
      default:
        break;
    }
    if (IsBlank(rest_[0])) return {Kind::kBlank, Run(0, IsBlank)};
    if (IsNameChar(rest_[0])) return {Kind::kName, Run(0, IsNameChar)};
    return {Kind::kOther, 1};
  }

  template <typename Belongs>
  size_t Run(size_t from, Belongs belongs) const {
    size_t end = from;
    while (end < rest_.size() && belongs(rest_[end])) ++end;
    return end - from;
  }

  size_t Quoted(char last) const {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != last) end += rest_[end] == '\\' ? 2 : 1;
    return std::min(end + 1, rest_.size());
  }

  std::string_view rest_;
};

// Finds the rules. xgrammar lets attributes in brackets stand behind a name.
void MarkRules(std::vector<Token>* tokens) {
  size_t name = tokens->size();
  for (size_t i = 0; i < tokens->size(); ++i) {
    const Kind kind = (*tokens)[i].kind;
    if (kind == Kind::kName) {
      name = i;
    } else if (kind == Kind::kAssign && name < tokens->size()) {
      (*tokens)[name].kind = Kind::kRule;
      for (size_t at = name + 1; at < i; ++at) (*tokens)[at].kind = Kind::kOther;
      name = tokens->size();
    } else if (kind != Kind::kBlank && !(kind == Kind::kClass && name + 1 == i)) {
      name = tokens->size();
    }
  }
}

// A dot is any character, except in the names of rules that have one.
std::vector<Token> WithDotsApart(const std::vector<Token>& tokens,
                                 const std::set<std::string_view>& rules) {
  std::vector<Token> out;
  for (const Token& token : tokens) {
    if (token.kind != Kind::kName || rules.contains(token.text)) {
      out.push_back(token);
      continue;
    }
    for (std::string_view rest = token.text; !rest.empty();) {
      const size_t size = rest[0] == '.' ? 1 : std::min(rest.find('.'), rest.size());
      out.push_back({rest[0] == '.' ? Kind::kAny : Kind::kName, rest.substr(0, size)});
      rest.remove_prefix(size);
    }
  }
  return out;
}

// `text` is a string or a class with its marks.
void AppendQuoted(std::string_view text, std::string* out) {
  const bool string = text[0] == '"';
  while (!text.empty()) {
    size_t size = text[0] == '\\' ? std::min<size_t>(2, text.size()) : 1;
    const char escaped = size == 2 ? text[1] : '\0';
    if (text[0] == '\n' || text[0] == '\r') {
      *out += text[0] == '\n' ? "\\n" : "\\r";
    } else if (string && (escaped == '[' || escaped == ']' || escaped == '-')) {
      *out += escaped;
    } else if (escaped == 'x' && text.size() > 4 &&
               std::ranges::all_of(text.substr(2, 3), IsHexDigit)) {
      *out += "\\u00";
      *out += text.substr(2, 2);
      size = 4;
    } else {
      *out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
}

class Writer {
 public:
  explicit Writer(const std::set<std::string_view>& rules) : rules_(rules) {}

  std::string Write(const std::vector<Token>& tokens) {
    for (const Token& token : tokens) {
      Take(token);
      if (token.kind == Kind::kBlank) continue;
      last_ = token.kind;
      regex_ = token.text == "Regex" || (regex_ && token.kind == Kind::kOpen);
    }
    EndAlternative();
    return std::move(out_);
  }

 private:
  void Take(const Token& token) {
    switch (token.kind) {
      case Kind::kOpen:
        // What xgrammar looks ahead for stands behind a rule's alternatives.
        if (token.text.size() == 2) EndAlternative();
        out_ += token.text;
        begun_ = out_.size();
        return;
      case Kind::kAssign:
        out_ += token.text;
        begun_ = out_.size();
        return;
      case Kind::kOr:
        EndAlternative();
        out_ += token.text;
        begun_ = out_.size();
        return;
      case Kind::kClose:
        if (last_ != Kind::kOpen) EndAlternative();  // xgrammar takes ()
        break;
      case Kind::kRule:
        EndAlternative();
        [[fallthrough]];
      case Kind::kName:
        if (MeansAnother(token.text)) out_ += '_';
        break;
      case Kind::kRepeat:
        if (last_ == Kind::kRepeat) {
          char& repeat = out_[repeat_];
          repeat = repeat == token.text[0] ? repeat : '*';
          out_ += ' ';
          return;
        }
        repeat_ = out_.size();
        break;
      case Kind::kAny:
        out_ += any_;
        begun_ = kNone;
        return;
      case Kind::kString:
      case Kind::kClass:
        if (regex_) break;  // xgrammar's own: as it is
        AppendQuoted(token.text, &out_);
        begun_ = kNone;
        return;
      case Kind::kBlank:
        out_ += token.text;
        return;
      default:
        break;
    }
    out_ += token.text;
    begun_ = kNone;
  }

  // Only blanks have come since the alternative began: they are what is moved.
  void EndAlternative() {
    if (begun_ != kNone) out_.insert(begun_, " " + std::string(kEmptyExpression));
    begun_ = kNone;
  }

  bool MeansAnother(std::string_view name) const {
    return (IsDigit(name[0]) || std::ranges::find(kTaken, name) != std::end(kTaken)) &&
           rules_.contains(name);
  }

  static constexpr size_t kNone = std::string::npos;

  const std::set<std::string_view>& rules_;
  const std::string any_ = CodePoints::All().ToClass();
  std::string out_;
  size_t begun_ = kNone;  // where an alternative began of which nothing has come
  size_t repeat_ = 0;     // where the last repeat stands
  Kind last_ = Kind::kBlank;
  bool regex_ = false;  // the next string is one
};

}  // namespace

std::string GbnfToEbnf(std::string_view gbnf) {
  std::vector<Token> tokens = Lexer(gbnf).Tokens();
  MarkRules(&tokens);
  std::set<std::string_view> rules;
  for (const Token& token : tokens) {
    if (token.kind == Kind::kRule) rules.insert(token.text);
  }
  return Writer(rules).Write(WithDotsApart(tokens, rules));
}

}  // namespace vivace::grammar

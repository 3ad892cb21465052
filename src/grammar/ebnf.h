// Writing a grammar in xgrammar's EBNF: literals, repeats and rules, bounded in size.
//
//   EbnfWriter out;
//   const std::string name = out.Reserve("object");   // may be used before it has a body
//   out.Define(name, Seq({Literal("{"), "ws", Literal("}")}));
//
// An expression is text. Every helper returns one that can stand anywhere (it brings its own
// parentheses). Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vivace::grammar {

inline constexpr int64_t kUnbounded = -1;
inline constexpr std::string_view kEmptyExpression = "\"\"";

std::string Literal(std::string_view utf8);
std::string Seq(const std::vector<std::string>& parts);
std::string Either(const std::vector<std::string>& options);  // not empty
std::string Optional(std::string_view expression);
std::string Repeat(std::string_view expression, int64_t min, int64_t max);

class EbnfWriter {
 public:
  // A new rule name that begins with `hint`.
  std::string Reserve(std::string_view hint);
  void Define(std::string_view name, std::string_view body);
  std::string AddRule(std::string_view hint, std::string_view body) {
    std::string name = Reserve(hint);
    Define(name, body);
    return name;
  }

  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int next_ = 0;
};

}  // namespace vivace::grammar

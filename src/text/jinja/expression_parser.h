// The expression half of the parser: tokens to Expr nodes. One pass, one token of look-ahead,
// recursion bounded by limits::kTemplateDepth.
#pragma once

#include <initializer_list>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/token.h"

namespace vivace::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, Ast& ast, uint32_t& line)
      : ast_(ast), tokens_(std::move(tokens)), line_(line) {}

 protected:
  struct Depth {  // one level of nesting, for as long as it lives
    explicit Depth(ExpressionParser& parser);
    ~Depth() { --parser_.depth_; }
    ExpressionParser& parser_;
  };

  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& Next();
  bool SkipName(std::string_view name);
  bool SkipOp(std::string_view op);
  void ExpectOp(std::string_view op);
  void ExpectName(std::string_view name);
  std::string_view ExpectAnyName();
  [[noreturn]] void Unexpected(std::string_view wanted) const;

  const Expr* ParseExpression(bool with_conditional = true);
  // A tuple without parentheses, or one expression; `end_name` is a word that also ends it.
  const Expr* ParseTuple(bool with_conditional = true, std::string_view end_name = {});
  const Expr* ParseTarget(bool with_namespace, std::string_view end_name = {});
  const Expr* ParseFilters(const Expr* node, bool first_pipe_skipped);
  const Expr* NewConst(Value value);

  Ast& ast_;

  // Which of the special names the macros being parsed refer to.
  struct MacroNames {
    bool caller = false, kwargs = false, varargs = false;
  };
  std::vector<MacroNames> macros_;

 private:
  Expr* NewExpr(ExprKind kind, std::initializer_list<const Expr*> items = {});
  // Sets the height from all children; refuses nodes that would nest too deep.
  const Expr* Finish(Expr* node);
  const Expr* ParseBinary(int level);
  const Expr* ParseNot();
  const Expr* ParseCompare();
  const Expr* ParseConcat();
  const Expr* ParseUnary(bool with_filter);
  const Expr* ParsePrimary(bool with_namespace);
  const Expr* ParseName(bool with_namespace);
  const Expr* ParseNumber();
  const Expr* ParsePostfix(const Expr* node);
  const Expr* ParseFilterExpr(const Expr* node);
  const Expr* ParseSubscript(const Expr* node);
  const Expr* ParseSubscribed();
  const Expr* ParseTest(const Expr* node);
  const Expr* ParseList();
  const Expr* ParseDict();
  const Expr* ParseParenthesised();
  void ParseCallArgs(Expr* call);
  void NoteName(std::string_view name);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  uint32_t& line_;
};

}  // namespace vivace::jinja

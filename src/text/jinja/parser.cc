#include "text/jinja/parser.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/name_check.h"
#include "text/jinja/scope_analysis.h"

namespace vivace::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

class Parser : ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  void Run() {
    ast_.root = ParseBody({});
    if (Current().type != TokenType::kEnd) Unexpected("the end of the template");
  }

 private:
  struct Handler {
    std::string_view tag;
    void (Parser::*parse)(Stmt*);
  };

  Stmt* NewStmt(StmtKind kind) {
    if (ast_.stmts.size() >= limits::kTemplateNodes) {
      Raise(kSourceLimit, "the template has more than {} statements", limits::kTemplateNodes);
    }
    Stmt& node = ast_.stmts.emplace_back();
    node.kind = kind;
    node.line = Current().line;
    return &node;
  }

  // Statements up to a tag of `ends`, which becomes the current token.
  Block ParseBody(Names ends) {
    const Depth depth(*this);
    Block body;
    while (Current().type != TokenType::kEnd) {
      if (Current().type == TokenType::kData) {
        Stmt* text = NewStmt(StmtKind::kText);
        text->text = ast_.Constant(Next().text);
        body.push_back(text);
      } else if (Current().type == TokenType::kVariableBegin) {
        Next();
        Stmt* output = NewStmt(StmtKind::kOutput);
        output->exprs.push_back(ParseTuple());
        body.push_back(output);
        if (Current().type != TokenType::kVariableEnd) Unexpected("}}");
        Next();
      } else {
        Next();
        const auto is_current = [&](std::string_view name) { return Current().is_name(name); };
        if (std::any_of(ends.begin(), ends.end(), is_current)) return body;
        body.push_back(ParseStatement());
        EndTag();
      }
    }
    if (ends.size() > 0)
      Raise(kSyntax, "a block is never closed (expected {})", *std::prev(ends.end()));
    return body;
  }

  void EndTag() {
    if (Current().type != TokenType::kBlockEnd) Unexpected("%}");
    Next();
  }

  // The body after an opening tag, up to and over the word that ends it.
  Block ParseBlock(Names ends, std::string_view* end = nullptr) {
    SkipOp(":");
    EndTag();
    Block body = ParseBody(ends);
    const std::string_view word = Next().text;
    if (end != nullptr) *end = word;
    return body;
  }

  const Stmt* ParseStatement() {
    static constexpr Handler kHandlers[] = {
        {"if", &Parser::ParseIf},       {"for", &Parser::ParseFor},
        {"set", &Parser::ParseSet},     {"macro", &Parser::ParseMacro},
        {"call", &Parser::ParseCall},   {"filter", &Parser::ParseFilterBlock},
        {"with", &Parser::ParseWith},   {"generation", &Parser::ParseGeneration},
        {"break", &Parser::ParseBreak}, {"continue", &Parser::ParseContinue},
        {"print", &Parser::ParsePrint}};
    static constexpr std::string_view kRefused[] = {"include", "import", "from",
                                                    "extends", "block",  "autoescape"};
    const std::string_view tag = ExpectAnyName();
    for (const Handler& handler : kHandlers) {
      if (handler.tag != tag) continue;
      Stmt* statement = NewStmt(StmtKind::kScope);
      (this->*handler.parse)(statement);
      return statement;
    }
    if (std::find(std::begin(kRefused), std::end(kRefused), tag) != std::end(kRefused)) {
      Raise(kUnsupportedStatement, "the tag {} is not available in chat templates", tag);
    }
    Raise(kSyntax, "unknown tag {}", tag.substr(0, 40));
  }

  void ParseIf(Stmt* node) {
    node->kind = StmtKind::kIf;
    std::string_view end = "elif";
    while (end == "elif") {
      const Expr* test = ParseTuple(false);
      Block body = ParseBlock({"elif", "else", "endif"}, &end);
      node->branches.push_back({test, std::move(body)});
    }
    if (end == "else") node->branches.push_back({nullptr, ParseBlock({"endif"})});
  }

  void ParseFor(Stmt* node) {
    node->kind = StmtKind::kFor;
    node->target = ParseTarget(false, "in");
    ExpectName("in");
    node->value = ParseTuple(false, "recursive");
    if (SkipName("if")) node->test = ParseExpression();
    node->recursive = SkipName("recursive");
    ++loops_;
    std::string_view end;
    node->body = ParseBlock({"else", "endfor"}, &end);
    --loops_;
    if (end != "else") return;
    const int loops = loops_;
    if (node->recursive) loops_ = 0;  // a function of its own
    node->otherwise = ParseBlock({"endfor"});
    loops_ = loops;
  }

  void ParseSet(Stmt* node) {
    node->target = ParseTarget(true);
    if (SkipOp("=")) {
      node->kind = StmtKind::kSet;
      node->value = ParseTuple();
      return;
    }
    node->kind = StmtKind::kSetBlock;
    node->value = ParseFilters(BlockInput(), false);
    node->body = ParseBlock({"endset"});
  }

  // Stands for the text of the block in its filter chain.
  const Expr* BlockInput() {
    Expr& node = ast_.exprs.emplace_back();
    node.kind = ExprKind::kName;
    node.name = ast_.block_input_name;
    return &node;
  }

  void ParseSignature(Stmt* node) {
    ExpectOp("(");
    while (!SkipOp(")")) {
      if (!node->parameters.empty()) ExpectOp(",");
      node->parameters.push_back(ast_.Intern(ExpectAnyName()));
      if (SkipOp("=")) {
        node->defaults.push_back(ParseExpression());
      } else if (!node->defaults.empty()) {
        Raise(kSyntax, "a parameter without a default follows one with a default");
      }
    }
  }

  void ParseMacroBody(Stmt* node, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    macros_.emplace_back();
    node->body = ParseBlock({end});
    const MacroNames names = macros_.back();
    macros_.pop_back();
    loops_ = loops;
    node->uses_caller = names.caller;
    node->uses_kwargs = names.kwargs;
    node->uses_varargs = names.varargs;
  }

  void ParseMacro(Stmt* node) {
    node->kind = StmtKind::kMacro;
    node->name = ast_.Intern(ExpectAnyName());
    ParseSignature(node);
    ParseMacroBody(node, "endmacro");
  }

  void ParseCall(Stmt* node) {
    node->kind = StmtKind::kCallBlock;
    if (Current().is_op("(")) ParseSignature(node);
    node->name = ast_.caller_name;
    node->value = ParseExpression();
    if (node->value->kind != ExprKind::kCall) Raise(kSyntax, "expected a call after {{% call");
    ParseMacroBody(node, "endcall");
  }

  void ParseFilterBlock(Stmt* node) {
    node->kind = StmtKind::kFilterBlock;
    node->value = ParseFilters(BlockInput(), true);
    node->body = ParseBlock({"endfilter"});
  }

  void ParseWith(Stmt* node) {
    node->kind = StmtKind::kWith;
    while (Current().type != TokenType::kBlockEnd && !Current().is_op(":")) {
      if (!node->targets.empty()) ExpectOp(",");
      node->targets.push_back(ParseTarget(false));
      ExpectOp("=");
      node->exprs.push_back(ParseExpression());
    }
    node->body = ParseBlock({"endwith"});
  }

  // Hugging Face marks the assistant's text with this; for the prompt it is only a scope.
  void ParseGeneration(Stmt* node) {
    node->kind = StmtKind::kScope;
    const int loops = std::exchange(loops_, 0);  // a call block to jinja2: no break leaves it
    node->body = ParseBlock({"endgeneration"});
    loops_ = loops;
  }

  void ParseBreak(Stmt* node) { ParseLoopControl(node, StmtKind::kBreak); }
  void ParseContinue(Stmt* node) { ParseLoopControl(node, StmtKind::kContinue); }
  void ParseLoopControl(Stmt* node, StmtKind kind) {
    if (loops_ == 0) Raise(kSyntax, "break and continue belong inside a for block");
    node->kind = kind;
  }

  void ParsePrint(Stmt* node) {
    node->kind = StmtKind::kOutput;
    while (Current().type != TokenType::kBlockEnd) {
      if (!node->exprs.empty()) ExpectOp(",");
      node->exprs.push_back(ParseExpression());
    }
  }

  int loops_ = 0;
};

}  // namespace

std::unique_ptr<Ast> ParseTemplate(std::string_view source, uint32_t& line) {
  if (source.size() > limits::kTemplateSourceBytes) {
    Raise(kSourceLimit, "the template is longer than {} bytes", limits::kTemplateSourceBytes);
  }
  auto ast = std::make_unique<Ast>();
  Parser parser(Tokenize(source, *ast), *ast, line);
  parser.Run();
  AnalyzeScopes(*ast);
  CheckNames(*ast, line);
  return ast;
}

}  // namespace vivace::jinja

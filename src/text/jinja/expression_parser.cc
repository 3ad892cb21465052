#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/limits.h"

namespace vivace::jinja {
namespace {

struct OperatorWord {
  std::string_view word;
  Op op;
};
constexpr OperatorWord kComparisons[] = {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt},
                                         {"<=", Op::kLe}, {">", Op::kGt},  {">=", Op::kGe}};
constexpr OperatorWord kSums[] = {{"+", Op::kAdd}, {"-", Op::kSub}};
constexpr OperatorWord kProducts[] = {
    {"*", Op::kMul}, {"/", Op::kDiv}, {"//", Op::kFloorDiv}, {"%", Op::kMod}};
constexpr OperatorWord kPowers[] = {{"**", Op::kPow}};

std::optional<Op> FindOp(const Token& token, std::span<const OperatorWord> words) {
  if (token.type != TokenType::kOperator) return std::nullopt;
  for (const OperatorWord& word : words) {
    if (word.word == token.text) return word.op;
  }
  return std::nullopt;
}

// Levels of ParseBinary, loosest first. Concatenation (~) sits between sums and products.
enum Level { kOrLevel, kAndLevel, kSumLevel, kProductLevel, kPowerLevel };

}  // namespace

ExpressionParser::Depth::Depth(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > limits::kTemplateDepth) {
    Raise(kNestingLimit, "the template nests deeper than {} levels", limits::kTemplateDepth);
  }
}

const Token& ExpressionParser::Next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  line_ = tokens_[at_].line;
  return token;
}

void ExpressionParser::Unexpected(std::string_view wanted) const {
  const Token& token = Current();
  std::string_view got = token.text;
  switch (token.type) {
    case TokenType::kEnd:
      got = "the end of the template";
      break;
    case TokenType::kVariableEnd:
      got = "}}";
      break;
    case TokenType::kBlockEnd:
      got = "%}";
      break;
    case TokenType::kInteger:
    case TokenType::kFloat:
      got = "a number";
      break;
    default:
      break;
  }
  Raise(kSyntax, "expected {}, found {}", wanted, got.substr(0, 40));
}

bool ExpressionParser::SkipName(std::string_view name) {
  if (!Current().is_name(name)) return false;
  Next();
  return true;
}
bool ExpressionParser::SkipOp(std::string_view op) {
  if (!Current().is_op(op)) return false;
  Next();
  return true;
}
void ExpressionParser::ExpectOp(std::string_view op) {
  if (!SkipOp(op)) Unexpected(op);
}
void ExpressionParser::ExpectName(std::string_view name) {
  if (!SkipName(name)) Unexpected(name);
}
std::string_view ExpressionParser::ExpectAnyName() {
  if (Current().type != TokenType::kName) Unexpected("a name");
  return Next().text;
}

Expr* ExpressionParser::NewExpr(ExprKind kind, std::initializer_list<const Expr*> items) {
  if (ast_.exprs.size() >= limits::kTemplateNodes) {
    Raise(kSourceLimit, "the template has more than {} expressions", limits::kTemplateNodes);
  }
  Expr& node = ast_.exprs.emplace_back();
  node.kind = kind;
  node.line = line_;
  node.items = items;
  return &node;
}

const Expr* ExpressionParser::Finish(Expr* node) {
  int height = 0;
  const auto see = [&](const Expr* child) {
    if (child != nullptr) height = std::max<int>(height, child->height);
  };
  for (const Expr* item : node->items) see(item);
  for (const auto& [name, value] : node->keywords) see(value);
  see(node->star);
  see(node->star_star);
  if (height >= limits::kTemplateDepth) {
    Raise(kNestingLimit, "an expression nests deeper than {} levels", limits::kTemplateDepth);
  }
  node->height = static_cast<uint16_t>(height + 1);
  return node;
}

const Expr* ExpressionParser::NewConst(Value value) {
  Expr* node = NewExpr(ExprKind::kConst);
  node->constant = value;
  return node;
}

const Expr* ExpressionParser::ParseExpression(bool with_conditional) {
  const Depth depth(*this);
  const Expr* node = ParseBinary(kOrLevel);
  while (with_conditional && SkipName("if")) {
    const Expr* test = ParseBinary(kOrLevel);
    const Expr* otherwise = SkipName("else") ? ParseExpression() : nullptr;
    node = Finish(NewExpr(ExprKind::kConditional, {test, node, otherwise}));
  }
  return node;
}

// Left-associative chains become one flat node, however long they are.
const Expr* ExpressionParser::ParseBinary(int level) {
  if (level == kOrLevel || level == kAndLevel) {
    const std::string_view word = level == kOrLevel ? "or" : "and";
    const Expr* first = level == kOrLevel ? ParseBinary(kAndLevel) : ParseNot();
    if (!Current().is_name(word)) return first;
    Expr* node = NewExpr(level == kOrLevel ? ExprKind::kOr : ExprKind::kAnd, {first});
    while (SkipName(word)) {
      node->items.push_back(level == kOrLevel ? ParseBinary(kAndLevel) : ParseNot());
    }
    return Finish(node);
  }
  const auto operand = [&] {
    return level == kSumLevel       ? ParseConcat()
           : level == kProductLevel ? ParseBinary(kPowerLevel)
                                    : ParseUnary(true);
  };
  const std::span<const OperatorWord> words = level == kSumLevel ? std::span(kSums)
                                              : level == kProductLevel
                                                  ? std::span<const OperatorWord>(kProducts)
                                                  : std::span<const OperatorWord>(kPowers);
  const Expr* first = operand();
  std::optional<Op> op = FindOp(Current(), words);
  if (!op) return first;
  Expr* node = NewExpr(ExprKind::kChain, {first});
  for (; op; op = FindOp(Current(), words)) {
    Next();
    node->ops.push_back(*op);
    node->items.push_back(operand());
  }
  return Finish(node);
}

const Expr* ExpressionParser::ParseNot() {
  if (!Current().is_name("not")) return ParseCompare();
  const Depth depth(*this);
  Next();
  return Finish(NewExpr(ExprKind::kNot, {ParseNot()}));
}

const Expr* ExpressionParser::ParseCompare() {
  const Expr* first = ParseBinary(kSumLevel);
  Expr* node = nullptr;
  while (true) {
    std::optional<Op> op = FindOp(Current(), kComparisons);
    if (!op && Current().is_name("in")) op = Op::kIn;
    if (!op && Current().is_name("not") && Ahead().is_name("in")) {
      op = Op::kNotIn;
      Next();
    }
    if (!op) break;
    Next();
    if (node == nullptr) node = NewExpr(ExprKind::kCompare, {first});
    node->ops.push_back(*op);
    node->items.push_back(ParseBinary(kSumLevel));
  }
  return node == nullptr ? first : Finish(node);
}

const Expr* ExpressionParser::ParseConcat() {
  const Expr* first = ParseBinary(kProductLevel);
  if (!Current().is_op("~")) return first;
  Expr* node = NewExpr(ExprKind::kConcat, {first});
  while (SkipOp("~")) node->items.push_back(ParseBinary(kProductLevel));
  return Finish(node);
}

const Expr* ExpressionParser::ParseUnary(bool with_filter) {
  const Depth depth(*this);
  const Expr* node = nullptr;
  const bool minus = Current().is_op("-");
  constexpr uint64_t kSmallest = uint64_t{1} << 63;
  if (minus && Ahead().type == TokenType::kInteger && Ahead().integer == kSmallest) {
    Next();
    Next();
    node = NewConst(Value::Int(INT64_MIN));
  } else if (minus || Current().is_op("+")) {
    Next();
    node = Finish(NewExpr(minus ? ExprKind::kNegate : ExprKind::kPlus, {ParseUnary(false)}));
  } else {
    node = ParsePrimary(false);
  }
  node = ParsePostfix(node);
  return with_filter ? ParseFilterExpr(node) : node;
}

void ExpressionParser::NoteName(std::string_view name) {
  for (MacroNames& macro : macros_) {
    macro.caller |= name == "caller";
    macro.kwargs |= name == "kwargs";
    macro.varargs |= name == "varargs";
  }
}

const Expr* ExpressionParser::ParseName(bool with_namespace) {
  const std::string_view name = Next().text;
  if (name == "true" || name == "True") return NewConst(Value::Bool(true));
  if (name == "false" || name == "False") return NewConst(Value::Bool(false));
  if (name == "none" || name == "None") return NewConst(Value::None());
  NoteName(name);
  Expr* node = NewExpr(ExprKind::kName);
  node->name = ast_.Intern(name);
  if (with_namespace && SkipOp(".")) {
    node->kind = ExprKind::kNamespaceRef;
    node->member = ast_.Intern(ExpectAnyName());
  }
  return node;
}

const Expr* ExpressionParser::ParseNumber() {
  const Token& token = Next();
  if (token.type == TokenType::kFloat) return NewConst(Value::Float(token.real));
  if (token.integer > INT64_MAX) Raise(kBadArgument, "an integer literal is beyond 64 bits");
  return NewConst(Value::Int(static_cast<int64_t>(token.integer)));
}

const Expr* ExpressionParser::ParsePrimary(bool with_namespace) {
  const Token& token = Current();
  switch (token.type) {
    case TokenType::kName:
      return ParseName(with_namespace);
    case TokenType::kInteger:
    case TokenType::kFloat:
      return ParseNumber();
    case TokenType::kString: {
      std::string_view text = Next().text;
      while (Current().type == TokenType::kString) {  // adjacent literals are one
        text = ast_.literals.emplace_back(std::string(text) + std::string(Next().text));
      }
      return NewConst(Value::Of(ast_.Constant(text)));
    }
    default:
      break;
  }
  if (token.is_op("(")) return ParseParenthesised();
  if (token.is_op("[")) return ParseList();
  if (token.is_op("{")) return ParseDict();
  Unexpected("an expression");
}

const Expr* ExpressionParser::ParseParenthesised() {
  Next();
  if (SkipOp(")")) return NewExpr(ExprKind::kTuple);
  const Expr* node = ParseTuple();
  ExpectOp(")");
  return node;
}

const Expr* ExpressionParser::ParseTuple(bool with_conditional, std::string_view end_name) {
  const Depth depth(*this);
  const Expr* first = ParseExpression(with_conditional);
  if (!Current().is_op(",")) return first;
  Expr* node = NewExpr(ExprKind::kTuple, {first});
  while (SkipOp(",")) {
    const Token& token = Current();
    if (token.type == TokenType::kVariableEnd || token.type == TokenType::kBlockEnd ||
        token.is_op(")") || (!end_name.empty() && token.is_name(end_name))) {
      break;
    }
    node->items.push_back(ParseExpression(with_conditional));
  }
  return Finish(node);
}

const Expr* ExpressionParser::ParseTarget(bool with_namespace, std::string_view end_name) {
  const Depth depth(*this);
  const auto one = [&]() -> const Expr* {
    const bool open = SkipOp("(");
    const Expr* node = open ? ParseTarget(false) : ParsePrimary(with_namespace);
    if (open) ExpectOp(")");
    if (node->kind != ExprKind::kName && node->kind != ExprKind::kNamespaceRef &&
        node->kind != ExprKind::kTuple) {
      Raise(kSyntax, "can't assign to this expression");
    }
    return node;
  };
  const Expr* first = one();
  if (!Current().is_op(",")) return first;
  Expr* node = NewExpr(ExprKind::kTuple, {first});
  while (SkipOp(",")) {
    if (Current().type != TokenType::kName && !Current().is_op("(")) break;
    if (!end_name.empty() && Current().is_name(end_name)) break;
    node->items.push_back(one());
  }
  return Finish(node);
}

const Expr* ExpressionParser::ParseList() {
  Next();
  Expr* node = NewExpr(ExprKind::kList);
  while (!SkipOp("]")) {
    if (!node->items.empty()) {
      ExpectOp(",");
      if (SkipOp("]")) break;
    }
    node->items.push_back(ParseExpression());
  }
  return Finish(node);
}

const Expr* ExpressionParser::ParseDict() {
  Next();
  Expr* node = NewExpr(ExprKind::kDict);
  while (!SkipOp("}")) {
    if (!node->items.empty()) {
      ExpectOp(",");
      if (SkipOp("}")) break;
    }
    node->items.push_back(ParseExpression());
    ExpectOp(":");
    node->items.push_back(ParseExpression());
  }
  return Finish(node);
}

const Expr* ExpressionParser::ParsePostfix(const Expr* node) {
  while (true) {
    if (Current().is_op(".") || Current().is_op("[")) {
      node = ParseSubscript(node);
    } else if (Current().is_op("(")) {
      Expr* call = NewExpr(ExprKind::kCall, {node});
      ParseCallArgs(call);
      node = Finish(call);
    } else {
      return node;
    }
  }
}

const Expr* ExpressionParser::ParseFilterExpr(const Expr* node) {
  while (true) {
    if (Current().is_op("|")) {
      node = ParseFilters(node, false);
    } else if (Current().is_name("is")) {
      node = ParseTest(node);
    } else if (Current().is_op("(")) {
      Expr* call = NewExpr(ExprKind::kCall, {node});
      ParseCallArgs(call);
      node = Finish(call);
    } else {
      return node;
    }
  }
}

const Expr* ExpressionParser::ParseSubscript(const Expr* node) {
  if (SkipOp(".")) {
    if (Current().type == TokenType::kInteger) {
      return Finish(NewExpr(ExprKind::kItem, {node, ParseNumber()}));
    }
    Expr* attribute = NewExpr(ExprKind::kAttribute, {node});
    attribute->name = ast_.Intern(ExpectAnyName());
    return Finish(attribute);
  }
  Next();
  std::vector<const Expr*> keys;
  while (!SkipOp("]")) {
    if (!keys.empty()) ExpectOp(",");
    keys.push_back(ParseSubscribed());
  }
  if (keys.size() == 1) return Finish(NewExpr(ExprKind::kItem, {node, keys[0]}));
  Expr* tuple = NewExpr(ExprKind::kTuple);
  tuple->items = std::move(keys);
  return Finish(NewExpr(ExprKind::kItem, {node, Finish(tuple)}));
}

const Expr* ExpressionParser::ParseSubscribed() {
  const auto part = [&]() -> const Expr* {
    const bool absent = Current().is_op(":") || Current().is_op("]") || Current().is_op(",");
    return absent ? nullptr : ParseExpression();
  };
  const Expr* start = Current().is_op(":") ? nullptr : ParseExpression();
  if (!SkipOp(":")) return start;
  const Expr* stop = part();
  const Expr* step = SkipOp(":") ? part() : nullptr;
  return Finish(NewExpr(ExprKind::kSlice, {start, stop, step}));
}

void ExpressionParser::ParseCallArgs(Expr* call) {
  ExpectOp("(");
  bool first = true;
  while (!SkipOp(")")) {
    if (!std::exchange(first, false)) {
      ExpectOp(",");
      if (SkipOp(")")) break;
    }
    const bool starred = call->star != nullptr || call->star_star != nullptr;
    if (SkipOp("*")) {
      if (starred) Raise(kSyntax, "a call may have one *arguments only");
      call->star = ParseExpression();
    } else if (SkipOp("**")) {
      if (call->star_star != nullptr) Raise(kSyntax, "a call may have one **arguments only");
      call->star_star = ParseExpression();
    } else if (Current().type == TokenType::kName && Ahead().is_op("=")) {
      if (call->star_star != nullptr) Raise(kSyntax, "a named argument follows **arguments");
      const NameId name = ast_.Intern(Next().text);
      for (const auto& [other, value] : call->keywords) {
        if (other == name) Raise(kSyntax, "the argument {} is given twice", ast_.names[name]);
      }
      Next();
      call->keywords.emplace_back(name, ParseExpression());
    } else {
      if (starred || !call->keywords.empty()) {
        Raise(kSyntax, "a positional argument follows a named one");
      }
      call->items.push_back(ParseExpression());
    }
  }
}

const Expr* ExpressionParser::ParseFilters(const Expr* node, bool first_pipe_skipped) {
  while (std::exchange(first_pipe_skipped, false) || SkipOp("|")) {
    std::string name(ExpectAnyName());
    while (SkipOp(".")) name.append(".").append(ExpectAnyName());
    Expr* filter = NewExpr(ExprKind::kFilter, {node});
    filter->name = ast_.Intern(ast_.literals.emplace_back(std::move(name)));
    if (Current().is_op("(")) ParseCallArgs(filter);
    node = Finish(filter);
  }
  return node;
}

const Expr* ExpressionParser::ParseTest(const Expr* node) {
  Next();
  const bool negated = SkipName("not");
  std::string name(ExpectAnyName());
  while (SkipOp(".")) name.append(".").append(ExpectAnyName());
  Expr* test = NewExpr(ExprKind::kTest, {node});
  test->name = ast_.Intern(ast_.literals.emplace_back(std::move(name)));
  const Token& token = Current();
  const bool operand = token.type == TokenType::kName || token.type == TokenType::kString ||
                       token.type == TokenType::kInteger || token.type == TokenType::kFloat ||
                       token.is_op("[") || token.is_op("{");
  if (token.is_op("(")) {
    ParseCallArgs(test);
  } else if (operand && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) Raise(kSyntax, "tests can't be chained with is");
    const Depth depth(*this);
    test->items.push_back(ParsePostfix(ParsePrimary(false)));
  }
  const Expr* result = Finish(test);
  return negated ? Finish(NewExpr(ExprKind::kNot, {result})) : result;
}

}  // namespace vivace::jinja

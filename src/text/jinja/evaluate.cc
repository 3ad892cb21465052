// The expressions half of the interpreter.
#include <array>

#include "text/jinja/builtins.h"
#include "text/jinja/eval_depth.h"
#include "text/jinja/format.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"

namespace vivace::jinja {

// A dispatcher only: the work is in functions of their own, which keeps this recursive frame small.
Value Interpreter::Eval(const Expr* node) {
  if (node->kind == ExprKind::kConst) return node->constant;
  const EvalDepth depth(*this);
  Charge();
  switch (node->kind) {
    case ExprKind::kConst:
      return node->constant;
    case ExprKind::kName:
    case ExprKind::kNamespaceRef:
      return EvalName(node);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return EvalList(node);
    case ExprKind::kDict:
      return EvalDict(node);
    case ExprKind::kChain:
      return EvalChain(node);
    case ExprKind::kConcat:
      return EvalConcat(node);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EvalLogical(node);
    case ExprKind::kNot:
      return Value::Bool(!IsTrue(Eval(node->items[0])));
    case ExprKind::kNegate:
      return Negate(*this, Eval(node->items[0]));
    case ExprKind::kPlus:
      return Plus(Eval(node->items[0]));
    case ExprKind::kCompare:
      return EvalCompare(node);
    case ExprKind::kConditional:
      return EvalConditional(node);
    case ExprKind::kAttribute:
      return GetAttribute(*this, Eval(node->items[0]), ast_.names[node->name]);
    case ExprKind::kItem:
      return EvalItem(node);
    case ExprKind::kSlice:
      Raise(kBadArgument, "a slice may only stand alone between [ and ]");
    case ExprKind::kCall:
      return EvalCall(node, nullptr);
    case ExprKind::kFilter:
      return EvalFilter(node);
    case ExprKind::kTest:
      return EvalTest(node);
  }
  return {};
}

const Value* Interpreter::Find(NameId name) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [id, value] : scope->variables) {
      if (id == name) return &value;
    }
  }
  return nullptr;
}

Value Interpreter::EvalName(const Expr* node) {
  if (const Value* found = Find(node->name)) return *found;
  const std::string_view name = ast_.names[node->name];
  const NativeFn global = FindGlobal(name);
  if (global == nullptr) return MissingVariable(name);
  Callable* function = arena.New<Callable>();
  function->name = name;
  function->native = global;
  return Value::Of(function);
}

Value Interpreter::EvalList(const Expr* node) {
  Seq* seq = NewSeq(node->kind == ExprKind::kList ? SeqKind::kList : SeqKind::kTuple);
  seq->items.reserve(node->items.size());
  for (const Expr* item : node->items) seq->items.push_back(Eval(item));
  return Value::Of(seq);
}

Value Interpreter::EvalDict(const Expr* node) {
  Dict* dict = arena.New<Dict>(&arena);
  dict->entries.reserve(node->items.size() / 2);
  for (size_t i = 0; i + 1 < node->items.size(); i += 2) {
    const Value key = Eval(node->items[i]);
    SetKey(*this, *dict, key, Eval(node->items[i + 1]));
  }
  return Value::Of(dict);
}

Value Interpreter::EvalChain(const Expr* node) {
  Value left = Eval(node->items[0]);
  for (size_t i = 0; i < node->ops.size(); ++i) {
    left = Arithmetic(*this, node->ops[i], left, Eval(node->items[i + 1]));
  }
  return left;
}

Value Interpreter::EvalConcat(const Expr* node) {
  const Str* text = ToStr(*this, Eval(node->items[0]));
  for (size_t i = 1; i < node->items.size(); ++i) {
    text = Concat(arena, text, ToStr(*this, Eval(node->items[i])));
  }
  return Value::Of(AsPlain(*this, text));
}

Value Interpreter::EvalLogical(const Expr* node) {
  const bool stop_at = node->kind == ExprKind::kOr;
  Value value;
  for (const Expr* item : node->items) {
    value = Eval(item);
    if (IsTrue(value) == stop_at) break;
  }
  return value;
}

Value Interpreter::EvalCompare(const Expr* node) {
  Value left = Eval(node->items[0]);
  for (size_t i = 0; i < node->ops.size(); ++i) {
    const Value right = Eval(node->items[i + 1]);
    if (!Test(*this, node->ops[i], left, right)) return Value::Bool(false);
    left = right;
  }
  return Value::Bool(true);
}

Value Interpreter::EvalConditional(const Expr* node) {
  if (IsTrue(Eval(node->items[0]))) return Eval(node->items[1]);
  if (node->items[2] != nullptr) return Eval(node->items[2]);
  return Missing("the inline if-expression evaluated to false and no else section was defined");
}

Value Interpreter::EvalItem(const Expr* node) {
  const Value object = Eval(node->items[0]);
  const Expr* key = node->items[1];
  if (key->kind != ExprKind::kSlice) return GetItem(*this, object, Eval(key));
  std::array<Value, 3> bounds;
  for (size_t i = 0; i < 3; ++i) {
    bounds[i] = key->items[i] == nullptr ? Value::None() : Eval(key->items[i]);
  }
  return SliceOf(*this, object, bounds[0], bounds[1], bounds[2]);
}

Args Interpreter::EvalArgs(const Expr* node, const Callable* caller) {
  using Named = std::pair<std::string_view, Value>;
  std::pmr::vector<Value> positional(&arena);
  std::pmr::vector<Named> named(&arena);
  positional.reserve(node->items.size());
  for (size_t i = 1; i < node->items.size(); ++i) positional.push_back(Eval(node->items[i]));
  if (caller != nullptr) named.emplace_back("caller", Value::Of(caller));
  for (const auto& [name, value] : node->keywords)
    named.emplace_back(ast_.names[name], Eval(value));
  if (node->star != nullptr) {
    const Value star = Eval(node->star);
    if (!IsIterable(star)) Raise(kBadArgument, "{} can't be unpacked", TypeName(star));
    const auto items = Items(*this, star);
    ChargeItems(items.size());
    positional.insert(positional.end(), items.begin(), items.end());
  }
  if (node->star_star != nullptr) {
    const Value star = Eval(node->star_star);
    if (star.kind != Kind::kDict) Raise(kBadArgument, "{} is not a mapping", TypeName(star));
    for (const auto& [key, value] : star.dict->entries) {
      if (!key.is_string()) Raise(kBadArgument, "the names of arguments must be strings");
      named.emplace_back(Flat(arena, key.str)->view(), value);
    }
  }
  // The arena keeps what the vectors own; nothing else is freed with them.
  const std::span<const Value> all_positional(positional.data(), positional.size());
  const std::span<const Named> all_named(named.data(), named.size());
  return {all_positional, all_named};
}

Value Interpreter::EvalCall(const Expr* node, const Callable* caller) {
  const Value callee = Eval(node->items[0]);
  if (callee.is_undefined()) RaiseUndefined(callee);
  return Call(callee, EvalArgs(node, caller));
}

Value Interpreter::EvalFilter(const Expr* node) {
  const std::string_view name = ast_.names[node->name];
  const NativeFn filter = FindFilter(name);
  if (filter == nullptr) Raise("unknown_filter", "there is no filter named {}", name.substr(0, 80));
  const Value self = Eval(node->items[0]);
  return filter(*this, self, EvalArgs(node, nullptr));
}

Value Interpreter::EvalTest(const Expr* node) {
  const std::string_view name = ast_.names[node->name];
  const NativeFn test = FindTest(name);
  if (test == nullptr) Raise("unknown_test", "there is no test named {}", name.substr(0, 80));
  const Value self = Eval(node->items[0]);
  return test(*this, self, EvalArgs(node, nullptr));
}

Value Interpreter::Call(Value callee, const Args& args) {
  Charge();
  if (callee.kind == Kind::kCallable) {
    const Callable& function = *callee.callable;
    return function.macro != nullptr ? CallMacro(function, args)
                                     : function.native(*this, function.self, args);
  }
  if (callee.kind != Kind::kLoop) Raise(kBadArgument, "{} can't be called", TypeName(callee));
  const LoopState& loop = *callee.loop;
  if (loop.statement == nullptr) {
    Raise(kBadArgument, "the loop must have the 'recursive' marker to be called");
  }
  const Params params("loop", args, {"iterable"}, 1);
  const CallDepth depth(call_depth_);
  const ScopeGuard guard(*this, loop.scope);
  StrBuilder text(arena);
  StrBuilder* const outer = std::exchange(out_, &text);
  RunLoop(loop.statement, params.Get(0), loop.depth0 + 1);
  out_ = outer;
  return Value::Of(text.Finish());
}

}  // namespace vivace::jinja

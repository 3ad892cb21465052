#include "text/jinja/interpreter.h"

#include <algorithm>

#include "text/jinja/eval_depth.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {

Interpreter::Interpreter(const Ast& ast) : ast_(ast), scope_(NewScope(nullptr)) {}

void Interpreter::SetVariable(std::string_view name, Value value) {
  if (const auto it = ast_.name_ids.find(name); it != ast_.name_ids.end()) Set(it->second, value);
}

void Interpreter::Run(StrBuilder& out) {
  out_ = &out;
  scope_ = NewScope(scope_);  // the template's own variables shadow the request's
  Mask(ast_.masked);
  ExecBlock(ast_.root);
}

void Interpreter::Set(NameId name, Value value) {
  for (auto& [id, old] : scope_->variables) {
    if (id == name) {
      old = value;
      return;
    }
  }
  scope_->variables.emplace_back(name, value);
}

void Interpreter::Mask(const std::vector<NameId>& names) {
  for (const NameId name : names) {
    if (Find(name) != nullptr) Set(name, MissingVariable(ast_.names[name]));
  }
}

void Interpreter::Emit(Value value) { out_->AppendStr(ToStr(*this, value)); }

Interpreter::Flow Interpreter::ExecBlock(const Block& block) {
  const EvalDepth depth(*this);
  for (const Stmt* node : block) {
    Charge();
    line_ = node->line;
    if (const Flow flow = Exec(node); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::Exec(const Stmt* node) {
  switch (node->kind) {
    case StmtKind::kText:
      ChargeBytes(node->text->size);
      out_->AppendStr(node->text);
      break;
    case StmtKind::kOutput:
      for (const Expr* expr : node->exprs) Emit(Eval(expr));
      break;
    case StmtKind::kSet:
      Assign(node->target, Eval(node->value));
      break;
    case StmtKind::kIf:
      return ExecIf(node);
    case StmtKind::kFor:
      return ExecFor(node);
    case StmtKind::kSetBlock:
      return ExecSetBlock(node);
    case StmtKind::kMacro:
      ExecMacro(node);
      break;
    case StmtKind::kCallBlock:
      ExecCallBlock(node);
      break;
    case StmtKind::kFilterBlock:
      return ExecFilterBlock(node);
    case StmtKind::kWith:
      return ExecWith(node);
    case StmtKind::kScope:
      return ExecScope(node);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecIf(const Stmt* node) {
  for (const Branch& branch : node->branches) {
    if (branch.test == nullptr || IsTrue(Eval(branch.test))) return ExecBlock(branch.body);
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecFor(const Stmt* node) {
  return RunLoop(node, Eval(node->value), 0);
}

std::span<const Value> Interpreter::FilterItems(const Stmt* node, std::span<const Value> items) {
  Seq* kept = NewSeq(SeqKind::kList);
  const ScopeGuard guard(*this, NewScope(scope_));
  for (const Value& item : items) {
    Charge();
    Assign(node->target, item);
    if (IsTrue(Eval(node->test))) kept->items.push_back(item);
  }
  return kept->items;
}

Interpreter::Flow Interpreter::RunLoop(const Stmt* node, Value iterable, int64_t depth0) {
  if (!IsIterable(iterable)) Raise(kBadArgument, "{} can't be iterated", TypeName(iterable));
  std::span<const Value> items = Items(*this, iterable);
  if (node->test != nullptr) items = FilterItems(node, items);
  LoopState* loop = arena.New<LoopState>();
  loop->items = items;
  loop->depth0 = depth0;
  loop->scope = scope_;
  if (node->recursive) {
    loop->statement = node;
    for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) scope->captured = true;
  }
  const NameId loop_name = ast_.loop_name;
  const ScopeGuard guard(*this, NewScope(scope_));
  Scope* const outer = scope_->parent;
  bool completed = false;
  for (; loop->index0 < items.size(); ++loop->index0) {
    Charge();
    if (scope_->captured) {
      scope_ = NewScope(outer);
    } else {
      scope_->variables.clear();
    }
    Set(loop_name, Value::Of(loop));
    Assign(node->target, items[loop->index0]);
    Mask(node->masked);
    const Flow flow = ExecBlock(node->body);
    completed = completed || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  // jinja2's else is for loops of which no round came to its end, for lack of items or not.
  if (completed || node->otherwise.empty()) return Flow::kNext;
  scope_ = NewScope(outer);  // a macro of the last round may look into the one there was
  Mask(node->masked_otherwise);
  return ExecBlock(node->otherwise);  // a break there is one of the loop around
}

const Str* Interpreter::Capture(const Block& block, Flow* flow) {
  StrBuilder text(arena);
  StrBuilder* const outer = std::exchange(out_, &text);
  const Flow left_by = ExecBlock(block);
  if (flow != nullptr) *flow = left_by;
  out_ = outer;
  ChargeBytes(text.size());
  return text.Finish();
}

Interpreter::Flow Interpreter::ExecSetBlock(const Stmt* node) {
  Value value;
  Flow flow = Flow::kNext;
  {
    const ScopeGuard guard(*this, NewScope(scope_));
    Mask(node->masked);
    const Str* text = Capture(node->body, &flow);
    if (flow != Flow::kNext) return flow;
    Set(ast_.block_input_name, Value::Of(text));
    value = Eval(node->value);
  }
  Assign(node->target, value);
  return flow;
}

Interpreter::Flow Interpreter::ExecFilterBlock(const Stmt* node) {
  const ScopeGuard guard(*this, NewScope(scope_));
  Mask(node->masked);
  Flow flow = Flow::kNext;
  const Str* text = Capture(node->body, &flow);
  if (flow != Flow::kNext) return flow;
  Set(ast_.block_input_name, Value::Of(text));
  Emit(Eval(node->value));
  return flow;
}

const Callable* Interpreter::MakeMacro(const Stmt* node) {
  Callable* macro = arena.New<Callable>();
  macro->name = ast_.names[node->name];
  macro->macro = node;
  macro->closure = scope_;
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) scope->captured = true;
  return macro;
}

// The one behind `caller` has no name.
const Callable* Interpreter::MakeCaller(const Stmt* node) {
  const Callable* macro = MakeMacro(node);
  const_cast<Callable*>(macro)->name = {};  // just made
  return macro;
}

void Interpreter::ExecMacro(const Stmt* node) { Set(node->name, Value::Of(MakeMacro(node))); }

void Interpreter::ExecCallBlock(const Stmt* node) { Emit(EvalCall(node->value, MakeCaller(node))); }

Interpreter::Flow Interpreter::ExecWith(const Stmt* node) {
  std::vector<Value> values;
  for (const Expr* expr : node->exprs) values.push_back(Eval(expr));
  const ScopeGuard guard(*this, NewScope(scope_));
  for (size_t i = 0; i < values.size(); ++i) Assign(node->targets[i], values[i]);
  Mask(node->masked);
  return ExecBlock(node->body);
}

Interpreter::Flow Interpreter::ExecScope(const Stmt* node) {
  const ScopeGuard guard(*this, NewScope(scope_));
  Mask(node->masked);
  return ExecBlock(node->body);
}

void Interpreter::Assign(const Expr* target, Value value) {
  if (target->kind == ExprKind::kName) return Set(target->name, value);
  if (target->kind == ExprKind::kNamespaceRef) {
    const Value* space = Find(target->name);
    if (space == nullptr || space->kind != Kind::kNamespace || space->space->cycle != nullptr) {
      Raise(kBadArgument, "cannot assign attribute on non-namespace object");
    }
    return SetKey(*this, space->space->attributes, Text(ast_.names[target->member]), value);
  }
  if (value.is_undefined() && value.undefined != nullptr && !target->items.empty()) {
    Raise(kBadArgument, "not enough values to unpack (expected {}, got 0)", target->items.size());
  }
  if (!IsIterable(value)) Raise(kBadArgument, "cannot unpack {}", TypeName(value));
  const auto items = Items(*this, value);
  if (items.size() != target->items.size()) {
    Raise(kBadArgument, "cannot unpack {} values into {} names", items.size(),
          target->items.size());
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(target->items[i], items[i]);
}

Value Interpreter::CallMacro(const Callable& macro, const Args& args) {
  const CallDepth depth(call_depth_);
  const uint32_t line = line_;
  const ScopeGuard guard(*this, NewScope(macro.closure));
  Mask(macro.macro->masked);
  BindParameters(macro.macro, macro.name, args);
  const Str* text = Capture(macro.macro->body);
  line_ = line;
  return Value::Of(text);
}

void Interpreter::BindParameters(const Stmt* node, std::string_view name, const Args& args) {
  const size_t count = node->parameters.size();
  const size_t first_default = count - node->defaults.size();
  std::vector<bool> used(args.named.size());
  const auto take_named = [&](std::string_view wanted) -> const Value* {
    for (size_t i = 0; i < args.named.size(); ++i) {
      if (used[i] || args.named[i].first != wanted) continue;
      used[i] = true;
      return &args.named[i].second;
    }
    return nullptr;
  };
  std::vector<bool> absent(count);
  bool caller_declared = false;
  for (size_t i = 0; i < count; ++i) {
    const NameId parameter = node->parameters[i];
    const std::string_view spelled = ast_.names[parameter];
    caller_declared = caller_declared || spelled == "caller";
    const Value* given = i < args.positional.size() ? &args.positional[i] : take_named(spelled);
    Set(parameter, given != nullptr ? *given : MissingVariable(spelled));
    absent[i] = given == nullptr;
  }
  // Defaults see all parameters, their own (still undefined) included.
  for (size_t i = first_default; i < count; ++i) {
    if (absent[i]) Set(node->parameters[i], Eval(node->defaults[i - first_default]));
  }
  if (node->uses_caller && !caller_declared) {
    const Value* caller = take_named("caller");
    Set(ast_.caller_name, caller != nullptr ? *caller : Missing("No caller defined"));
  }
  Dict* rest = arena.New<Dict>(&arena);
  for (size_t i = 0; i < args.named.size(); ++i) {
    if (used[i]) continue;
    if (!node->uses_kwargs) {
      Raise(kBadArgument, "macro {} takes no argument named {}", name, args.named[i].first);
    }
    SetKey(*this, *rest, Text(args.named[i].first), args.named[i].second);
  }
  if (node->uses_kwargs) Set(ast_.kwargs_name, Value::Of(rest));
  if (!node->uses_varargs && args.positional.size() > count) {
    Raise(kBadArgument, "macro {} takes at most {} arguments", name, count);
  }
  if (!node->uses_varargs) return;
  Seq* more = NewSeq(SeqKind::kTuple);
  if (args.positional.size() > count) {
    const auto tail = args.positional.subspan(count);
    more->items.assign(tail.begin(), tail.end());
  }
  Set(ast_.varargs_name, Value::Of(more));
}

}  // namespace vivace::jinja

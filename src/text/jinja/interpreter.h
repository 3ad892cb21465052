// Walks the Ast of a template with the values of one request. One object per render, one thread;
// recursion is bounded by limits::kTemplateCallDepth and kTemplateEvalDepth, so that a 512 KiB
// stack is enough. Throws TemplateError.
#pragma once

#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"

namespace vivace::jinja {

// Variables of one block; an assignment never leaves it. Found through `parent` otherwise.
struct Scope {
  Scope(Scope* outer, std::pmr::memory_resource* memory) : parent(outer), variables(memory) {}
  Scope* parent;
  std::pmr::vector<std::pair<NameId, Value>> variables;
  bool captured = false;  // a macro may look here later: not to be reused
};

class Interpreter final : public Runtime {
 public:
  explicit Interpreter(const Ast& ast);

  // A variable of the request; names the template never mentions are ignored.
  bool Mentions(std::string_view name) const { return ast_.name_ids.contains(name); }
  void SetVariable(std::string_view name, Value value);

  // The rendered text with its runs, in the builder.
  void Run(StrBuilder& out);

  Value Call(Value callee, const Args& args) override;
  uint32_t line() const { return line_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class EvalDepth;
  class ScopeGuard;

  Value Eval(const Expr* node);
  Value EvalName(const Expr* node);
  Value EvalList(const Expr* node);
  Value EvalDict(const Expr* node);
  Value EvalChain(const Expr* node);
  Value EvalConcat(const Expr* node);
  Value EvalLogical(const Expr* node);
  Value EvalCompare(const Expr* node);
  Value EvalConditional(const Expr* node);
  Value EvalItem(const Expr* node);
  Value EvalCall(const Expr* node, const Callable* caller);
  Value EvalFilter(const Expr* node);
  Value EvalTest(const Expr* node);
  Args EvalArgs(const Expr* node, const Callable* caller);

  Flow ExecBlock(const Block& block);
  Flow Exec(const Stmt* node);
  Flow ExecIf(const Stmt* node);
  Flow ExecFor(const Stmt* node);
  Flow ExecSetBlock(const Stmt* node);
  void ExecMacro(const Stmt* node);
  void ExecCallBlock(const Stmt* node);
  Flow ExecFilterBlock(const Stmt* node);
  Flow ExecWith(const Stmt* node);
  Flow ExecScope(const Stmt* node);

  Flow RunLoop(const Stmt* node, Value iterable, int64_t depth0);
  std::span<const Value> FilterItems(const Stmt* node, std::span<const Value> items);
  Value CallMacro(const Callable& macro, const Args& args);
  void BindParameters(const Stmt* node, std::string_view name, const Args& args);
  // The text of a block. What `flow` says is the caller's to follow: then the text counts for
  // nothing.
  const Str* Capture(const Block& block, Flow* flow = nullptr);
  const Callable* MakeMacro(const Stmt* node);
  const Callable* MakeCaller(const Stmt* node);

  // Hides request variables that the scope entered now assigns before it reads them.
  void Mask(const std::vector<NameId>& names);
  void Emit(Value value);
  void Assign(const Expr* target, Value value);
  void Set(NameId name, Value value);
  const Value* Find(NameId name) const;
  Scope* NewScope(Scope* parent) { return arena.New<Scope>(parent, &arena); }

  const Ast& ast_;
  Scope* scope_;
  StrBuilder* out_ = nullptr;
  uint32_t line_ = 1;
  int eval_depth_ = 0;
  int call_depth_ = 0;
};

}  // namespace vivace::jinja

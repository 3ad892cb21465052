// Guards of the interpreter's recursion and of its current scope. Private to its two source files.
#pragma once

#include "text/jinja/interpreter.h"

namespace vivace::jinja {

// One nested evaluation, over all calls together: this is what bounds the machine stack.
class Interpreter::EvalDepth {
 public:
  explicit EvalDepth(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter_.eval_depth_ > limits::kTemplateEvalDepth) {
      --interpreter_.eval_depth_;
      Raise(kDepthLimit, "the template nests more than {} evaluations", limits::kTemplateEvalDepth);
    }
  }
  ~EvalDepth() { --interpreter_.eval_depth_; }
  EvalDepth(const EvalDepth&) = delete;

 private:
  Interpreter& interpreter_;
};

// One call of a macro or of a recursive loop.
class CallDepth {
 public:
  explicit CallDepth(int& depth) : depth_(depth) {
    if (depth_ >= limits::kTemplateCallDepth) {
      Raise(kDepthLimit, "macros call each other deeper than {} levels",
            limits::kTemplateCallDepth);
    }
    ++depth_;
  }
  ~CallDepth() { --depth_; }
  CallDepth(const CallDepth&) = delete;

 private:
  int& depth_;
};

// Makes `scope` the current one and restores the old one.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& interpreter, Scope* scope)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.scope_, scope)) {}
  ~ScopeGuard() { interpreter_.scope_ = outer_; }
  ScopeGuard(const ScopeGuard&) = delete;

 private:
  Interpreter& interpreter_;
  Scope* outer_;
};

}  // namespace vivace::jinja

// What filters, methods and operators need of a running template: memory, the step budget, and the
// way back into the interpreter. One per render, one thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <initializer_list>
#include <string_view>

#include "base/limits.h"
#include "text/jinja/value.h"

namespace vivace::jinja {

class Runtime {
 public:
  Runtime() : arena(limits::kTemplateLiveBytes) {}
  virtual ~Runtime() = default;

  // Calls a macro, a function, a bound method or a recursive loop.
  virtual Value Call(Value callee, const Args& args) = 0;

  // One unit for each small piece of work; more for work over many bytes or items.
  void Charge(int64_t steps = 1) {
    if ((steps_left_ -= steps) < 0) {
      Raise(kStepLimit, "the template takes more than {} steps", limits::kTemplateSteps);
    }
  }
  void ChargeBytes(size_t bytes) { Charge(static_cast<int64_t>(bytes >> 8)); }
  void ChargeItems(size_t items) { Charge(static_cast<int64_t>(items >> 4)); }

  // Guards recursion over the values themselves (printing, comparing).
  class Nesting {
   public:
    explicit Nesting(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.value_depth_ > limits::kTemplateDepth) {
        Raise(kNestingLimit, "a value nests deeper than {} levels", limits::kTemplateDepth);
      }
    }
    ~Nesting() { --runtime_.value_depth_; }

   private:
    Runtime& runtime_;
  };

  Value Text(std::string_view copied, bool trusted = true) {
    ChargeBytes(copied.size());
    return Value::Of(CopyStr(arena, copied, trusted));
  }
  Seq* NewSeq(SeqKind kind) { return arena.New<Seq>(kind, &arena); }
  Value List(std::initializer_list<Value> items, SeqKind kind = SeqKind::kList) {
    Seq* seq = NewSeq(kind);
    seq->items.assign(items);
    return Value::Of(seq);
  }
  Value MissingVariable(std::string_view name);
  Value MissingAttribute(Value owner, std::string_view name, bool forbidden = false);
  Value Missing(std::string_view hint);

  Arena arena;
  std::tm now = {};  // what strftime_now tells

 private:
  int64_t steps_left_ = limits::kTemplateSteps;
  int value_depth_ = 0;
};

// Binds the arguments of a native function to parameter names, as Python does.
class Params {
 public:
  Params(std::string_view function, const Args& args, std::initializer_list<const char*> names,
         size_t required = 0);
  bool Has(size_t i) const { return present_[i]; }
  Value Get(size_t i, Value fallback = Value::None()) const {
    return present_[i] ? values_[i] : fallback;
  }
  int64_t Int(size_t i, int64_t fallback) const;
  bool Truthy(size_t i, bool fallback) const;
  // The string at `i`, flat; null when it is absent or None.
  const Str* OptionalStr(Runtime& runtime, size_t i) const;

 private:
  static constexpr size_t kMax = 8;
  std::string_view function_;
  const char* names_[kMax] = {};
  Value values_[kMax];
  bool present_[kMax] = {};
};

// [[noreturn]] with the message of the undefined value, as the operation on it would in Python.
[[noreturn]] void RaiseUndefined(Value value);

}  // namespace vivace::jinja

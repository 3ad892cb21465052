// The tests of `is`.
#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {
namespace {

template <bool (*kPredicate)(Value)>
Value Simple(Runtime&, Value self, const Args& args) {
  Params("this test", args, {});
  return Value::Bool(kPredicate(self));
}

template <Op kOp>
Value Comparison(Runtime& runtime, Value self, const Args& args) {
  const Params params("this test", args, {"other"}, 1);
  return Value::Bool(Test(runtime, kOp, self, params.Get(0)));
}

bool IsDefined(Value v) { return !v.is_undefined(); }
bool IsUndefined(Value v) { return v.is_undefined(); }
bool IsNone(Value v) { return v.is_none(); }
bool IsString(Value v) { return v.is_string(); }
bool IsMapping(Value v) { return v.kind == Kind::kDict; }
bool IsNumber(Value v) { return v.is_number(); }
bool IsInteger(Value v) { return v.kind == Kind::kInt; }
bool IsFloat(Value v) { return v.kind == Kind::kFloat; }
bool IsBoolean(Value v) { return v.kind == Kind::kBool; }
bool IsTrueValue(Value v) { return v.kind == Kind::kBool && v.boolean; }
bool IsFalseValue(Value v) { return v.kind == Kind::kBool && !v.boolean; }
bool IsCallable(Value v) {
  return v.kind == Kind::kCallable || v.kind == Kind::kLoop || v.is_undefined();
}
bool IsSequence(Value v) {
  switch (v.kind) {
    case Kind::kString:
    case Kind::kRange:
    case Kind::kDict:
    case Kind::kUndefined:
      return true;
    case Kind::kSeq:
      return v.seq->is_tuple() || v.seq->kind == SeqKind::kList;
    default:
      return false;
  }
}
bool IsEscaped(Value v) { return v.is_string() && v.str->markup; }

Value Divisible(Runtime& runtime, Value self, const Args& args) {
  const Params params("divisibleby", args, {"num"}, 1);
  const Value rest = Arithmetic(runtime, Op::kMod, self, params.Get(0));
  return Value::Bool(Equal(runtime, rest, Value::Int(0)));
}

template <int64_t kRest>
Value Parity(Runtime& runtime, Value self, const Args& args) {
  Params("this test", args, {});
  const Value rest = Arithmetic(runtime, Op::kMod, self, Value::Int(2));
  return Value::Bool(Equal(runtime, rest, Value::Int(kRest)));
}

template <bool kUpper>
Value CaseTest(Runtime& runtime, Value self, const Args& args) {
  Params("this test", args, {});
  const NativeFn method = FindStringMethod(kUpper ? "isupper" : "islower");
  return method(runtime, Value::Of(ToStr(runtime, self)), {});
}

Value SameAs(Runtime&, Value self, const Args& args) {
  const Params params("sameas", args, {"other"}, 1);
  return Value::Bool(SameObject(self, params.Get(0)));
}

template <NativeFn (*kFind)(std::string_view)>
Value Exists(Runtime& runtime, Value self, const Args& args) {
  Params("this test", args, {});
  if (!IsHashable(self)) Raise(kBadArgument, "{} can't be a name", TypeName(self));
  return Value::Bool(self.is_string() && kFind(Flat(runtime.arena, self.str)->view()) != nullptr);
}

constexpr Builtin kTests[] = {{"defined", Simple<IsDefined>},
                              {"undefined", Simple<IsUndefined>},
                              {"none", Simple<IsNone>},
                              {"string", Simple<IsString>},
                              {"mapping", Simple<IsMapping>},
                              {"number", Simple<IsNumber>},
                              {"integer", Simple<IsInteger>},
                              {"float", Simple<IsFloat>},
                              {"boolean", Simple<IsBoolean>},
                              {"true", Simple<IsTrueValue>},
                              {"false", Simple<IsFalseValue>},
                              {"callable", Simple<IsCallable>},
                              {"sequence", Simple<IsSequence>},
                              {"iterable", Simple<IsIterable>},
                              {"escaped", Simple<IsEscaped>},
                              {"odd", Parity<1>},
                              {"even", Parity<0>},
                              {"divisibleby", Divisible},
                              {"lower", CaseTest<false>},
                              {"upper", CaseTest<true>},
                              {"sameas", SameAs},
                              {"filter", Exists<FindFilter>},
                              {"test", Exists<FindTest>},
                              {"in", Comparison<Op::kIn>},
                              {"eq", Comparison<Op::kEq>},
                              {"equalto", Comparison<Op::kEq>},
                              {"==", Comparison<Op::kEq>},
                              {"ne", Comparison<Op::kNe>},
                              {"!=", Comparison<Op::kNe>},
                              {"lt", Comparison<Op::kLt>},
                              {"<", Comparison<Op::kLt>},
                              {"lessthan", Comparison<Op::kLt>},
                              {"le", Comparison<Op::kLe>},
                              {"<=", Comparison<Op::kLe>},
                              {"gt", Comparison<Op::kGt>},
                              {">", Comparison<Op::kGt>},
                              {"greaterthan", Comparison<Op::kGt>},
                              {"ge", Comparison<Op::kGe>},
                              {">=", Comparison<Op::kGe>}};

}  // namespace

std::span<const Builtin> Tests() { return kTests; }

}  // namespace vivace::jinja

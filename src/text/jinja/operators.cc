#include "text/jinja/operators.h"

#include <cmath>
#include <cstring>

#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/text_ops.h"

namespace vivace::jinja {
namespace {

[[noreturn]] void RaiseTypes(const char* what, Value left, Value right) {
  if (left.is_undefined()) RaiseUndefined(left);
  if (right.is_undefined()) RaiseUndefined(right);
  Raise(kBadArgument, "{} is not supported between {} and {}", what, TypeName(left),
        TypeName(right));
}

std::string_view FlatView(Runtime& runtime, const Str* text) {
  return Flat(runtime.arena, text)->view();
}

bool EqualStr(Runtime& runtime, const Str* left, const Str* right) {
  if (left->size != right->size) return false;
  runtime.ChargeBytes(left->size);
  return FlatView(runtime, left) == FlatView(runtime, right);
}

int CompareNumbers(Value left, Value right) {
  if (left.is_integral() && right.is_integral()) {
    const int64_t a = left.as_integer(), b = right.as_integer();
    return a < b ? -1 : a > b;
  }
  // An 80-bit long double holds both operands exactly.
  const auto wide = [](Value v) {
    return v.is_integral() ? static_cast<long double>(v.as_integer())
                           : static_cast<long double>(v.real);
  };
  const long double a = wide(left), b = wide(right);
  if (std::isnan(a) || std::isnan(b)) return kUnordered;
  return a < b ? -1 : a > b;
}

bool EqualDict(Runtime& runtime, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = FindKey(runtime, right, key);
    if (other == nullptr || !Equal(runtime, value, *other)) return false;
  }
  return true;
}

bool EqualRange(const Range& left, const Range& right) {
  if (left.size() != right.size()) return false;
  if (left.size() == 0) return true;
  return left.start == right.start && (left.size() == 1 || left.step == right.step);
}

bool EqualSeq(Runtime& runtime, const Seq& left, const Seq& right) {
  const bool tuples = left.is_tuple() && right.is_tuple();
  const bool lists = left.kind == SeqKind::kList && right.kind == SeqKind::kList;
  if ((!tuples && !lists) || left.items.size() != right.items.size()) return &left == &right;
  for (size_t i = 0; i < left.items.size(); ++i) {
    if (!Equal(runtime, left.items[i], right.items[i])) return false;
  }
  return true;
}

// By reference: the overflow built-ins write `value` while the arguments are evaluated.
int64_t Checked(bool overflow, const int64_t& value) {
  if (overflow) Raise(kBadArgument, "an integer result does not fit 64 bits");
  return value;
}

int64_t FloorDiv(int64_t a, int64_t b) {
  if (b == 0) Raise(kBadArgument, "division by zero");
  if (b == -1) {
    int64_t result = 0;
    return Checked(__builtin_sub_overflow(int64_t{0}, a, &result), result);
  }
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

int64_t FloorMod(int64_t a, int64_t b) {
  if (b == 0) Raise(kBadArgument, "modulo by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value PowerInt(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) Raise(kBadArgument, "zero to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  bool overflow = false, base_overflow = false;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) {
      overflow = base_overflow || __builtin_mul_overflow(result, base, &result) || overflow;
    }
    base_overflow = __builtin_mul_overflow(base, base, &base) || base_overflow;
  }
  return Value::Int(Checked(overflow, result));
}

Value IntArithmetic(Op op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      return Value::Int(Checked(__builtin_add_overflow(a, b, &result), result));
    case Op::kSub:
      return Value::Int(Checked(__builtin_sub_overflow(a, b, &result), result));
    case Op::kMul:
      return Value::Int(Checked(__builtin_mul_overflow(a, b, &result), result));
    case Op::kFloorDiv:
      return Value::Int(FloorDiv(a, b));
    case Op::kMod:
      return Value::Int(FloorMod(a, b));
    case Op::kPow:
      return PowerInt(a, b);
    default:
      break;
  }
  if (b == 0) Raise(kBadArgument, "division by zero");
  // Rounded once: by the division itself where both are exact as doubles.
  constexpr int64_t kExact = int64_t{1} << 53;
  if (a >= -kExact && a <= kExact && b >= -kExact && b <= kExact) {
    return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  }
  return Value::Float(
      static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
}

double FloatMod(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) return (rest < 0) != (b < 0) ? rest + b : rest;
  return std::copysign(0.0, b);
}

double FloatFloorDiv(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Value FloatArithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::Float(a + b);
    case Op::kSub:
      return Value::Float(a - b);
    case Op::kMul:
      return Value::Float(a * b);
    default:
      break;
  }
  if (op == Op::kPow) {
    const double result = std::pow(a, b);
    const bool finite = std::isfinite(a) && std::isfinite(b);
    if (finite && !std::isfinite(result)) Raise(kBadArgument, "a power is out of range");
    if (finite && std::isnan(result)) Raise(kBadArgument, "a power is not a real number");
    return Value::Float(result);
  }
  if (b == 0) Raise(kBadArgument, "division by zero");
  return Value::Float(op == Op::kDiv   ? a / b
                      : op == Op::kMod ? FloatMod(a, b)
                                       : FloatFloorDiv(a, b));
}

Value Repeat(Runtime& runtime, Value value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  if (value.is_string()) {
    const Str* text = Flat(runtime.arena, value.str);
    if (count == 0 || text->size == 0) {
      return Value::Of(Like(runtime, text, MakeStr(runtime.arena, "", true)));
    }
    if (count > limits::kTemplateOutputBytes / text->size) {
      Raise(kOutputLimit, "a string would be longer than {} bytes", limits::kTemplateOutputBytes);
    }
    StrBuilder builder(runtime.arena);
    builder.Reserve(count * text->size);
    runtime.ChargeBytes(count * text->size);
    runtime.ChargeItems(count);
    for (size_t i = 0; i < count; ++i) builder.AppendStr(text);
    return Value::Of(Like(runtime, text, builder.Finish()));
  }
  const Seq& source = *value.seq;
  if (!source.items.empty() &&
      count > limits::kTemplateLiveBytes / sizeof(Value) / source.items.size()) {
    Raise(kMemoryLimit, "a list would have more than {} items",
          limits::kTemplateLiveBytes / sizeof(Value));
  }
  Seq* result = runtime.NewSeq(source.is_tuple() ? SeqKind::kTuple : SeqKind::kList);
  runtime.ChargeItems(source.items.size() * count);
  if (!source.items.empty()) result->items.reserve(source.items.size() * count);
  for (size_t i = 0; i < count && !source.items.empty(); ++i) {
    result->items.insert(result->items.end(), source.items.begin(), source.items.end());
  }
  return Value::Of(result).Tainted(value.tainted);
}

const Str* AddText(Runtime& runtime, const Str* left, const Str* right) {
  if (!left->markup && !right->markup) return Concat(runtime.arena, left, right);
  const Str* sum = Concat(runtime.arena, EscapeHtml(runtime, left), EscapeHtml(runtime, right));
  const_cast<Str*>(sum)->markup = true;  // just made, or markup already
  return sum;
}

bool IsRepeatable(Value value) {
  return value.is_string() ||
         (value.kind == Kind::kSeq && (value.seq->kind == SeqKind::kList || value.seq->is_tuple()));
}

// The clamped bounds of a Python slice over `length` items.
struct Bounds {
  int64_t start, stop, step, count;
};

Bounds SliceBounds(Value start, Value stop, Value step, int64_t length) {
  const auto number = [](Value v) {
    if (v.is_undefined()) RaiseUndefined(v);
    if (!v.is_integral()) Raise(kBadArgument, "slice bounds must be integers or none");
    return v.as_integer();
  };
  Bounds b{};
  b.step = step.is_none() ? 1 : number(step);
  if (b.step == 0) Raise(kBadArgument, "a slice step can't be zero");
  if (b.step == INT64_MIN) b.step = -INT64_MAX;  // its negation must exist
  const int64_t low = b.step < 0 ? -1 : 0, high = b.step < 0 ? length - 1 : length;
  const auto clamp = [&](Value v, int64_t missing) {
    if (v.is_none()) return missing;
    int64_t at = number(v);
    if (at < 0) at = at < -length ? low : at + length;
    return std::clamp(at, low, high);
  };
  b.start = clamp(start, b.step < 0 ? high : low);
  b.stop = clamp(stop, b.step < 0 ? low : high);
  b.count = std::min(Range{b.start, b.stop, b.step}.size(), length);
  return b;
}

Value SliceStr(Runtime& runtime, const Str* text, const Bounds& b) {
  text = Flat(runtime.arena, text);
  runtime.ChargeBytes(text->size);
  const auto offset = [&](int64_t index) {
    const auto i = static_cast<size_t>(index);
    return text->ascii ? i : CodePointOffset(text->view(), i);
  };
  if (b.step == 1) {
    const size_t begin = offset(b.start);
    return Value::Of(Slice(runtime.arena, text, begin, std::max(begin, offset(b.stop))));
  }
  runtime.ChargeItems(static_cast<size_t>(b.count));
  std::vector<uint32_t> starts;  // of each code point
  for (size_t at = 0; at < text->size;) {
    starts.push_back(static_cast<uint32_t>(at));
    NextCodePoint(text->view(), at);
  }
  starts.push_back(static_cast<uint32_t>(text->size));
  StrBuilder builder(runtime.arena);
  for (int64_t i = 0, at = b.start; i < b.count; ++i, at += b.step) {
    builder.AppendSlice(text, starts[static_cast<size_t>(at)], starts[static_cast<size_t>(at) + 1]);
  }
  return Value::Of(Like(runtime, text, builder.Finish()));
}

Value ItemAt(Runtime& runtime, Value object, int64_t index) {
  const int64_t length = Length(runtime, object);
  const int64_t at = index < 0 ? index + length : index;
  if (at < 0 || at >= length) return runtime.MissingAttribute(object, "index");
  if (object.kind == Kind::kRange) return object.range->at(at);
  if (object.kind == Kind::kSeq) return object.seq->items[static_cast<size_t>(at)];
  const Bounds one{at, at + 1, 1, 1};
  return SliceStr(runtime, object.str, one);
}

bool IsIndexable(Value object) {
  return object.is_string() || object.kind == Kind::kRange ||
         (object.kind == Kind::kSeq &&
          (object.seq->kind == SeqKind::kList || object.seq->is_tuple()));
}

}  // namespace

void RaisePending(Seq& generator) {
  if (generator.failure == nullptr) return;
  const PendingError failure = *std::exchange(generator.failure, nullptr);
  throw TemplateError{failure.reason, std::string(failure.message)};
}

bool IsTrue(Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.real != 0;
    case Kind::kString:
      return value.str->size != 0;
    case Kind::kSeq:
      return value.seq->kind == SeqKind::kGenerator || !value.seq->items.empty();
    case Kind::kRange:
      return value.range->size() != 0;
    case Kind::kDict:
      return !value.dict->entries.empty();
    case Kind::kLoop:
      return !value.loop->items.empty();
    case Kind::kNamespace:
    case Kind::kCallable:
      return true;
  }
  return true;
}

bool Equal(Runtime& runtime, Value left, Value right) {
  runtime.Charge();
  if (left.is_number() && right.is_number()) return CompareNumbers(left, right) == 0;
  if (left.kind != right.kind) return false;
  const Runtime::Nesting nesting(runtime);
  switch (left.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return EqualStr(runtime, left.str, right.str);
    case Kind::kSeq:
      return EqualSeq(runtime, *left.seq, *right.seq);
    case Kind::kDict:
      return EqualDict(runtime, *left.dict, *right.dict);
    case Kind::kRange:
      return EqualRange(*left.range, *right.range);
    default:
      return left.integer == right.integer;  // the same object
  }
}

bool SameObject(Value left, Value right) {
  if (left.kind != right.kind) return false;
  if (left.is_none() || left.is_undefined()) return true;
  if (left.kind == Kind::kBool) return left.boolean == right.boolean;
  return left.integer == right.integer;
}

int Compare(Runtime& runtime, Value left, Value right) {
  runtime.Charge();
  if (left.is_number() && right.is_number()) return CompareNumbers(left, right);
  if (left.is_string() && right.is_string()) {
    runtime.ChargeBytes(std::min(left.str->size, right.str->size));
    // UTF-8 sorts as its code points do.
    return FlatView(runtime, left.str).compare(FlatView(runtime, right.str));
  }
  const bool sequences = left.kind == Kind::kSeq && right.kind == Kind::kSeq && IsIndexable(left) &&
                         IsIndexable(right) && left.seq->is_tuple() == right.seq->is_tuple();
  if (!sequences) RaiseTypes("an order", left, right);
  const Runtime::Nesting nesting(runtime);
  const auto &a = left.seq->items, &b = right.seq->items;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!Equal(runtime, a[i], b[i])) return Compare(runtime, a[i], b[i]);
  }
  return a.size() < b.size() ? -1 : a.size() > b.size();
}

bool Test(Runtime& runtime, Op comparison, Value left, Value right) {
  switch (comparison) {
    case Op::kEq:
      return Equal(runtime, left, right);
    case Op::kNe:
      return !Equal(runtime, left, right);
    case Op::kIn:
      return Contains(runtime, right, left);
    case Op::kNotIn:
      return !Contains(runtime, right, left);
    default:
      break;
  }
  const int order = Compare(runtime, left, right);
  const bool unordered = order == kUnordered && left.is_number();
  switch (comparison) {
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return !unordered && order > 0;
    default:
      return !unordered && order >= 0;
  }
}

bool Contains(Runtime& runtime, Value container, Value item) {
  runtime.Charge();
  switch (container.kind) {
    case Kind::kString: {
      if (!item.is_string()) RaiseTypes("'in'", item, container);
      const std::string_view text = FlatView(runtime, container.str);
      const std::string_view word = FlatView(runtime, item.str);
      runtime.ChargeBytes(text.size());
      return word.empty() || memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
    }
    case Kind::kDict:
      if (!IsHashable(item)) Raise(kBadArgument, "{} can't be a key", TypeName(item));
      return FindKey(runtime, *container.dict, item) != nullptr;
    case Kind::kUndefined:
      return false;
    default:
      break;
  }
  if (!IsIterable(container)) RaiseTypes("'in'", item, container);
  for (const Value& other : Items(runtime, container)) {
    if (SameObject(item, other) || Equal(runtime, item, other)) return true;
  }
  return false;
}

Value Arithmetic(Runtime& runtime, Op op, Value left, Value right) {
  runtime.Charge();
  const bool tainted = left.tainted || right.tainted;
  if (left.is_number() && right.is_number()) {
    const bool ints = left.is_integral() && right.is_integral();
    return (ints ? IntArithmetic(op, left.as_integer(), right.as_integer())
                 : FloatArithmetic(op, left.as_real(), right.as_real()))
        .Tainted(tainted);
  }
  if (op == Op::kAdd && left.is_string() && right.is_string()) {
    return Value::Of(AddText(runtime, left.str, right.str));
  }
  if (op == Op::kMod && left.is_string()) {
    return FormatPercent(runtime, left.str, right);
  }
  if (op == Op::kMul && IsRepeatable(left) && right.is_integral()) {
    return Repeat(runtime, left, right.as_integer());
  }
  if (op == Op::kMul && IsRepeatable(right) && left.is_integral()) {
    return Repeat(runtime, right, left.as_integer());
  }
  if (op == Op::kAdd && left.kind == Kind::kSeq && right.kind == Kind::kSeq && IsRepeatable(left) &&
      IsRepeatable(right) && left.seq->is_tuple() == right.seq->is_tuple()) {
    Seq* sum = runtime.NewSeq(left.seq->is_tuple() ? SeqKind::kTuple : SeqKind::kList);
    sum->items.reserve(left.seq->items.size() + right.seq->items.size());
    sum->items.assign(left.seq->items.begin(), left.seq->items.end());
    sum->items.insert(sum->items.end(), right.seq->items.begin(), right.seq->items.end());
    runtime.ChargeItems(sum->items.size());
    return Value::Of(sum).Tainted(tainted);
  }
  RaiseTypes("this operator", left, right);
}

Value Negate(Runtime& runtime, Value value) {
  if (value.kind == Kind::kFloat) return Value::Float(-value.real).Tainted(value.tainted);
  return Arithmetic(runtime, Op::kSub, Value::Int(0), value);
}

Value Plus(Value value) {
  if (value.is_undefined()) RaiseUndefined(value);
  if (!value.is_number()) Raise(kBadArgument, "{} has no sign", TypeName(value));
  return value.is_integral() ? Value::Int(value.as_integer()).Tainted(value.tainted) : value;
}

bool IsHashable(Value value) {
  if (value.kind == Kind::kDict) return false;
  if (value.kind != Kind::kSeq) return true;
  if (!value.seq->is_tuple()) return value.seq->kind != SeqKind::kList;
  // A tuple of tuples is bounded in height by how it can be built; look one level down.
  for (const Value& item : value.seq->items) {
    if (item.kind == Kind::kDict || (item.kind == Kind::kSeq && item.seq->kind == SeqKind::kList)) {
      return false;
    }
  }
  return true;
}

bool HasLength(Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kRange:
    case Kind::kDict:
    case Kind::kLoop:
      return true;
    case Kind::kSeq:
      return value.seq->kind != SeqKind::kGenerator;
    default:
      return false;
  }
}

int64_t Length(Runtime& runtime, Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString: {
      const Str* text = Flat(runtime.arena, value.str);
      if (text->ascii) return static_cast<int64_t>(text->size);
      runtime.ChargeBytes(text->size);
      return static_cast<int64_t>(CountCodePoints(text->view()));
    }
    case Kind::kRange:
      return value.range->size();
    case Kind::kDict:
      return static_cast<int64_t>(value.dict->entries.size());
    case Kind::kLoop:
      return static_cast<int64_t>(value.loop->items.size());
    case Kind::kSeq:
      if (HasLength(value)) return static_cast<int64_t>(value.seq->items.size());
      [[fallthrough]];
    default:
      Raise(kBadArgument, "{} has no length", TypeName(value));
  }
}

Value SliceOf(Runtime& runtime, Value value, Value start, Value stop, Value step) {
  if (value.is_undefined()) RaiseUndefined(value);
  if (!IsIndexable(value)) Raise(kBadArgument, "{} can't be sliced", TypeName(value));
  const Bounds b = SliceBounds(start, stop, step, Length(runtime, value));
  if (value.is_string()) return SliceStr(runtime, value.str, b);
  runtime.ChargeItems(static_cast<size_t>(b.count));
  if (value.kind == Kind::kRange) {
    const Range& source = *value.range;
    Range* range = runtime.arena.New<Range>();
    const auto at = [&](int64_t index) {  // one past the ends may not fit
      int64_t offset = 0, sum = 0;
      const bool overflow = __builtin_mul_overflow(index, source.step, &offset) ||
                            __builtin_add_overflow(source.start, offset, &sum);
      return Checked(overflow, sum);
    };
    range->start = at(b.start);
    range->stop = at(b.stop);
    range->step = IntArithmetic(Op::kMul, source.step, b.step).integer;
    return Value::Of(range);
  }
  Seq* seq = runtime.NewSeq(value.seq->is_tuple() ? SeqKind::kTuple : SeqKind::kList);
  seq->items.reserve(static_cast<size_t>(b.count));
  for (int64_t i = 0, at = b.start; i < b.count; ++i, at += b.step) {
    seq->items.push_back(value.seq->items[static_cast<size_t>(at)]);
  }
  return Value::Of(seq).Tainted(value.tainted);
}

const Value* FindKey(Runtime& runtime, const Dict& dict, Value key) {
  if (key.is_string()) return FindKey(runtime, dict, FlatView(runtime, key.str));
  runtime.ChargeItems(dict.entries.size());
  for (const auto& [other, value] : dict.entries) {
    if (other.kind != Kind::kString && (SameObject(key, other) || Equal(runtime, key, other))) {
      return &value;
    }
  }
  return nullptr;
}

const Value* FindKey(Runtime& runtime, const Dict& dict, std::string_view key) {
  runtime.ChargeItems(dict.entries.size());
  for (const auto& [other, value] : dict.entries) {
    if (other.kind == Kind::kString && other.str->size == key.size() &&
        FlatView(runtime, other.str) == key) {
      return &value;
    }
  }
  return nullptr;
}

void SetKey(Runtime& runtime, Dict& dict, Value key, Value value) {
  if (!IsHashable(key)) Raise(kBadArgument, "{} can't be a key", TypeName(key));
  if (const Value* found = FindKey(runtime, dict, key)) {
    *const_cast<Value*>(found) = value;
  } else {
    dict.entries.emplace_back(key, value);
  }
}

Value GetItem(Runtime& runtime, Value object, Value key) {
  runtime.Charge();
  if (object.is_undefined()) RaiseUndefined(object);
  if (object.kind == Kind::kDict) {
    if (IsHashable(key)) {
      if (const Value* found = FindKey(runtime, *object.dict, key)) return *found;
    }
  } else if (key.is_integral() && IsIndexable(object)) {
    return ItemAt(runtime, object, key.as_integer());
  }
  if (!key.is_string()) return runtime.MissingAttribute(object, "element");
  const std::string_view name = FlatView(runtime, key.str);
  const Value attribute = FindMethodOrField(runtime, object, name);
  if (!attribute.is_undefined() || attribute.undefined != nullptr) return attribute;
  return runtime.MissingAttribute(object, name);
}

Value GetAttribute(Runtime& runtime, Value object, std::string_view name) {
  runtime.Charge();
  if (object.is_undefined()) {
    if (IsObjectAttribute(name)) return runtime.MissingAttribute(object, name, true);
    RaiseUndefined(object);
  }
  const Value attribute = FindMethodOrField(runtime, object, name);
  if (!attribute.is_undefined() || attribute.undefined != nullptr) return attribute;
  if (object.kind == Kind::kDict) {
    if (const Value* found = FindKey(runtime, *object.dict, name)) return *found;
  }
  return runtime.MissingAttribute(object, name);
}

bool IsIterable(Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kSeq:
    case Kind::kRange:
    case Kind::kDict:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

std::span<const Value> Items(Runtime& runtime, Value value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return {};
    case Kind::kLoop:
      return value.loop->items;
    case Kind::kSeq: {
      if (value.seq->kind != SeqKind::kGenerator) return value.seq->items;
      RaisePending(*value.seq);
      const size_t from = std::exchange(value.seq->consumed, value.seq->items.size());
      return std::span<const Value>(value.seq->items).subspan(from);
    }
    default:
      break;
  }
  Seq* seq = runtime.NewSeq(SeqKind::kList);
  if (value.is_string()) {
    const Str* text = AsPlain(runtime, Flat(runtime.arena, value.str));
    runtime.ChargeItems(text->size);
    for (size_t at = 0; at < text->size;) {
      const size_t begin = at;
      NextCodePoint(text->view(), at);
      seq->items.push_back(Value::Of(Slice(runtime.arena, text, begin, at)));
    }
  } else if (value.kind == Kind::kDict) {
    runtime.ChargeItems(value.dict->entries.size());
    for (const auto& [key, unused] : value.dict->entries) seq->items.push_back(key);
  } else if (value.kind == Kind::kRange) {
    const int64_t count = value.range->size();
    runtime.Charge(count >> 4);
    seq->items.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) seq->items.push_back(value.range->at(i));
  } else {
    Raise(kBadArgument, "{} can't be iterated", TypeName(value));
  }
  return seq->items;
}

}  // namespace vivace::jinja

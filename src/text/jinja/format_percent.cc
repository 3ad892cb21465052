// The % operator of strings.
#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/format.h"
#include "text/jinja/format_field.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"

namespace vivace::jinja {
namespace {

// One % conversion.
void AppendPercentField(Runtime& runtime, StrBuilder& out, Field field, Value value, bool escaped) {
  if (field.type == 's' || field.type == 'r' || field.type == 'a') {
    const Str* text = Converted(runtime, value, field.type);
    if (escaped) text = EscapeHtml(runtime, text);
    return AppendPadded(runtime, out, field, Truncated(runtime, text, field), '>');
  }
  if (value.is_undefined()) RaiseUndefined(value);
  if (field.type == 'c') return AppendPadded(runtime, out, field, Character(runtime, value), '>');
  if (!value.is_number()) {
    Raise(kBadArgument, "%{} needs a number, got {}", field.type, TypeName(value));
  }
  std::string text;
  if (IsOneOf(field.type, "eEfFgG")) {
    text = FloatText(field, value.as_real());
  } else if (IsOneOf(field.type, "diuxXo")) {
    const bool hex = IsOneOf(field.type, "xXo");
    if (value.kind == Kind::kFloat &&
        (hex || std::fabs(value.real) >= 9.2e18 || std::isnan(value.real))) {
      Raise(kBadArgument, "%{} needs an integer", field.type);
    }
    text = IntegerText(
        field, value.kind == Kind::kFloat ? static_cast<int64_t>(value.real) : value.as_integer());
  } else {
    Raise(kBadArgument, "unsupported format character '{}'", field.type);
  }
  if (field.zero && field.align == 0) {
    field.fill = "0";
    field.align = '=';
  }
  AppendPadded(runtime, out, field, CopyStr(runtime.arena, text, !value.tainted), '>');
}

// Walks the operands of % in order, or by key.
class PercentOperands {
 public:
  PercentOperands(Runtime& runtime, Value operands) : runtime_(runtime), all_(operands) {
    const bool tuple = operands.kind == Kind::kSeq && operands.seq->is_tuple();
    items_ = tuple ? std::span<const Value>(operands.seq->items) : std::span<const Value>(&all_, 1);
    // A mapping may be left unused; so may what Python takes for one because it can be indexed.
    checked_ = !(operands.kind == Kind::kDict || operands.kind == Kind::kRange ||
                 operands.kind == Kind::kUndefined || (operands.kind == Kind::kSeq && !tuple));
  }
  Value Next() {
    if (at_ >= items_.size()) Raise(kBadArgument, "not enough arguments for the format string");
    return items_[at_++];
  }
  Value ByKey(std::string_view key) {
    if (all_.kind != Kind::kDict) Raise(kBadArgument, "this format string needs a mapping");
    at_ = items_.size();
    const Value* found = FindKey(runtime_, *all_.dict, key);
    if (found == nullptr) Raise(kBadArgument, "the format string names a missing key");
    return *found;
  }
  void Finish() const {
    if (checked_ && at_ < items_.size()) Raise(kBadArgument, "not all arguments were formatted");
  }

 private:
  Runtime& runtime_;
  Value all_;
  std::span<const Value> items_;
  size_t at_ = 0;
  bool checked_ = true;
};

int64_t StarOrNumber(std::string_view text, size_t& at, PercentOperands& operands, int64_t limit) {
  if (at >= text.size() || text[at] != '*') return ReadNumber(text, at, limit);
  ++at;
  const Value star = operands.Next();
  if (!star.is_integral()) Raise(kBadArgument, "* needs an integer");
  if (star.as_integer() > limit || star.as_integer() < -limit) {
    Raise(kOutputLimit, "a format field is wider than {} characters", limit);
  }
  return star.as_integer();
}

}  // namespace

Value FormatPercent(Runtime& runtime, const Str* format, Value arguments) {
  format = Flat(runtime.arena, format);
  runtime.ChargeBytes(format->size);
  const std::string_view text = format->view();
  PercentOperands operands(runtime, arguments);
  StrBuilder out(runtime.arena);
  for (size_t at = 0; at < text.size();) {
    const size_t percent = std::min(text.find('%', at), text.size());
    out.AppendSlice(format, at, percent);
    if (percent == text.size()) break;
    runtime.Charge();
    at = percent + 1;
    Field field;
    std::optional<Value> keyed;
    if (at < text.size() && text[at] == '(') {
      const size_t close = text.find(')', at);
      if (close == std::string_view::npos) Raise(kBadArgument, "a format key is never closed");
      keyed = operands.ByKey(text.substr(at + 1, close - at - 1));
      at = close + 1;
    }
    for (; at < text.size() && IsOneOf(text[at], "#0- +"); ++at) {
      if (text[at] == '#') field.alternate = true;
      if (text[at] == '0') field.zero = true;
      if (text[at] == '-') field.align = '<';
      if (text[at] == '+' || (text[at] == ' ' && field.sign != '+')) field.sign = text[at];
    }
    field.width = StarOrNumber(text, at, operands, kMaxFieldWidth);
    if (field.width < 0) {
      field.align = '<';
      field.width = -field.width;
    }
    if (at < text.size() && text[at] == '.') {
      field.precision =
          std::max<int64_t>(0, StarOrNumber(text, ++at, operands, kMaxFieldPrecision));
    }
    if (at >= text.size()) Raise(kBadArgument, "the format string ends in the middle of a field");
    field.type = text[at++];
    if (field.type == '%') {
      out.AppendSlice(format, at - 1, at);
      continue;
    }
    AppendPercentField(runtime, out, field, keyed ? *keyed : operands.Next(), format->markup);
  }
  operands.Finish();
  return Value::Of(Like(runtime, format, out.Finish()));
}

}  // namespace vivace::jinja

// The % operator of strings and str.format: one field at a time, each a conversion of one value
// padded to a width. Literal text keeps its origin; a converted value keeps the value's.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>

#include "text/jinja/format.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {
namespace {

constexpr int64_t kMaxWidth = static_cast<int64_t>(limits::kTemplateOutputBytes);
constexpr int64_t kMaxPrecision = 1'000;

struct Field {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '=', or 0 for the type's own
  char sign = '-';
  bool alternate = false, zero = false, grouped = false;
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

// Reads digits at `at`; refuses what no field needs.
int64_t ReadNumber(std::string_view text, size_t& at, int64_t limit) {
  int64_t number = 0;
  while (at < text.size() && std::isdigit(static_cast<uint8_t>(text[at]))) {
    number = number * 10 + (text[at++] - '0');
    if (number > limit) Raise(kOutputLimit, "a format field is wider than {} characters", limit);
  }
  return number;
}

void AppendPadded(Runtime& runtime, StrBuilder& out, const Field& field, const Str* body,
                  char default_align) {
  body = Flat(runtime.arena, body);
  const int64_t length = Length(runtime, Value::Of(body));
  const auto missing = static_cast<size_t>(std::max<int64_t>(0, field.width - length));
  const char align = field.align != 0 ? field.align : default_align;
  size_t left = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  size_t sign = 0;
  if (align == '=' && body->size > 0 &&
      std::string_view("+- ").find(body->data[0]) != std::string_view::npos) {
    sign = 1;
    if (body->size > 2 && body->data[1] == '0' && std::isalpha(static_cast<uint8_t>(body->data[2])))
      sign = 3;
  } else if (align == '=' && body->size > 1 && body->data[0] == '0' &&
             std::isalpha(static_cast<uint8_t>(body->data[1]))) {
    sign = 2;
  }
  runtime.ChargeBytes(missing);
  out.AppendSlice(body, 0, sign);
  for (size_t i = 0; i < left; ++i) out.Append(field.fill, true);
  out.AppendSlice(body, sign, body->size);
  for (size_t i = left; i < missing; ++i) out.Append(field.fill, true);
}

std::string Grouped(std::string digits) {
  size_t end = digits.find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits.size();
  for (size_t at = end; at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string Signed(bool negative, const Field& field, std::string_view digits) {
  const char* sign = negative ? "-" : field.sign == '+' ? "+" : field.sign == ' ' ? " " : "";
  return std::string(sign).append(digits);
}

std::string IntegerText(const Field& field, int64_t number) {
  const uint64_t magnitude =
      number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits;
  switch (field.type) {
    case 'x':
      digits = fmt::format("{:x}", magnitude);
      break;
    case 'X':
      digits = fmt::format("{:X}", magnitude);
      break;
    case 'o':
      digits = fmt::format("{:o}", magnitude);
      break;
    case 'b':
      digits = fmt::format("{:b}", magnitude);
      break;
    default:
      digits = fmt::format("{}", magnitude);
      break;
  }
  if (field.grouped) digits = Grouped(digits);
  if (field.alternate && std::string_view("xXob").find(field.type) != std::string_view::npos) {
    digits = std::string("0") + field.type + digits;
  }
  return Signed(number < 0, field, digits);
}

std::string FloatText(const Field& field, double number) {
  const double magnitude = std::fabs(number);
  const bool negative = std::signbit(number) && !std::isnan(number);
  if (!std::isfinite(number)) {
    const bool upper = field.type == 'F' || field.type == 'E' || field.type == 'G';
    const char* word = std::isnan(number) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
    return Signed(negative, field, word);
  }
  const char type = field.type == '%' ? 'f' : field.type;
  const int precision = static_cast<int>(field.precision.value_or(6));
  const char format[] = {'%',
                         field.alternate ? '#' : '.',
                         field.alternate ? '.' : '*',
                         field.alternate ? '*' : type,
                         field.alternate ? type : '\0',
                         '\0'};
  char buffer[1500];
  const double shown = field.type == '%' ? magnitude * 100 : magnitude;
  const int length = std::snprintf(buffer, sizeof buffer, format, precision, shown);
  std::string digits(buffer, static_cast<size_t>(std::max(0, length)));
  if (field.grouped) digits = Grouped(digits);
  if (field.type == '%') digits += '%';
  return Signed(negative, field, digits);
}

bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

const Str* Truncated(Runtime& runtime, const Str* text, const Field& field) {
  if (!field.precision) return text;
  return SliceOf(runtime, Value::Of(text), Value::None(), Value::Int(*field.precision),
                 Value::None())
      .str;
}

// One % conversion.
void AppendPercentField(Runtime& runtime, StrBuilder& out, Field field, Value value) {
  if (field.type == 's' || field.type == 'r' || field.type == 'a') {
    const Str* text = ToStr(runtime, value);
    if (field.type != 's') {
      StrBuilder repr(runtime.arena);
      AppendRepr(runtime, repr, value);
      text = repr.Finish();
    }
    return AppendPadded(runtime, out, field, Truncated(runtime, text, field), '>');
  }
  if (value.is_undefined()) RaiseUndefined(value);
  if (field.type == 'c' && value.is_string() && Length(runtime, value) == 1) {
    return AppendPadded(runtime, out, field, value.str, '>');
  }
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
    // A mapping may be left unused; so may a list or a range, which Python takes for one.
    checked_ = !(operands.kind == Kind::kDict || operands.kind == Kind::kRange ||
                 (operands.kind == Kind::kSeq && !tuple));
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

// [align][sign][#][0][width][,][.precision][type] of str.format
Field ParseSpec(std::string_view spec) {
  Field field;
  size_t at = 0;
  size_t fill_end = 0;
  if (!spec.empty()) NextCodePoint(spec, fill_end);
  if (fill_end > 0 && fill_end < spec.size() && IsOneOf(spec[fill_end], "<>^=")) {
    field.fill = std::string(spec.substr(0, fill_end));
    field.align = spec[fill_end];
    at = fill_end + 1;
  } else if (!spec.empty() && IsOneOf(spec[0], "<>^=")) {
    field.align = spec[at++];
  }
  const auto take = [&](std::string_view set) -> char {
    return at < spec.size() && IsOneOf(spec[at], set) ? spec[at++] : '\0';
  };
  if (const char sign = take("+- ")) field.sign = sign;
  field.alternate = take("#") != 0;
  if (take("0") != 0 && field.align == 0) {
    field.align = '=';
    field.fill = "0";
    field.zero = true;
  }
  field.width = ReadNumber(spec, at, kMaxWidth);
  field.grouped = take(",") != 0;
  if (take(".") != 0) {
    if (at >= spec.size() || !std::isdigit(static_cast<uint8_t>(spec[at]))) {
      Raise(kBadArgument, "a format field has no digits after its dot");
    }
    field.precision = ReadNumber(spec, at, kMaxPrecision);
  }
  field.type = take("sdxXobcneEfFgG%");
  if (at != spec.size()) Raise(kBadArgument, "a format field can't be understood");
  return field;
}

void AppendBraceField(Runtime& runtime, StrBuilder& out, Value value, std::string_view spec) {
  Field field = ParseSpec(spec);
  const bool number = value.is_number() && !(value.kind == Kind::kBool && spec.empty());
  if (!number) {
    if (!spec.empty() && !value.is_string()) {
      Raise(kBadArgument, "{} can't be formatted with a specification", TypeName(value));
    }
    if ((field.type != 0 && field.type != 's') || (field.align == '=' && !field.zero)) {
      Raise(kBadArgument, "a string can't be formatted as a number");
    }
    if (field.zero) field.align = '<';
    return AppendPadded(runtime, out, field, Truncated(runtime, ToStr(runtime, value), field), '<');
  }
  std::string text;
  const bool as_float = value.kind == Kind::kFloat || IsOneOf(field.type, "eEfFgG%");
  if (field.type == 's' || field.type == 'c' || field.type == 'n') {
    Raise(kBadArgument, "a number can't be formatted as '{}'", field.type);
  }
  if (as_float && field.type == 0) {
    if (field.precision) Raise(kBadArgument, "a float needs a format type with its precision");
    const double real = value.as_real();
    std::string digits = FloatRepr(std::fabs(real));
    text = Signed(std::signbit(real), field, field.grouped ? Grouped(digits) : digits);
  } else if (as_float) {
    if (IsOneOf(field.type, "dxXob")) Raise(kBadArgument, "a float can't be formatted as integer");
    text = FloatText(field, value.as_real());
  } else {
    if (field.precision) Raise(kBadArgument, "an integer has no precision");
    text = IntegerText(field, value.as_integer());
  }
  AppendPadded(runtime, out, field, CopyStr(runtime.arena, text, !value.tainted), '>');
}

// Resolves "0.name[key]" against the arguments.
class BraceOperands {
 public:
  BraceOperands(Runtime& runtime, const Args& args) : runtime_(runtime), args_(args) {}

  Value Find(std::string_view path) {
    const size_t head_end = std::min(path.find_first_of(".["), path.size());
    Value value = First(path.substr(0, head_end));
    for (size_t at = head_end; at < path.size();) {
      if (path[at] == '.') {
        const size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
        value = GetAttribute(runtime_, value, path.substr(at + 1, end - at - 1));
        at = end;
      } else {
        const size_t end = path.find(']', at);
        if (path[at] != '[' || end == std::string_view::npos) {
          Raise(kBadArgument, "a format field can't be understood");
        }
        value = GetItem(runtime_, value, Key(path.substr(at + 1, end - at - 1)));
        at = end + 1;
      }
    }
    return value;
  }

 private:
  static bool IsNumber(std::string_view text) {
    return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](char c) {
      return std::isdigit(static_cast<uint8_t>(c));
    });
  }
  Value Key(std::string_view key) {
    if (!IsNumber(key)) return runtime_.Text(key);
    size_t at = 0;
    return Value::Int(ReadNumber(key, at, INT32_MAX));
  }
  Value First(std::string_view name) {
    if (name.empty() || IsNumber(name)) {
      size_t at = 0;
      const auto index =
          name.empty() ? automatic_++ : static_cast<size_t>(ReadNumber(name, at, INT32_MAX));
      if (index >= args_.positional.size()) {
        Raise(kBadArgument, "the format string needs more arguments");
      }
      return args_.positional[index];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    Raise(kBadArgument, "the format string names a missing argument");
  }

  Runtime& runtime_;
  const Args& args_;
  size_t automatic_ = 0;
};

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
    field.width = StarOrNumber(text, at, operands, kMaxWidth);
    if (field.width < 0) {
      field.align = '<';
      field.width = -field.width;
    }
    if (at < text.size() && text[at] == '.') {
      field.precision = std::max<int64_t>(0, StarOrNumber(text, ++at, operands, kMaxPrecision));
    }
    if (at >= text.size()) Raise(kBadArgument, "the format string ends in the middle of a field");
    field.type = text[at++];
    if (field.type == '%') {
      out.AppendSlice(format, at - 1, at);
      continue;
    }
    AppendPercentField(runtime, out, field, keyed ? *keyed : operands.Next());
  }
  operands.Finish();
  return Value::Of(out.Finish());
}

Value FormatBraces(Runtime& runtime, const Str* format, const Args& args) {
  format = Flat(runtime.arena, format);
  runtime.ChargeBytes(format->size);
  const std::string_view text = format->view();
  BraceOperands operands(runtime, args);
  StrBuilder out(runtime.arena);
  for (size_t at = 0; at < text.size();) {
    const size_t brace = std::min(text.find_first_of("{}", at), text.size());
    out.AppendSlice(format, at, brace);
    if (brace == text.size()) break;
    runtime.Charge();
    if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {  // {{ and }}
      out.AppendSlice(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const size_t close = text.find('}', brace + 1);
    if (text[brace] == '}' || close == std::string_view::npos) {
      Raise(kBadArgument, "a brace of the format string has no partner");
    }
    std::string_view field = text.substr(brace + 1, close - brace - 1);
    if (field.find('{') != std::string_view::npos) {
      Raise(kBadArgument, "nested format fields are not supported");
    }
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
    field = field.substr(0, colon);
    char conversion = 0;
    if (const size_t mark = field.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != field.size() || !IsOneOf(field[mark + 1], "rsa")) {
        Raise(kBadArgument, "an unknown conversion stands in a format field");
      }
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    Value value = operands.Find(field);
    if (conversion == 's') value = Value::Of(ToStr(runtime, value));
    if (conversion == 'r' || conversion == 'a') {
      StrBuilder repr(runtime.arena);
      AppendRepr(runtime, repr, value);
      value = Value::Of(repr.Finish());
    }
    AppendBraceField(runtime, out, value, spec);
    at = close + 1;
  }
  return Value::Of(out.Finish());
}

}  // namespace vivace::jinja

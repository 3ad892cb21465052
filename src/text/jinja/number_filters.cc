// Filters that make numbers, and `default`.
#include <charconv>
#include <cmath>
#include <optional>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

// The digits of a numeric string: no blanks around, underscores only between digits. Nullopt: none.
std::optional<std::string> CleanNumber(std::string_view text) {
  text = text.substr(0, StripRightOffset(text));
  text = text.substr(StripLeftOffset(text));
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() &&
                         std::isalnum(static_cast<uint8_t>(text[i - 1])) &&
                         std::isalnum(static_cast<uint8_t>(text[i + 1]));
    if (!between) return std::nullopt;
  }
  return out;
}

std::optional<int64_t> ParseInt(std::string_view text, int64_t base) {
  std::optional<std::string> digits = CleanNumber(text);
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.size() > 1 && rest[0] == '0') {
    const char prefix = static_cast<char>(rest[1] | 0x20);
    const int64_t prefixed = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == prefixed || base == 0)) {
      base = prefixed;
      rest.remove_prefix(2);
    }
  }
  if (base == 0) base = 10;
  if (rest.empty() || rest[0] == '-') return std::nullopt;
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), magnitude, static_cast<int>(base));
  if (end != rest.data() + rest.size()) return std::nullopt;
  const uint64_t limit = (uint64_t{1} << 63) - (negative ? 0 : 1);
  if (error == std::errc::result_out_of_range || magnitude > limit) {
    Raise(kBadArgument, "an integer does not fit 64 bits");
  }
  if (error != std::errc()) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
}

std::optional<double> ParseFloat(std::string_view text) {
  std::optional<std::string> digits = CleanNumber(text);
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.empty() || rest[0] == '+') return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  const std::string_view unsigned_part = rest.starts_with('-') ? rest.substr(1) : rest;
  if (end != rest.data() + rest.size() || unsigned_part.starts_with("nan(")) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return std::strtod(std::string(rest).c_str(), nullptr);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> Truncate(double number) {
  if (std::isnan(number) || std::isinf(number)) return std::nullopt;
  if (std::fabs(number) >= 9223372036854775808.0)
    Raise(kBadArgument, "an integer does not fit 64 bits");
  return static_cast<int64_t>(number);
}

bool IsTaintedText(Value value) { return value.is_string() ? !value.str->trusted : value.tainted; }

Value IntFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("int", args, {"default", "base"});
  const int64_t base = params.Int(1, 10);
  if (self.is_undefined()) RaiseUndefined(self);
  std::optional<int64_t> result;
  if (self.is_integral()) {
    result = self.as_integer();
  } else if (self.kind == Kind::kFloat) {
    if (std::isinf(self.real)) Raise(kBadArgument, "infinity has no integer");
    result = Truncate(self.real);
  } else if (self.is_string()) {
    const std::string_view text = ToFlatStr(runtime, self)->view();
    runtime.ChargeBytes(text.size() * 4);
    if (base == 0 || (base >= 2 && base <= 36)) result = ParseInt(text, base);
    if (!result) {
      if (const auto real = ParseFloat(text)) result = Truncate(*real);
    }
  }
  if (!result) return params.Get(0, Value::Int(0));
  return Value::Int(*result).Tainted(IsTaintedText(self));
}

Value FloatFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("float", args, {"default"});
  if (self.is_undefined()) RaiseUndefined(self);
  std::optional<double> result;
  if (self.is_number()) result = self.as_real();
  if (self.is_string()) result = ParseFloat(ToFlatStr(runtime, self)->view());
  if (!result) return params.Get(0, Value::Float(0));
  return Value::Float(*result).Tainted(IsTaintedText(self));
}

Value AbsFilter(Runtime& runtime, Value self, const Args& args) {
  Params("abs", args, {});
  if (self.is_undefined()) RaiseUndefined(self);
  if (!self.is_number()) Raise(kBadArgument, "abs needs a number, got {}", TypeName(self));
  if (self.kind == Kind::kFloat) return Value::Float(std::fabs(self.real)).Tainted(self.tainted);
  return self.as_integer() < 0 ? Negate(runtime, self) : Plus(self);
}

// round(number, digits) as Python does it: half to even on the exact binary value.
double RoundHalfEven(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits < -308) return std::copysign(0.0, number);
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / scale) * scale;
  }
  char buffer[800];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), number);
  return std::strtod(buffer, nullptr);
}

Value RoundInteger(Runtime& runtime, int64_t number, int64_t digits) {
  if (digits >= 0) return Value::Int(number);
  if (digits < -18) return Value::Int(0);
  int64_t scale = 1;
  for (; digits < 0; ++digits) scale *= 10;
  const int64_t rest = Arithmetic(runtime, Op::kMod, Value::Int(number), Value::Int(scale)).integer;
  const Value down = Arithmetic(runtime, Op::kSub, Value::Int(number), Value::Int(rest));
  const bool up = rest > scale / 2 || (rest == scale / 2 && (down.integer / scale) % 2 != 0);
  return up ? Arithmetic(runtime, Op::kAdd, down, Value::Int(scale)) : down;
}

Value RoundFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("round", args, {"precision", "method"});
  if (self.is_undefined()) RaiseUndefined(self);
  const int64_t precision = params.Int(0, 0);
  const Str* method = params.OptionalStr(runtime, 1);
  const std::string_view name = method == nullptr ? "common" : method->view();
  if (name != "common" && name != "ceil" && name != "floor") {
    Raise(kBadArgument, "round needs the method common, ceil or floor");
  }
  if (!self.is_number()) Raise(kBadArgument, "round needs a number, got {}", TypeName(self));
  if (name == "common") {
    if (self.is_integral())
      return RoundInteger(runtime, self.as_integer(), precision).Tainted(self.tainted);
    return Value::Float(RoundHalfEven(self.real, precision)).Tainted(self.tainted);
  }
  if (precision < -300 || precision > 300)
    Raise(kBadArgument, "round got a precision out of range");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.as_real() * scale;
  if (!std::isfinite(scaled)) Raise(kBadArgument, "round got a number out of range");
  // Whole numbers are integers to Python, so that there is no negative zero.
  const double whole = (name == "ceil" ? std::ceil(scaled) : std::floor(scaled)) + 0.0;
  return Value::Float(whole / scale).Tainted(self.tainted);
}

Value DefaultFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("default", args, {"default_value", "boolean"});
  const bool replace = self.is_undefined() || (params.Truthy(1, false) && !IsTrue(self));
  return !replace ? self : params.Has(0) ? params.Get(0) : runtime.Text("");
}

constexpr Builtin kNumberFilters[] = {{"int", IntFilter},         {"float", FloatFilter},
                                      {"abs", AbsFilter},         {"round", RoundFilter},
                                      {"default", DefaultFilter}, {"d", DefaultFilter}};

}  // namespace

std::span<const Builtin> NumberFilters() { return kNumberFilters; }

}  // namespace vivace::jinja

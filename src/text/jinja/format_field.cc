#include "text/jinja/format_field.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "text/jinja/format.h"
#include "text/jinja/operators.h"

namespace vivace::jinja {
namespace {

// Groups the leading digits; zeros that fill the field are grouped with them.
std::string Grouped(const Field& field, std::string digits, size_t taken) {
  if (field.group == 0) return digits;
  const bool by_four =
      field.type == 'x' || field.type == 'X' || field.type == 'o' || field.type == 'b';
  const size_t each = by_four ? 4 : 3;
  const auto is_digit = [&](char c) { return std::isxdigit(static_cast<uint8_t>(c)) != 0; };
  size_t whole = 0;
  while (whole < digits.size() &&
         (by_four ? is_digit(digits[whole]) : std::isdigit(static_cast<uint8_t>(digits[whole])))) {
    ++whole;
  }
  if (whole == 0) return digits;
  const auto length = [&](size_t count) { return count + (count - 1) / each; };
  const size_t rest = digits.size() - whole, width = static_cast<size_t>(field.width);
  size_t count = whole;
  while (field.zero && length(count) + rest + taken < width) ++count;
  std::string out;
  out.reserve(length(count) + rest);
  for (size_t left = count; left > 0; --left) {
    out.push_back(left > whole ? '0' : digits[whole - left]);
    if (left % each == 1 && left > 1) out.push_back(field.group);
  }
  return out.append(digits, whole, rest);
}

std::string_view SignOf(bool negative, const Field& field) {
  return negative ? "-" : field.sign == '+' ? "+" : field.sign == ' ' ? " " : "";
}

// A format without a type: like g, but with a digit after the point, and an exponent sooner.
std::string GeneralText(double magnitude, int precision) {
  precision = std::max(precision, 1);
  char buffer[1500];
  std::snprintf(buffer, sizeof buffer, "%.*e", precision - 1, magnitude);
  std::string digits(buffer);
  const size_t e = digits.find('e');
  const int exponent = std::atoi(digits.c_str() + e + 1);
  const bool scientific = exponent < -4 || exponent + 1 > precision - 1;
  std::string tail;
  if (scientific) {
    tail = digits.substr(e);
    digits.resize(e);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.*f", std::max(precision - 1 - exponent, 0), magnitude);
    digits = buffer;
  }
  if (digits.find('.') != std::string::npos) {
    digits.resize(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
  }
  if (!scientific && digits.find('.') == std::string::npos) digits += ".0";
  return digits + tail;
}

std::string FloatDigits(const Field& field, double magnitude) {
  if (field.type == 0) {
    return field.precision ? GeneralText(magnitude, static_cast<int>(*field.precision))
                           : FloatRepr(magnitude);
  }
  const char type = field.type == '%' ? 'f' : field.type == 'n' ? 'g' : field.type;
  const char format[] = {'%',
                         field.alternate ? '#' : '.',
                         field.alternate ? '.' : '*',
                         field.alternate ? '*' : type,
                         field.alternate ? type : '\0',
                         '\0'};
  char buffer[1500];
  const double shown = field.type == '%' ? magnitude * 100 : magnitude;
  const int precision = static_cast<int>(field.precision.value_or(6));
  const int length = std::snprintf(buffer, sizeof buffer, format, precision, shown);
  return std::string(buffer, static_cast<size_t>(std::max(0, length)));
}

// Characters beyond ASCII as escapes.
const Str* AsciiOnly(Runtime& runtime, const Str* text) {
  StrBuilder out(runtime.arena);
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string mapped;
    for (size_t at = 0; at < piece.size();) {
      const auto code = static_cast<uint32_t>(NextCodePoint(piece, at));
      mapped += code < 0x80      ? std::string(1, static_cast<char>(code))
                : code < 0x100   ? fmt::format("\\x{:02x}", code)
                : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                 : fmt::format("\\U{:08x}", code);
    }
    out.Append(mapped, trusted);
  });
  return out.Finish();
}

}  // namespace

int64_t ReadNumber(std::string_view text, size_t& at, int64_t limit) {
  int64_t number = 0;
  while (at < text.size() && std::isdigit(static_cast<uint8_t>(text[at]))) {
    number = number * 10 + (text[at++] - '0');
    if (number > limit) Raise(kOutputLimit, "a format field is wider than {} characters", limit);
  }
  return number;
}

bool IsOneOf(char c, std::string_view set) {
  return c != 0 && set.find(c) != std::string_view::npos;
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
  const auto least = static_cast<size_t>(field.precision.value_or(0));  // of % only
  if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
  std::string head(SignOf(number < 0, field));
  if (field.alternate && std::string_view("xXob").find(field.type) != std::string_view::npos) {
    head.append("0").append(1, field.type);
  }
  return head + Grouped(field, std::move(digits), head.size());
}

std::string FloatText(const Field& field, double number) {
  const double magnitude = std::fabs(number);
  std::string head(SignOf(std::signbit(number) && !std::isnan(number), field));
  const std::string percent = field.type == '%' ? "%" : "";
  if (!std::isfinite(number)) {
    const bool upper = field.type == 'F' || field.type == 'E' || field.type == 'G';
    const char* word = std::isnan(number) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
    return head + word + percent;
  }
  return head + Grouped(field, FloatDigits(field, magnitude) + percent, head.size());
}

const Str* Truncated(Runtime& runtime, const Str* text, const Field& field) {
  if (!field.precision) return text;
  return SliceOf(runtime, Value::Of(text), Value::None(), Value::Int(*field.precision),
                 Value::None())
      .str;
}

const Str* Converted(Runtime& runtime, Value value, char conversion) {
  if (conversion == 's') return ToStr(runtime, value);
  StrBuilder repr(runtime.arena);
  AppendRepr(runtime, repr, value);
  const Str* text = repr.Finish();
  return conversion == 'a' ? AsciiOnly(runtime, text) : text;
}

const Str* Character(Runtime& runtime, Value value) {
  if (value.is_string() && Length(runtime, value) == 1) return value.str;
  if (!value.is_integral()) Raise(kBadArgument, "%c needs a number or one character");
  const int64_t code = value.as_integer();
  if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    Raise(kBadArgument, "%c needs the number of a character");
  }
  std::string text;
  AppendUtf8(static_cast<char32_t>(code), text);
  return CopyStr(runtime.arena, text, !value.tainted);
}

}  // namespace vivace::jinja

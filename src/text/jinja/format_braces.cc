// str.format.
#include <algorithm>
#include <cctype>
#include <optional>

#include "text/jinja/format.h"
#include "text/jinja/format_field.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"

namespace vivace::jinja {
namespace {

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
  field.width = ReadNumber(spec, at, kMaxFieldWidth);
  field.group = take(",_");
  if (take(".") != 0) {
    if (at >= spec.size() || !std::isdigit(static_cast<uint8_t>(spec[at]))) {
      Raise(kBadArgument, "a format field has no digits after its dot");
    }
    field.precision = ReadNumber(spec, at, kMaxFieldPrecision);
  }
  field.type = take("sdxXobcneEfFgG%");
  if (at != spec.size()) Raise(kBadArgument, "a format field can't be understood");
  return field;
}

void AppendBraceText(Runtime& runtime, StrBuilder& out, Field field, Value value) {
  if ((field.type != 0 && field.type != 's') || (field.align == '=' && !field.zero) ||
      field.sign != 0 || field.alternate || field.group != 0) {
    Raise(kBadArgument, "a string can't be formatted as a number");
  }
  if (field.zero) field.align = '<';
  AppendPadded(runtime, out, field, Truncated(runtime, ToStr(runtime, value), field), '<');
}

void AppendBraceField(Runtime& runtime, StrBuilder& out, Value value, std::string_view spec) {
  const Field field = ParseSpec(spec);
  const bool number = value.is_number() && !(value.kind == Kind::kBool && spec.empty());
  if (!number) {
    if (!spec.empty() && !value.is_string()) {
      Raise(kBadArgument, "{} can't be formatted with a specification", TypeName(value));
    }
    return AppendBraceText(runtime, out, field, value);
  }
  if (field.type == 's') Raise(kBadArgument, "a number can't be formatted as 's'");
  std::string text;
  if (value.kind == Kind::kFloat || IsOneOf(field.type, "eEfFgG%")) {
    if (IsOneOf(field.type, "cdxXob")) Raise(kBadArgument, "a float can't be formatted as integer");
    text = FloatText(field, value.as_real());
  } else {
    if (field.precision) Raise(kBadArgument, "an integer has no precision");
    if (field.group == ',' && IsOneOf(field.type, "xXobcn")) {
      Raise(kBadArgument, "',' can't stand with '{}'", field.type);
    }
    if (field.type == 'c') {
      return AppendPadded(runtime, out, field, Character(runtime, value), '>');
    }
    text = IntegerText(field, value.as_integer());
  }
  runtime.ChargeBytes(text.size());
  AppendPadded(runtime, out, field, CopyStr(runtime.arena, text, !value.tainted), '>');
}

// Resolves "0.name[key]" against the arguments.
class BraceOperands {
 public:
  BraceOperands(Runtime& runtime, const Args& args) : runtime_(runtime), args_(args) {}

  Value Find(std::string_view path) {
    if (path.empty() || IsNumber(path)) ChooseNumbering(path.empty());
    if (!path.empty() && IsOneOf(path[0], ".[")) {
      Raise(kBadArgument, "a format field with a path names its argument");
    }
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
  // Numbers are all given or all counted, as in Python.
  void ChooseNumbering(bool counted) {
    if (counted_.value_or(counted) != counted) {
      Raise(kBadArgument, "a format string numbers its fields or does not, not both");
    }
    counted_ = counted;
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
  std::optional<bool> counted_;
};

// str.format: text with fields in braces, whose specifications may hold fields in turn.
class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Args& args, bool escaped)
      : runtime_(runtime), operands_(runtime, args), escaped_(escaped) {}

  const Str* Format(const Str* format, int depth) {
    if (depth > 1) Raise(kBadArgument, "format fields nest too deep");
    runtime_.ChargeBytes(format->size);
    const std::string_view text = format->view();
    StrBuilder out(runtime_.arena);
    for (size_t at = 0; at < text.size();) {
      const size_t brace = std::min(text.find_first_of("{}", at), text.size());
      out.AppendSlice(format, at, brace);
      if (brace == text.size()) break;
      runtime_.Charge();
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {  // {{ and }}
        out.AppendSlice(format, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      const size_t close = text[brace] == '}' ? kNone : ClosingBrace(text, brace);
      if (close == kNone) Raise(kBadArgument, "a brace of the format string has no partner");
      AppendField(out, format, brace + 1, close, depth);
      at = close + 1;
    }
    return out.Finish();
  }

 private:
  static constexpr size_t kNone = std::string_view::npos;

  static size_t ClosingBrace(std::string_view text, size_t open) {
    int depth = 0;
    for (size_t at = open; at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    return kNone;
  }

  void AppendField(StrBuilder& out, const Str* format, size_t begin, size_t end, int depth) {
    std::string_view name = format->view().substr(begin, end - begin);
    const size_t colon = std::min(name.find(':'), name.size());
    const Str* spec = Slice(runtime_.arena, format, std::min(begin + colon + 1, end), end);
    name = name.substr(0, colon);
    char conversion = 0;
    if (const size_t mark = name.find('!'); mark != kNone) {
      if (mark + 2 != name.size() || !IsOneOf(name[mark + 1], "rsa")) {
        Raise(kBadArgument, "an unknown conversion stands in a format field");
      }
      conversion = name[mark + 1];
      name = name.substr(0, mark);
    }
    if (name.find('{') != kNone) Raise(kBadArgument, "a format field's name has a brace");
    Value value = operands_.Find(name);
    if (conversion != 0) value = Value::Of(Converted(runtime_, value, conversion));
    if (spec->view().find_first_of("{}") != kNone) spec = Format(spec, depth + 1);
    if (!escaped_) return AppendBraceField(runtime_, out, value, spec->view());
    if (value.is_string() && value.str->markup) {
      if (spec->size > 0) Raise(kBadArgument, "markup takes no format specification");
      return out.AppendStr(value.str);
    }
    StrBuilder field(runtime_.arena);
    AppendBraceField(runtime_, field, value, spec->view());
    out.AppendStr(EscapeHtml(runtime_, field.Finish()));
  }

  Runtime& runtime_;
  BraceOperands operands_;
  bool escaped_;
};

}  // namespace

Value FormatBraces(Runtime& runtime, const Str* format, const Args& args) {
  format = Flat(runtime.arena, format);
  BraceFormatter formatter(runtime, args, format->markup);
  return Value::Of(Like(runtime, format, formatter.Format(format, 0)));
}

}  // namespace vivace::jinja

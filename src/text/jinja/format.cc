#include "text/jinja/format.h"

#include <charconv>
#include <cmath>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

void AppendReprStr(Runtime& runtime, StrBuilder& out, const Str* text, bool quote_trusted) {
  text = Flat(runtime.arena, text);
  runtime.ChargeBytes(text->size);
  const std::string_view all = text->view();
  const bool has_single = all.find('\'') != std::string_view::npos;
  const char quote = has_single && all.find('"') == std::string_view::npos ? '"' : '\'';
  out.Append(quote, quote_trusted);
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string escaped;
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = at;
      const char32_t code = NextCodePoint(piece, at);
      if (code == static_cast<char32_t>(quote) || code == '\\') {
        escaped.append("\\").append(1, static_cast<char>(code));
      } else if (code == '\n' || code == '\r' || code == '\t') {
        escaped.append(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
      } else if (IsPrintable(code)) {
        escaped.append(piece.substr(begin, at - begin));
      } else {
        const auto number = static_cast<uint32_t>(code);
        escaped += code < 0x100     ? fmt::format("\\x{:02x}", number)
                   : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                                    : fmt::format("\\U{:08x}", number);
      }
    }
    out.Append(escaped, trusted);
  });
  out.Append(quote, quote_trusted);
}

void AppendSeq(Runtime& runtime, StrBuilder& out, const Seq& seq, bool trusted) {
  const bool tuple = seq.is_tuple();
  const bool view = !tuple && seq.kind != SeqKind::kList;
  if (view) out.Append(TypeName(Value::Of(const_cast<Seq*>(&seq))), trusted);
  out.Append(view ? "([" : tuple ? "(" : "[", trusted);
  bool first = true;
  for (const Value& item : seq.items) {
    if (!std::exchange(first, false)) out.Append(", ", trusted);
    AppendRepr(runtime, out, item);
  }
  if (tuple && seq.items.size() == 1) out.Append(",", trusted);
  out.Append(view ? "])" : tuple ? ")" : "]", trusted);
}

void AppendDict(Runtime& runtime, StrBuilder& out, const Dict& dict, bool trusted) {
  out.Append("{", trusted);
  bool first = true;
  for (const auto& [key, value] : dict.entries) {
    if (!std::exchange(first, false)) out.Append(", ", trusted);
    AppendRepr(runtime, out, key);
    out.Append(": ", trusted);
    AppendRepr(runtime, out, value);
  }
  out.Append("}", trusted);
}

std::string RangeRepr(const Range& range) {
  return range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                         : fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

std::string LoopRepr(const LoopState& loop) {
  return fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.items.size());
}

}  // namespace

std::string FloatRepr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02d}", shortest.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string text(buffer, static_cast<size_t>(fixed.ptr - buffer));
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

const Str* ToStr(Runtime& runtime, Value value) {
  if (value.is_string()) return value.str;
  if (value.is_undefined()) return MakeStr(runtime.arena, "", true);
  StrBuilder out(runtime.arena);
  AppendRepr(runtime, out, value);
  return out.Finish();
}

const Str* ToFlatStr(Runtime& runtime, Value value) {
  return Flat(runtime.arena, ToStr(runtime, value));
}

void AppendRepr(Runtime& runtime, StrBuilder& out, Value value) {
  runtime.Charge();
  const Runtime::Nesting nesting(runtime);
  const bool trusted = !value.tainted;
  switch (value.kind) {
    case Kind::kUndefined:
      return out.Append("Undefined", trusted);
    case Kind::kNone:
      return out.Append("None", trusted);
    case Kind::kBool:
      return out.Append(value.boolean ? "True" : "False", trusted);
    case Kind::kInt:
      return out.Append(fmt::format("{}", value.integer), trusted);
    case Kind::kFloat:
      return out.Append(FloatRepr(value.real), trusted);
    case Kind::kString:
      if (value.str->markup) out.Append("Markup(", value.str->trusted);
      AppendReprStr(runtime, out, value.str, value.str->trusted);
      if (value.str->markup) out.Append(")", value.str->trusted);
      return;
    case Kind::kRange:
      return out.Append(RangeRepr(*value.range), trusted);
    case Kind::kDict:
      return AppendDict(runtime, out, *value.dict, trusted);
    case Kind::kLoop:
      return out.Append(LoopRepr(*value.loop), trusted);
    case Kind::kSeq:
      if (value.seq->kind == SeqKind::kGenerator) return out.Append("<generator>", trusted);
      return AppendSeq(runtime, out, *value.seq, trusted);
    case Kind::kNamespace:
      out.Append("<Namespace ", trusted);
      AppendDict(runtime, out, value.space->attributes, trusted);
      return out.Append(">", trusted);
    case Kind::kCallable:
      if (value.callable->name.empty()) return out.Append("<Macro anonymous>", trusted);
      out.Append(value.callable->macro != nullptr ? "<Macro " : "<function ", trusted);
      AppendReprStr(runtime, out, MakeStr(runtime.arena, value.callable->name, trusted), trusted);
      return out.Append(">", trusted);
  }
}

}  // namespace vivace::jinja

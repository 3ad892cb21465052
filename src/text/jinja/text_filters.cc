// Filters that take and give text.
#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/json_dump.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

template <Case kMode>
Value CaseFilter(Runtime& runtime, Value self, const Args& args) {
  Params("this filter", args, {});
  const Str* text = ToFlatStr(runtime, self);
  return Value::Of(Like(runtime, text, MapCase(runtime, text, kMode)));
}

Value TitleFilter(Runtime& runtime, Value self, const Args& args) {
  Params("title", args, {});
  return Value::Of(TitleWords(runtime, ToFlatStr(runtime, self)));
}

Value TrimFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("trim", args, {"chars"});
  return Value::Of(
      Strip(runtime, ToFlatStr(runtime, self), params.OptionalStr(runtime, 0), true, true));
}

Value ReplaceFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  const int64_t count = params.Get(2).is_none() ? -1 : params.Int(2, -1);
  return Value::Of(
      AsPlain(runtime, Replace(runtime, ToFlatStr(runtime, self), ToFlatStr(runtime, params.Get(0)),
                               ToFlatStr(runtime, params.Get(1)), count)));
}

Value StringFilter(Runtime& runtime, Value self, const Args& args) {
  Params("string", args, {});
  return Value::Of(ToStr(runtime, self));
}

Value ToJsonFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = params.Truthy(0, false);
  style.sort_keys = params.Truthy(3, false);
  const Value indent = params.Get(1);
  if (indent.is_string()) {
    style.indent = Flat(runtime.arena, indent.str)->view();
  } else if (!indent.is_none()) {
    const int64_t width = std::max<int64_t>(0, params.Int(1, 0));
    style.indent = Pad(runtime, MakeStr(runtime.arena, "", true), width, nullptr, '<')->view();
  }
  if (style.indent) style.item_separator = ",";
  if (const Value separators = params.Get(2); !separators.is_none()) {
    const auto items =
        IsIterable(separators) ? Items(runtime, separators) : std::span<const Value>();
    if (items.size() != 2 || !items[0].is_string() || !items[1].is_string()) {
      Raise(kBadArgument, "separators must be two strings");
    }
    style.item_separator = Flat(runtime.arena, items[0].str)->view();
    style.key_separator = Flat(runtime.arena, items[1].str)->view();
  }
  return Value::Of(ToJson(runtime, self, style));
}

Value IndentFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("indent", args, {"width", "first", "blank"});
  if (self.is_undefined()) RaiseUndefined(self);
  if (!self.is_string()) Raise(kBadArgument, "indent needs a string, got {}", TypeName(self));
  const Value width = params.Get(0);
  const Str* indent = width.is_string() ? Flat(runtime.arena, width.str)
                                        : Pad(runtime, MakeStr(runtime.arena, "", true),
                                              std::max<int64_t>(0, params.Int(0, 4)), nullptr, '<');
  const bool first = params.Truthy(1, false), blank = params.Truthy(2, false);
  // As in jinja2: one line end is added first, so that a trailing one leaves an empty last line.
  const Str* text =
      Flat(runtime.arena, Concat(runtime.arena, self.str, MakeStr(runtime.arena, "\n", true)));
  const Seq* lines = SplitLines(runtime, text, false);
  StrBuilder out(runtime.arena);
  for (size_t i = 0; i < lines->items.size(); ++i) {
    runtime.Charge();
    const Str* line = lines->items[i].str;
    if (i > 0) out.Append('\n', true);
    if (i == 0 ? first : (blank || line->size > 0)) out.AppendStr(indent);
    out.AppendStr(line);
  }
  return Value::Of(Like(runtime, self.str, out.Finish()));
}

Value CenterFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("center", args, {"width"});
  const Str* text = ToFlatStr(runtime, self);
  return Value::Of(Like(runtime, text, Pad(runtime, text, params.Int(0, 80), nullptr, '^')));
}

Value WordCountFilter(Runtime& runtime, Value self, const Args& args) {
  Params("wordcount", args, {});
  const Str* text = ToFlatStr(runtime, self);
  runtime.ChargeBytes(text->size * 4);
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text->size;) {
    const char32_t code = NextCodePoint(text->view(), at);
    const bool word = IsAlnum(code) || code == '_';
    count += word && !inside;
    inside = word;
  }
  return Value::Int(count);
}

Value TruncateFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("truncate", args, {"length", "killwords", "end", "leeway"});
  const Str* end = params.OptionalStr(runtime, 2);
  if (end == nullptr) end = MakeStr(runtime.arena, "...", true);
  const int64_t length = params.Int(0, 255), end_length = Length(runtime, Value::Of(end));
  const int64_t leeway = params.Get(3).is_none() ? 5 : params.Int(3, 5);
  if (length < end_length || leeway < 0)
    Raise(kBadArgument, "truncate got a length that is too small");
  if (Length(runtime, self) - leeway <= length) return self;
  if (!self.is_string()) Raise(kBadArgument, "truncate needs a string");
  const Str* cut =
      SliceOf(runtime, self, Value::None(), Value::Int(length - end_length), Value::None()).str;
  const size_t blank = params.Truthy(1, false) ? kNotFound : cut->view().rfind(' ');
  if (blank != kNotFound) cut = Slice(runtime.arena, cut, 0, blank);
  return Arithmetic(runtime, Op::kAdd, Value::Of(cut), Value::Of(end));
}

Value FormatFilter(Runtime& runtime, Value self, const Args& args) {
  const Str* format = ToFlatStr(runtime, self);
  if (!args.positional.empty() && !args.named.empty()) {
    Raise(kBadArgument, "format takes positional or named arguments, not both");
  }
  if (args.named.empty()) {
    Seq* tuple = runtime.NewSeq(SeqKind::kTuple);
    tuple->items.assign(args.positional.begin(), args.positional.end());
    return FormatPercent(runtime, format, Value::Of(tuple));
  }
  Dict* dict = runtime.arena.New<Dict>(&runtime.arena);
  for (const auto& [name, value] : args.named) SetKey(runtime, *dict, runtime.Text(name), value);
  return FormatPercent(runtime, format, Value::Of(dict));
}

Value EscapeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("escape", args, {});
  return Value::Of(EscapeHtml(runtime, ToStr(runtime, self)));
}

Value ForceEscapeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("forceescape", args, {});
  return Value::Of(EscapeHtml(runtime, AsPlain(runtime, ToStr(runtime, self))));
}

Value SafeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("safe", args, {});
  return Value::Of(AsMarkup(runtime, ToStr(runtime, self)));
}

// Percent encoding: of a whole text, or of a name or value of a query.
void AppendUrlQuoted(Runtime& runtime, StrBuilder& out, Value value, bool query) {
  const Str* text = ToFlatStr(runtime, value);
  runtime.ChargeBytes(text->size * 4);
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string mapped;
    for (const char c : piece) {
      const auto byte = static_cast<uint8_t>(c);
      const bool plain = (byte < 0x80 && IsAlnum(byte)) ||
                         std::string_view("_.-~").find(c) != kNotFound || (c == '/' && !query);
      if (plain) {
        mapped.push_back(c);
      } else if (c == ' ' && query) {
        mapped.push_back('+');
      } else {
        mapped += fmt::format("%{:02X}", byte);
      }
    }
    out.Append(mapped, trusted);
  });
}

Value UrlEncodeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("urlencode", args, {});
  StrBuilder out(runtime.arena);
  if (self.is_string() || !IsIterable(self)) {
    AppendUrlQuoted(runtime, out, self, false);
    return Value::Of(out.Finish());
  }
  const auto pair = [&](Value name, Value value) {
    if (out.size() > 0) out.Append('&', true);
    AppendUrlQuoted(runtime, out, name, true);
    out.Append('=', true);
    AppendUrlQuoted(runtime, out, value, true);
  };
  if (self.kind == Kind::kDict) {
    for (const auto& [name, value] : self.dict->entries) pair(name, value);
    return Value::Of(out.Finish());
  }
  for (const Value& item : Items(runtime, self)) {
    runtime.Charge();
    const auto parts = IsIterable(item) ? Items(runtime, item) : std::span<const Value>();
    if (parts.size() != 2) Raise(kBadArgument, "urlencode needs a string, a mapping or pairs");
    pair(parts[0], parts[1]);
  }
  return Value::Of(out.Finish());
}

constexpr Builtin kTextFilters[] = {{"upper", CaseFilter<Case::kUpper>},
                                    {"lower", CaseFilter<Case::kLower>},
                                    {"capitalize", CaseFilter<Case::kCapitalize>},
                                    {"title", TitleFilter},
                                    {"trim", TrimFilter},
                                    {"replace", ReplaceFilter},
                                    {"string", StringFilter},
                                    {"safe", SafeFilter},
                                    {"tojson", ToJsonFilter},
                                    {"indent", IndentFilter},
                                    {"center", CenterFilter},
                                    {"wordcount", WordCountFilter},
                                    {"truncate", TruncateFilter},
                                    {"format", FormatFilter},
                                    {"escape", EscapeFilter},
                                    {"e", EscapeFilter},
                                    {"forceescape", ForceEscapeFilter},
                                    {"urlencode", UrlEncodeFilter}};

}  // namespace

std::span<const Builtin> TextFilters() { return kTextFilters; }

}  // namespace vivace::jinja

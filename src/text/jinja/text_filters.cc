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
  return Value::Of(MapCase(runtime, ToFlatStr(runtime, self), kMode));
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
  return Value::Of(Replace(runtime, ToFlatStr(runtime, self), ToFlatStr(runtime, params.Get(0)),
                           ToFlatStr(runtime, params.Get(1)), count));
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
  return Value::Of(out.Finish());
}

Value CenterFilter(Runtime& runtime, Value self, const Args& args) {
  const Params params("center", args, {"width"});
  return Value::Of(Pad(runtime, ToFlatStr(runtime, self), params.Int(0, 80), nullptr, '^'));
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
  if (self.is_undefined()) RaiseUndefined(self);
  if (!self.is_string()) Raise(kBadArgument, "truncate needs a string");
  const Str* text = Flat(runtime.arena, self.str);
  const Str* end = params.OptionalStr(runtime, 2);
  if (end == nullptr) end = MakeStr(runtime.arena, "...", true);
  const int64_t length = params.Int(0, 255), end_length = Length(runtime, Value::Of(end));
  const int64_t leeway = params.Get(3).is_none() ? 5 : params.Int(3, 5);
  if (length < end_length || leeway < 0)
    Raise(kBadArgument, "truncate got a length that is too small");
  if (Length(runtime, self) - leeway <= length) return self;
  const Str* cut = SliceOf(runtime, Value::Of(text), Value::None(), Value::Int(length - end_length),
                           Value::None())
                       .str;
  const size_t blank = params.Truthy(1, false) ? kNotFound : cut->view().rfind(' ');
  if (blank != kNotFound) cut = Slice(runtime.arena, cut, 0, blank);
  return Value::Of(Concat(runtime.arena, cut, end));
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

// Replaces single bytes by words, each with its byte's origin.
template <typename WordOf>
const Str* MapBytes(Runtime& runtime, const Str* text, WordOf&& word_of) {
  runtime.ChargeBytes(text->size * 4);
  StrBuilder out(runtime.arena);
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string mapped;
    for (const char c : piece) word_of(c, mapped);
    out.Append(mapped, trusted);
  });
  return out.Finish();
}

Value EscapeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("escape", args, {});
  return Value::Of(MapBytes(runtime, ToFlatStr(runtime, self), [](char c, std::string& out) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }));
}

Value UrlEncodeFilter(Runtime& runtime, Value self, const Args& args) {
  Params("urlencode", args, {});
  if (self.kind == Kind::kDict || self.kind == Kind::kSeq) {
    Raise(kBadArgument, "urlencode needs a string");
  }
  return Value::Of(MapBytes(runtime, ToFlatStr(runtime, self), [](char c, std::string& out) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte < 0x80 && IsAlnum(byte)) || std::string_view("_.-~/").find(c) != kNotFound) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }));
}

constexpr Builtin kTextFilters[] = {{"upper", CaseFilter<Case::kUpper>},
                                    {"lower", CaseFilter<Case::kLower>},
                                    {"capitalize", CaseFilter<Case::kCapitalize>},
                                    {"title", TitleFilter},
                                    {"trim", TrimFilter},
                                    {"replace", ReplaceFilter},
                                    {"string", StringFilter},
                                    {"safe", StringFilter},
                                    {"tojson", ToJsonFilter},
                                    {"indent", IndentFilter},
                                    {"center", CenterFilter},
                                    {"wordcount", WordCountFilter},
                                    {"truncate", TruncateFilter},
                                    {"format", FormatFilter},
                                    {"escape", EscapeFilter},
                                    {"e", EscapeFilter},
                                    {"forceescape", EscapeFilter},
                                    {"urlencode", UrlEncodeFilter}};

}  // namespace

std::span<const Builtin> TextFilters() { return kTextFilters; }

}  // namespace vivace::jinja

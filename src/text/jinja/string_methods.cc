// Methods of str, with Python's parameters and answers.
#include <algorithm>
#include <iterator>

#include "text/jinja/format.h"
#include "text/jinja/methods.h"
#include "text/jinja/operators.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

const Str* Self(Runtime& runtime, Value self) { return Flat(runtime.arena, self.str); }

template <Case kMode>
Value CaseMethod(Runtime& runtime, Value self, const Args& args) {
  Params("this method", args, {});
  const Str* text = Self(runtime, self);
  return Value::Of(Like(runtime, text, MapCase(runtime, text, kMode)));
}

template <bool kLeft, bool kRight>
Value StripMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("strip", args, {"chars"});
  return Value::Of(
      Strip(runtime, Self(runtime, self), params.OptionalStr(runtime, 0), kLeft, kRight));
}

template <bool kFromRight>
Value SplitMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("split", args, {"sep", "maxsplit"});
  return Value::Of(Split(runtime, Self(runtime, self), params.OptionalStr(runtime, 0),
                         params.Int(1, -1), kFromRight));
}

Value SplitLinesMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("splitlines", args, {"keepends"});
  return Value::Of(SplitLines(runtime, Self(runtime, self), params.Truthy(0, false)));
}

const Str* NeedStr(Runtime& runtime, const Params& params, size_t i) {
  const Str* text = params.OptionalStr(runtime, i);
  if (text == nullptr) Raise(kBadArgument, "this method needs a string");
  return text;
}

// The byte range that optional start and end arguments (in code points) select.
struct ByteRange {
  size_t begin, end;
  bool valid;  // false when start lies past the end of the text
};

ByteRange SelectRange(Runtime& runtime, const Str* text, const Params& params, size_t first) {
  const int64_t length = Length(runtime, Value::Of(text));
  const auto bound = [&](size_t i, int64_t missing) {
    if (!params.Has(i) || params.Get(i).is_none()) return missing;
    const int64_t at = params.Int(i, missing);
    return at < 0 ? std::max<int64_t>(0, at < -length ? 0 : at + length) : at;
  };
  const int64_t start = bound(first, 0), end = std::min(bound(first + 1, length), length);
  if (start > length) return {text->size, text->size, false};
  const auto offset = [&](int64_t at) {
    return text->ascii ? static_cast<size_t>(at)
                       : CodePointOffset(text->view(), static_cast<size_t>(at));
  };
  return {offset(start), offset(end), start <= end};
}

template <bool kAtEnd>
Value AffixMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params(kAtEnd ? "endswith" : "startswith", args, {"prefix", "start", "end"}, 1);
  const Str* text = Self(runtime, self);
  const ByteRange range = SelectRange(runtime, text, params, 1);
  const auto matches = [&](Value affix) {
    if (affix.is_undefined()) RaiseUndefined(affix);
    if (!affix.is_string()) Raise(kBadArgument, "startswith and endswith need strings");
    const std::string_view word = Flat(runtime.arena, affix.str)->view();
    if (!range.valid) return false;
    const std::string_view part = text->view().substr(range.begin, range.end - range.begin);
    runtime.ChargeBytes(word.size());
    return kAtEnd ? part.ends_with(word) : part.starts_with(word);
  };
  const Value affix = params.Get(0);
  if (affix.kind != Kind::kSeq || !affix.seq->is_tuple()) return Value::Bool(matches(affix));
  const auto& items = affix.seq->items;
  return Value::Bool(std::any_of(items.begin(), items.end(), matches));
}

Value ReplaceMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("replace", args, {"old", "new", "count"}, 2);
  const Str* text = Self(runtime, self);
  const Str* fresh = NeedStr(runtime, params, 1);
  if (text->markup) fresh = EscapeHtml(runtime, fresh);
  return Value::Of(
      Like(runtime, text,
           Replace(runtime, text, NeedStr(runtime, params, 0), fresh, params.Int(2, -1))));
}

template <bool kLast, bool kMustFind>
Value FindMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("find", args, {"sub", "start", "end"}, 1);
  const Str* text = Self(runtime, self);
  const std::string_view word = NeedStr(runtime, params, 0)->view();
  const ByteRange range = SelectRange(runtime, text, params, 1);
  if (kLast) ChargeBackwardSearch(runtime, text->size, word.size());
  runtime.ChargeBytes(text->size);
  size_t at = kNotFound;
  if (range.valid) {
    at = (kLast ? FindTextLast : FindText)(text->view(), word, range.begin, range.end);
  }
  if (at == kNotFound) {
    if (kMustFind) Raise(kBadArgument, "substring not found");
    return Value::Int(-1);
  }
  return Value::Int(static_cast<int64_t>(CountCodePoints(text->view().substr(0, at))));
}

Value CountMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("count", args, {"sub", "start", "end"}, 1);
  const Str* text = Self(runtime, self);
  const std::string_view word = NeedStr(runtime, params, 0)->view();
  const ByteRange range = SelectRange(runtime, text, params, 1);
  if (!range.valid) return Value::Int(0);
  runtime.ChargeBytes(text->size);
  const std::string_view part = text->view().substr(range.begin, range.end - range.begin);
  if (word.empty()) return Value::Int(static_cast<int64_t>(CountCodePoints(part)) + 1);
  int64_t count = 0;
  for (size_t at = FindText(part, word, 0, part.size()); at != kNotFound;
       at = FindText(part, word, at + word.size(), part.size())) {
    ++count;
  }
  return Value::Int(count);
}

Value JoinMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("join", args, {"iterable"}, 1);
  if (!IsIterable(params.Get(0))) Raise(kBadArgument, "join needs an iterable");
  StrBuilder out(runtime.arena);
  bool first = true;
  for (const Value& item : Items(runtime, params.Get(0))) {
    runtime.Charge();
    const bool markup = self.str->markup;  // which escapes whatever it joins
    if (!item.is_string() && !markup) {
      Raise(kBadArgument, "join needs strings, got {}", TypeName(item));
    }
    if (!std::exchange(first, false)) out.AppendStr(self.str);
    out.AppendStr(markup ? EscapeHtml(runtime, ToStr(runtime, item)) : item.str);
  }
  runtime.ChargeBytes(out.size());
  return Value::Of(Like(runtime, self.str, out.Finish()));
}

Value FormatMethod(Runtime& runtime, Value self, const Args& args) {
  return Value::Of(FormatBraces(runtime, self.str, args).str);
}

// All characters have the property, and there is one at least.
template <bool (*kProperty)(char32_t)>
Value AllMethod(Runtime& runtime, Value self, const Args& args) {
  Params("this method", args, {});
  const Str* text = Self(runtime, self);
  runtime.ChargeBytes(text->size * 4);
  for (size_t at = 0; at < text->size;) {
    if (!kProperty(NextCodePoint(text->view(), at))) return Value::Bool(false);
  }
  return Value::Bool(text->size > 0);
}

template <bool (*kWanted)(char32_t)>
Value CasedMethod(Runtime& runtime, Value self, const Args& args) {
  Params("this method", args, {});
  const Str* text = Self(runtime, self);
  runtime.ChargeBytes(text->size * 4);
  bool cased = false;
  for (size_t at = 0; at < text->size;) {
    const char32_t code = NextCodePoint(text->view(), at);
    if (IsCased(code) && !kWanted(code)) return Value::Bool(false);
    cased = cased || IsCased(code);
  }
  return Value::Bool(cased);
}

// Upper becomes lower and the other way round.
Value SwapCaseMethod(Runtime& runtime, Value self, const Args& args) {
  Params("swapcase", args, {});
  const Str* text = Self(runtime, self);
  return Value::Of(Like(runtime, text, MapCase(runtime, text, Case::kSwap)));
}

Value IsTitleMethod(Runtime& runtime, Value self, const Args& args) {
  Params("istitle", args, {});
  const Str* text = Self(runtime, self);
  runtime.ChargeBytes(text->size * 4);
  bool cased = false, previous_cased = false;
  for (size_t at = 0; at < text->size;) {
    const char32_t code = NextCodePoint(text->view(), at);
    const bool title = !IsLower(code) && IsCased(code);
    if (title ? previous_cased : IsLower(code) && !previous_cased) return Value::Bool(false);
    previous_cased = IsCased(code);
    cased = cased || previous_cased;
  }
  return Value::Bool(cased);
}

Value IsAsciiMethod(Runtime& runtime, Value self, const Args& args) {
  Params("isascii", args, {});
  return Value::Bool(Self(runtime, self)->ascii);
}

Value IsPrintableMethod(Runtime& runtime, Value self, const Args& args) {
  Params("isprintable", args, {});
  const Str* text = Self(runtime, self);
  runtime.ChargeBytes(text->size * 4);
  for (size_t at = 0; at < text->size;) {
    if (!IsPrintable(NextCodePoint(text->view(), at))) return Value::Bool(false);
  }
  return Value::Bool(true);
}

Value ExpandTabsMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("expandtabs", args, {"tabsize"});
  const Str* text = Self(runtime, self);
  const int64_t size = params.Int(0, 8);
  if (size > static_cast<int64_t>(limits::kTemplateOutputBytes)) {
    Raise(kOutputLimit, "a string would be longer than {} bytes", limits::kTemplateOutputBytes);
  }
  StrBuilder out(runtime.arena);
  int64_t column = 0;
  for (size_t at = 0; at < text->size;) {
    const size_t begin = at;
    const char32_t code = NextCodePoint(text->view(), at);
    if (code == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      runtime.ChargeBytes(static_cast<size_t>(blanks) * 4);
      for (int64_t i = 0; i < blanks; ++i) out.Append(' ', true);
      column += blanks;
      continue;
    }
    out.AppendSlice(text, begin, at);
    column = code == '\n' || code == '\r' ? 0 : column + 1;
  }
  runtime.ChargeBytes(out.size() * 4);
  return Value::Of(Like(runtime, text, out.Finish()));
}

Value FormatMapMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("format_map", args, {"mapping"}, 1);
  if (params.Get(0).kind != Kind::kDict) Raise(kBadArgument, "format_map needs a mapping");
  std::pmr::vector<std::pair<std::string_view, Value>> named(&runtime.arena);
  for (const auto& [key, value] : params.Get(0).dict->entries) {
    if (key.is_string()) named.emplace_back(Flat(runtime.arena, key.str)->view(), value);
  }
  return Value::Of(FormatBraces(runtime, self.str, {{}, named}).str);
}

template <char kAlign>
Value PadMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("this method", args, {"width", "fillchar"}, 1);
  const Str* text = Self(runtime, self);
  const Str* fill = params.OptionalStr(runtime, 1);
  if (fill != nullptr && text->markup) fill = EscapeHtml(runtime, fill);
  if (fill != nullptr && CountCodePoints(fill->view()) != 1) {
    Raise(kBadArgument, "the fill must be one character");
  }
  return Value::Of(Like(runtime, text, Pad(runtime, text, params.Int(0, 0), fill, kAlign)));
}

Value ZFillMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("zfill", args, {"width"}, 1);
  const Str* text = Self(runtime, self);
  const bool sign = text->size > 0 && (text->data[0] == '+' || text->data[0] == '-');
  const Str* digits = Slice(runtime.arena, text, sign ? 1 : 0, text->size);
  const Str* padded = Pad(runtime, digits, params.Int(0, 0) - (sign ? 1 : 0),
                          MakeStr(runtime.arena, "0", true), '>');
  return Value::Of(
      Like(runtime, text,
           sign ? Concat(runtime.arena, Slice(runtime.arena, text, 0, 1), padded) : padded));
}

template <bool kSuffix>
Value RemoveAffixMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("this method", args, {"affix"}, 1);
  const Str* text = Self(runtime, self);
  const std::string_view affix = NeedStr(runtime, params, 0)->view();
  const std::string_view all = text->view();
  if (affix.empty() || !(kSuffix ? all.ends_with(affix) : all.starts_with(affix))) return self;
  return Value::Of(kSuffix ? Slice(runtime.arena, text, 0, all.size() - affix.size())
                           : Slice(runtime.arena, text, affix.size(), all.size()));
}

template <bool kLast>
Value PartitionMethod(Runtime& runtime, Value self, const Args& args) {
  const Params params("partition", args, {"sep"}, 1);
  const Str* text = Self(runtime, self);
  const Str* word = NeedStr(runtime, params, 0);
  if (word->size == 0) Raise(kBadArgument, "partition needs a separator that is not empty");
  if (kLast) ChargeBackwardSearch(runtime, text->size, word->size);
  runtime.ChargeBytes(text->size);
  const size_t at = (kLast ? FindTextLast : FindText)(text->view(), word->view(), 0, text->size);
  const Value empty = Value::Of(Like(runtime, text, MakeStr(runtime.arena, "", true)));
  word = Like(runtime, text, word);
  if (at == kNotFound) {
    return kLast ? runtime.List({empty, empty, self}, SeqKind::kTuple)
                 : runtime.List({self, empty, empty}, SeqKind::kTuple);
  }
  return runtime.List({Value::Of(Slice(runtime.arena, text, 0, at)), Value::Of(word),
                       Value::Of(Slice(runtime.arena, text, at + word->size, text->size))},
                      SeqKind::kTuple);
}

struct Method {
  std::string_view name;
  NativeFn function;
};

constexpr Method kMethods[] = {
    {"upper", CaseMethod<Case::kUpper>},
    {"lower", CaseMethod<Case::kLower>},
    {"title", CaseMethod<Case::kTitle>},
    {"capitalize", CaseMethod<Case::kCapitalize>},
    {"strip", StripMethod<true, true>},
    {"lstrip", StripMethod<true, false>},
    {"rstrip", StripMethod<false, true>},
    {"split", SplitMethod<false>},
    {"rsplit", SplitMethod<true>},
    {"splitlines", SplitLinesMethod},
    {"startswith", AffixMethod<false>},
    {"endswith", AffixMethod<true>},
    {"replace", ReplaceMethod},
    {"find", FindMethod<false, false>},
    {"rfind", FindMethod<true, false>},
    {"index", FindMethod<false, true>},
    {"rindex", FindMethod<true, true>},
    {"count", CountMethod},
    {"join", JoinMethod},
    {"format", FormatMethod},
    {"isdigit", AllMethod<IsDigitChar>},
    {"isdecimal", AllMethod<IsDecimal>},
    {"isnumeric", AllMethod<IsNumeric>},
    {"isalpha", AllMethod<IsAlpha>},
    {"isalnum", AllMethod<IsAlnum>},
    {"isspace", AllMethod<IsSpace>},
    {"isupper", CasedMethod<IsUpper>},
    {"islower", CasedMethod<IsLower>},
    {"ljust", PadMethod<'<'>},
    {"rjust", PadMethod<'>'>},
    {"center", PadMethod<'^'>},
    {"zfill", ZFillMethod},
    {"removeprefix", RemoveAffixMethod<false>},
    {"removesuffix", RemoveAffixMethod<true>},
    {"swapcase", SwapCaseMethod},
    {"istitle", IsTitleMethod},
    {"isascii", IsAsciiMethod},
    {"isprintable", IsPrintableMethod},
    {"expandtabs", ExpandTabsMethod},
    {"format_map", FormatMapMethod},
    {"partition", PartitionMethod<false>},
    {"rpartition", PartitionMethod<true>},
};

}  // namespace

NativeFn FindStringMethod(std::string_view name) {
  const auto it = std::find_if(std::begin(kMethods), std::end(kMethods),
                               [&](const Method& method) { return method.name == name; });
  return it == std::end(kMethods) ? nullptr : it->function;
}

}  // namespace vivace::jinja

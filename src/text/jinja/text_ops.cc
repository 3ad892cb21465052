#include "text/jinja/text_ops.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace vivace::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;

// Python writes a sigma that ends a word as the final one.
bool IsFinalSigma(std::string_view text, size_t at, size_t next) {
  size_t before = at;
  while (before > 0 && (static_cast<uint8_t>(text[--before]) & 0xC0) == 0x80) {
  }
  size_t cursor = before;
  const bool after_cased = at > 0 && IsCased(NextCodePoint(text, cursor));
  return after_cased && (next >= text.size() || !IsCased(NextCodePoint(text, next)));
}

// Builds a string by mapping each code point with its origin kept.
template <typename Map>
const Str* MapCodePoints(Runtime& runtime, const Str* text, Map&& map) {
  runtime.ChargeBytes(text->size * 4);
  StrBuilder out(runtime.arena);
  out.Reserve(text->size);
  const char* base = text->data;
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string mapped;
    mapped.reserve(piece.size());
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = static_cast<size_t>(piece.data() - base) + at;
      const char32_t code = NextCodePoint(piece, at);
      map(code, begin, static_cast<size_t>(piece.data() - base) + at, mapped);
    }
    out.Append(mapped, trusted);
  });
  return out.Finish();
}

// Byte offsets of separators, at most `limit` of them, in text order.
std::vector<size_t> FindAll(std::string_view text, std::string_view word, int64_t limit,
                            bool from_right) {
  std::vector<size_t> found;
  size_t begin = 0, end = text.size();
  while (static_cast<int64_t>(found.size()) < limit) {
    const size_t at =
        from_right ? FindTextLast(text, word, 0, end) : FindText(text, word, begin, end);
    if (at == kNotFound) break;
    found.push_back(at);
    (from_right ? end : begin) = from_right ? at : at + word.size();
  }
  if (from_right) std::reverse(found.begin(), found.end());
  return found;
}

void SplitAtSpace(Runtime& runtime, const Str* text, int64_t limit, Seq& out) {
  const std::string_view all = text->view();
  size_t at = StripLeftOffset(all);
  while (at < all.size()) {
    size_t end = at;
    if (limit-- == 0) {
      end = all.size();
    } else {
      for (size_t next = end; next < all.size(); end = next) {
        if (IsSpace(NextCodePoint(all, next))) break;
      }
    }
    out.items.push_back(Value::Of(Slice(runtime.arena, text, at, end)));
    at = end + StripLeftOffset(all.substr(end));
  }
}

void SplitAtSpaceFromRight(Runtime& runtime, const Str* text, int64_t limit, Seq& out) {
  const std::string_view all = text->view();
  size_t end = StripRightOffset(all);
  while (end > 0) {
    size_t begin = limit-- == 0 ? 0 : end;
    if (begin == end) {
      while (begin > 0) {
        size_t previous = begin - 1;
        while (previous > 0 && (static_cast<uint8_t>(all[previous]) & 0xC0) == 0x80) --previous;
        size_t cursor = previous;
        if (IsSpace(NextCodePoint(all, cursor))) break;
        begin = previous;
      }
    }
    out.items.push_back(Value::Of(Slice(runtime.arena, text, begin, end)));
    if (limit < 0) break;
    end = StripRightOffset(all.substr(0, begin));
  }
  std::reverse(out.items.begin(), out.items.end());
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

const Str* WithMarkup(Runtime& runtime, const Str* text, bool markup) {
  if (text->markup == markup) return text;
  Str* copy = runtime.arena.New<Str>(*Flat(runtime.arena, text));
  copy->markup = markup;
  return copy;
}

std::string_view HtmlEscape(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

}  // namespace

const Str* AsMarkup(Runtime& runtime, const Str* text) { return WithMarkup(runtime, text, true); }
const Str* AsPlain(Runtime& runtime, const Str* text) { return WithMarkup(runtime, text, false); }
const Str* Like(Runtime& runtime, const Str* model, const Str* result) {
  return WithMarkup(runtime, result, model->markup);
}

const Str* EscapeHtml(Runtime& runtime, const Str* text) {
  if (text->markup) return text;
  text = Flat(runtime.arena, text);
  runtime.ChargeBytes(text->size * 4);
  StrBuilder out(runtime.arena);
  ForEachRun(text, 0, text->size, [&](std::string_view piece, bool trusted) {
    std::string mapped;
    for (const char c : piece) {
      const std::string_view word = HtmlEscape(c);
      word.empty() ? mapped.push_back(c) : static_cast<void>(mapped.append(word));
    }
    out.Append(mapped, trusted);
  });
  return AsMarkup(runtime, out.Finish());
}

const Str* MapCase(Runtime& runtime, const Str* text, Case mode) {
  bool previous_cased = false, first = true;
  const std::string_view all = text->view();
  return MapCodePoints(
      runtime, text, [&](char32_t code, size_t begin, size_t next, std::string& out) {
        const bool lower = mode == Case::kLower || (mode == Case::kTitle && previous_cased) ||
                           (mode == Case::kCapitalize && !first) ||
                           (mode == Case::kSwap && IsUpper(code));
        if (mode == Case::kSwap && !IsUpper(code)) {
          IsLower(code) ? AppendUpper(code, out) : AppendUtf8(code, out);
        } else if (mode == Case::kUpper) {
          AppendUpper(code, out);
        } else if (!lower) {
          AppendTitle(code, out);
        } else if (code == kSigma && IsFinalSigma(all, begin, next)) {
          AppendUtf8(kFinalSigma, out);
        } else {
          AppendLower(code, out);
        }
        previous_cased = IsCased(code);
        first = false;
      });
}

const Str* TitleWords(Runtime& runtime, const Str* text) {
  bool begins = true;
  return MapCodePoints(runtime, text, [&](char32_t code, size_t, size_t, std::string& out) {
    const bool separator =
        IsSpace(code) || (code < 0x80 && std::strchr("-({[<", static_cast<int>(code)) && code != 0);
    begins ? AppendUpper(code, out) : AppendLower(code, out);
    begins = separator;
  });
}

const Str* Strip(Runtime& runtime, const Str* text, const Str* chars, bool left, bool right) {
  const std::string_view all = text->view();
  runtime.ChargeBytes(all.size());
  if (chars == nullptr) {
    const size_t end = right ? StripRightOffset(all) : all.size();
    const size_t begin = left ? StripLeftOffset(all.substr(0, end)) : 0;
    return Slice(runtime.arena, text, begin, end);
  }
  std::vector<char32_t> set;
  for (size_t at = 0; at < chars->size;) set.push_back(NextCodePoint(chars->view(), at));
  std::sort(set.begin(), set.end());
  const auto in_set = [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); };
  size_t begin = 0, end = all.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!in_set(NextCodePoint(all, next))) break;
    begin = next;
  }
  while (right && end > begin) {
    size_t previous = end - 1;
    while (previous > begin && (static_cast<uint8_t>(all[previous]) & 0xC0) == 0x80) --previous;
    size_t cursor = previous;
    if (!in_set(NextCodePoint(all, cursor))) break;
    end = previous;
  }
  return Slice(runtime.arena, text, begin, end);
}

size_t FindText(std::string_view text, std::string_view word, size_t begin, size_t end) {
  if (begin > end || word.size() > end - begin) return kNotFound;
  if (word.empty()) return begin;
  const void* hit = memmem(text.data() + begin, end - begin, word.data(), word.size());
  return hit == nullptr ? kNotFound
                        : static_cast<size_t>(static_cast<const char*>(hit) - text.data());
}

size_t FindTextLast(std::string_view text, std::string_view word, size_t begin, size_t end) {
  if (begin > end || word.size() > end - begin) return kNotFound;
  const size_t at = text.substr(begin, end - begin).rfind(word);
  return at == kNotFound ? kNotFound : at + begin;
}

const Str* Replace(Runtime& runtime, const Str* text, const Str* old_text, const Str* new_text,
                   int64_t count) {
  runtime.ChargeBytes(text->size);
  const int64_t limit = count < 0 ? INT64_MAX : count;
  StrBuilder out(runtime.arena);
  if (old_text->size == 0) {  // between all code points
    int64_t left = limit;
    for (size_t at = 0; at < text->size;) {
      const size_t begin = at;
      NextCodePoint(text->view(), at);
      if (left > 0) out.AppendStr(new_text);
      if (left > 0) runtime.Charge(), --left;
      out.AppendSlice(text, begin, at);
    }
    if (left > 0) out.AppendStr(new_text);
    return out.Finish();
  }
  size_t at = 0;
  for (int64_t done = 0; done < limit; ++done) {
    const size_t hit = FindText(text->view(), old_text->view(), at, text->size);
    if (hit == kNotFound) break;
    runtime.ChargeItems(1 + text->runs.size());
    out.AppendSlice(text, at, hit);
    out.AppendStr(new_text);
    at = hit + old_text->size;
  }
  if (at == 0) return text;
  out.AppendSlice(text, at, text->size);
  return out.Finish();
}

void ChargeBackwardSearch(Runtime& runtime, size_t text, size_t word) {
  runtime.Charge(static_cast<int64_t>(text * std::min<size_t>(word, 1 << 20) >> 12));
}

Seq* Split(Runtime& runtime, const Str* text, const Str* separator, int64_t max_splits,
           bool from_right) {
  runtime.ChargeBytes(text->size);
  Seq* out = runtime.NewSeq(SeqKind::kList);
  const int64_t limit = max_splits < 0 ? INT64_MAX : max_splits;
  if (separator == nullptr) {
    (from_right ? SplitAtSpaceFromRight : SplitAtSpace)(runtime, text, limit, *out);
    return out;
  }
  if (separator->size == 0) Raise(kBadArgument, "split needs a separator that is not empty");
  if (from_right) ChargeBackwardSearch(runtime, text->size, separator->size);
  size_t at = 0;
  for (const size_t hit : FindAll(text->view(), separator->view(), limit, from_right)) {
    runtime.ChargeItems(1 + text->runs.size());
    out->items.push_back(Value::Of(Slice(runtime.arena, text, at, hit)));
    at = hit + separator->size;
  }
  out->items.push_back(Value::Of(Slice(runtime.arena, text, at, text->size)));
  return out;
}

Seq* SplitLines(Runtime& runtime, const Str* text, bool keep_ends) {
  runtime.ChargeBytes(text->size * 4);
  Seq* out = runtime.NewSeq(SeqKind::kList);
  const std::string_view all = text->view();
  size_t begin = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t end = at;
    const char32_t code = NextCodePoint(all, at);
    if (!IsLineEnd(code)) continue;
    if (code == '\r' && at < all.size() && all[at] == '\n') ++at;
    out->items.push_back(Value::Of(Slice(runtime.arena, text, begin, keep_ends ? at : end)));
    begin = at;
  }
  if (begin < all.size())
    out->items.push_back(Value::Of(Slice(runtime.arena, text, begin, all.size())));
  return out;
}

const Str* Pad(Runtime& runtime, const Str* text, int64_t width, const Str* fill, char align) {
  const int64_t length = Length(runtime, Value::Of(text));
  if (width <= length) return text;
  if (width - length > static_cast<int64_t>(limits::kTemplateOutputBytes)) {
    Raise(kOutputLimit, "a string would be longer than {} bytes", limits::kTemplateOutputBytes);
  }
  const int64_t missing = width - length;
  runtime.ChargeBytes(static_cast<size_t>(missing) * 4);
  // Python puts the odd blank of a centred text to the left when the width is odd too.
  const int64_t left = align == '>'   ? missing
                       : align == '<' ? 0
                                      : missing / 2 + (missing & width & 1);
  StrBuilder out(runtime.arena);
  const auto blanks = [&](int64_t count) {
    for (; count > 0; --count) fill == nullptr ? out.Append(' ', true) : out.AppendStr(fill);
  };
  blanks(left);
  out.AppendStr(text);
  blanks(missing - left);
  return out.Finish();
}

}  // namespace vivace::jinja

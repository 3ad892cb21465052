#include "text/pretokenizer.h"

#include "base/utf8.h"
#include "text/unicode.h"
#include "text/unicode_class.h"

namespace vivace {
namespace {

using unicode::kLetter;
using unicode::kNumber;
using unicode::kNumeric;
using unicode::kSpace;

#define VIVACE_PATTERN_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define VIVACE_CASE_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define VIVACE_WORD_A \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define VIVACE_WORD_B \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define VIVACE_CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
constexpr KnownPattern kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     Pretokenizer::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     Pretokenizer::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" VIVACE_PATTERN_TAIL,
     Pretokenizer::kLlama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" VIVACE_PATTERN_TAIL,
     Pretokenizer::kQwen2},
    {VIVACE_WORD_A VIVACE_CONTRACTION "?|" VIVACE_WORD_B VIVACE_CONTRACTION
                                      R"(?|\p{N}{1,3})" VIVACE_CASE_TAIL,
     Pretokenizer::kO200k},
    {VIVACE_WORD_A "|" VIVACE_WORD_B R"(|\p{N})" VIVACE_CASE_TAIL, Pretokenizer::kTekken},
};
#undef VIVACE_CASE_TAIL
#undef VIVACE_WORD_A
#undef VIVACE_WORD_B
#undef VIVACE_CONTRACTION
#undef VIVACE_PATTERN_TAIL

// One character: its property bits and its length, 0 at the end of the text.
struct Char {
  uint8_t properties;
  uint8_t length;

  bool Is(uint8_t any_of) const { return (properties & any_of) != 0; }
  // Neither space, letter nor number: [^\s\p{L}\p{N}].
  bool IsOther() const { return length != 0 && !Is(kSpace | kLetter | kNumber); }
};

// A view of the text as one pattern sees it. `isolated` bits mark characters that end the text for
// everything before them (SmolLM cuts the text at numbers before its pattern runs).
struct Scanner {
  std::string_view text;
  uint8_t isolated = 0;

  char ByteAt(size_t pos) const { return pos < text.size() ? text[pos] : '\0'; }

  Char Raw(size_t pos) const {
    if (pos >= text.size()) return {0, 0};
    const auto byte = static_cast<unsigned char>(text[pos]);
    if (byte < 0x80) return {unicode::kBlocks[0][byte], 1};
    const utf8::Decoded c = utf8::DecodeMultiByte(text, pos);
    return {c.valid ? unicode::Properties(c.code_point) : uint8_t{0}, c.length};
  }

  Char At(size_t pos) const {
    const Char c = Raw(pos);
    return c.Is(isolated) ? Char{0, 0} : c;
  }

  size_t SkipAny(size_t pos, uint8_t any_of) const {
    for (Char c = At(pos); c.Is(any_of); c = At(pos)) pos += c.length;
    return pos;
  }
  size_t SkipOthers(size_t pos) const {
    for (Char c = At(pos); c.IsOther(); c = At(pos)) pos += c.length;
    return pos;
  }
};
static_assert(unicode::kBlockSize == 128, "Raw reads ASCII from the first block");

// The end of 's 't 'm 'd 're 've 'll at `pos`, which holds an apostrophe; `pos` when there is none.
size_t ContractionEnd(const Scanner& s, size_t pos, bool any_case) {
  const char fold = any_case ? 0x20 : 0;
  const auto letter = [&](size_t at) -> char {
    const char c = s.ByteAt(at);
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | fold) : c;
  };
  const char first = letter(pos + 1);
  const char second = letter(pos + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return pos + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return pos + 3;
  if (first == 'l' && second == 'l') return pos + 3;
  // U+017F, the long s, is the one other character that folds to a letter of the list.
  if (any_case && s.text.substr(pos + 1, 2) == "\xC5\xBF") return pos + 3;
  return pos;
}

// \s+(?!\S)|\s+ : a run of spaces gives its last one up to the word that follows, if there is one.
size_t SpacesEnd(const Scanner& s, size_t pos) {
  size_t last = pos;
  size_t end = pos;
  for (Char c = s.At(end); c.Is(kSpace); c = s.At(end)) {
    last = end;
    end += c.length;
  }
  const bool at_end = s.At(end).length == 0;
  return at_end || last == pos ? end : last;
}

size_t Gpt2End(const Scanner& s, size_t pos) {
  if (s.text[pos] == '\'') {
    const size_t end = ContractionEnd(s, pos, /*any_case=*/false);
    if (end != pos) return end;
  }
  const size_t begin = s.text[pos] == ' ' ? pos + 1 : pos;
  const Char c = s.At(begin);
  if (c.Is(kLetter)) return s.SkipAny(begin, kLetter);
  if (c.Is(kNumber)) return s.SkipAny(begin, kNumber);
  if (c.IsOther()) return s.SkipOthers(begin);
  return SpacesEnd(s, pos);
}

size_t SmolLmEnd(std::string_view text, size_t pos) {
  const Scanner s{text, kNumeric};
  const Char c = s.Raw(pos);
  return c.Is(kNumeric) ? pos + c.length : Gpt2End(s, pos);
}

bool IsNewline(char c) { return c == '\n' || c == '\r'; }

// \s*[\r\n]+|\s+(?!\S)|\s+ : a run of spaces ends after its last newline, if it has one.
size_t SpacesOrNewlinesEnd(const Scanner& s, size_t pos) {
  size_t after_newline = pos;
  for (size_t at = pos; s.At(at).Is(kSpace); at += s.At(at).length) {
    if (IsNewline(s.text[at])) after_newline = at + 1;
  }
  return after_newline != pos ? after_newline : SpacesEnd(s, pos);
}

size_t NumbersEnd(const Scanner& s, size_t pos, int most) {
  for (int i = 0; i < most && s.At(pos).Is(kNumber); ++i) pos += s.At(pos).length;
  return pos;
}

size_t Llama3End(const Scanner& s, size_t pos, int max_numbers) {
  if (s.text[pos] == '\'') {
    const size_t end = ContractionEnd(s, pos, /*any_case=*/true);
    if (end != pos) return end;
  }
  const Char c = s.At(pos);
  if (c.Is(kLetter)) return s.SkipAny(pos, kLetter);
  if (c.Is(kNumber)) return NumbersEnd(s, pos, max_numbers);
  const size_t next = pos + c.length;
  if (!IsNewline(s.text[pos]) && s.At(next).Is(kLetter)) return s.SkipAny(next, kLetter);
  const size_t others = s.text[pos] == ' ' ? next : pos;
  if (s.At(others).IsOther()) {
    size_t end = s.SkipOthers(others);
    while (IsNewline(s.ByteAt(end))) ++end;
    return end;
  }
  return SpacesOrNewlinesEnd(s, pos);
}

constexpr uint32_t Bit(unicode::Category category) { return 1u << category; }
constexpr uint32_t kCaseless = Bit(unicode::kLm) | Bit(unicode::kLo) | Bit(unicode::kMc) |
                               Bit(unicode::kMe) | Bit(unicode::kMn);
constexpr uint32_t kUpper = Bit(unicode::kLu) | Bit(unicode::kLt) | kCaseless;
constexpr uint32_t kLower = Bit(unicode::kLl) | kCaseless;

// One character: the bit of its category and its length, both 0 at the end of the text.
struct Cased {
  uint32_t category;
  uint8_t length;

  bool Is(uint32_t any_of) const { return (category & any_of) != 0; }
};
Cased CasedAt(std::string_view text, size_t pos) {
  if (pos >= text.size()) return {0, 0};
  const utf8::Decoded c = utf8::Decode(text, pos);
  return {Bit(unicode::CategoryOf(c.code_point)), c.length};
}

size_t SkipCategories(std::string_view text, size_t pos, uint32_t any_of) {
  for (Cased c = CasedAt(text, pos); c.Is(any_of); c = CasedAt(text, pos)) pos += c.length;
  return pos;
}

// upper*lower+ at `pos`, or `pos`. The capitals take all they can; where no small letter follows
// them, the last caseless one among them stands for it.
size_t LowerWordEnd(std::string_view text, size_t pos) {
  size_t last_caseless = pos;
  size_t end = pos;
  Cased c = CasedAt(text, end);
  for (; c.Is(kUpper); c = CasedAt(text, end)) {
    end += c.length;
    if (c.Is(kCaseless)) last_caseless = end;
  }
  return c.Is(kLower) ? SkipCategories(text, end, kLower) : last_caseless;
}

// The end of the word at `pos`, one other character before it included; `pos` if there is none.
size_t CasedWordEnd(const Scanner& s, size_t pos) {
  const Char c = s.At(pos);
  const bool newline = s.text[pos] == '\r' || s.text[pos] == '\n';
  const bool takes_first = !newline && !c.Is(kLetter | kNumber);
  const size_t word = takes_first ? pos + c.length : pos;
  if (const size_t end = LowerWordEnd(s.text, word); end != word) return end;
  if (takes_first) {
    if (const size_t end = LowerWordEnd(s.text, pos); end != pos) return end;
  }
  const size_t end = SkipCategories(s.text, word, kUpper);
  return end != word ? end : pos;
}

size_t CasedEnd(const Scanner& s, size_t pos, int max_numbers, bool contractions) {
  if (const size_t end = CasedWordEnd(s, pos); end != pos) {
    return contractions && s.ByteAt(end) == '\'' ? ContractionEnd(s, end, /*any_case=*/true) : end;
  }
  const Char c = s.At(pos);
  if (c.Is(kNumber)) return NumbersEnd(s, pos, max_numbers);
  const size_t others = s.text[pos] == ' ' ? pos + 1 : pos;
  if (s.At(others).IsOther()) {
    size_t end = s.SkipOthers(others);
    while (IsNewline(s.ByteAt(end)) || s.ByteAt(end) == '/') ++end;
    return end;
  }
  return SpacesOrNewlinesEnd(s, pos);
}

}  // namespace

std::span<const KnownPattern> KnownPatterns() { return kPatterns; }

std::optional<Pretokenizer> PretokenizerByPattern(std::string_view pattern) {
  for (const KnownPattern& known : kPatterns) {
    if (known.pattern == pattern) return known.kind;
  }
  return std::nullopt;
}

size_t PieceEnd(Pretokenizer kind, std::string_view text, size_t pos) {
  switch (kind) {
    case Pretokenizer::kGpt2:
      return Gpt2End(Scanner{text}, pos);
    case Pretokenizer::kSmolLm:
      return SmolLmEnd(text, pos);
    case Pretokenizer::kLlama3:
      return Llama3End(Scanner{text}, pos, 3);
    case Pretokenizer::kQwen2:
      return Llama3End(Scanner{text}, pos, 1);
    case Pretokenizer::kO200k:
      return CasedEnd(Scanner{text}, pos, 3, /*contractions=*/true);
    case Pretokenizer::kTekken:
      return CasedEnd(Scanner{text}, pos, 1, /*contractions=*/false);
  }
  return text.size();
}

}  // namespace vivace

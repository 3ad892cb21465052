#include "text/unicode_class.h"

#include <algorithm>

#include "base/utf8.h"

namespace vivace::unicode {
namespace {

constexpr std::string_view kCategoryNames[] = {
    "Cn", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl",
    "No", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

std::span<const uint32_t> Image(const CharacterMap* map, size_t count, const uint32_t* pool,
                                char32_t c) {
  const CharacterMap* found = std::lower_bound(
      map, map + count, c,
      [](const CharacterMap& entry, char32_t value) { return entry.code_point < value; });
  if (found == map + count || found->code_point != c) return {};
  return {pool + found->offset, found->length};
}

bool IsHangulJoin(Cluster a, Cluster b) {
  switch (a) {
    case kHangulL:
      return b == kHangulL || b == kHangulV || b == kHangulLV || b == kHangulLVT;
    case kHangulLV:
    case kHangulV:
      return b == kHangulV || b == kHangulT;
    case kHangulLVT:
    case kHangulT:
      return b == kHangulT;
    default:
      return false;
  }
}

bool IsBreaker(Cluster c) { return c == kCR || c == kLF || c == kControl; }

}  // namespace

// The rules GB3 to GB13 of Unicode's annex 29, but for GB9c (Indic conjuncts).
size_t ClusterEnd(std::string_view text, size_t pos) {
  utf8::Decoded c = utf8::Decode(text, pos);
  Cluster last = ClusterOf(c.code_point);
  pos += c.length;
  bool pictograph = last == kPictograph;  // a pictograph and extenders, up to here
  bool joined = false;                    // and then a joiner
  size_t regionals = last == kRegional ? 1 : 0;
  while (pos < text.size()) {
    c = utf8::Decode(text, pos);
    const Cluster next = ClusterOf(c.code_point);
    bool join = false;
    if (last == kCR) {
      join = next == kLF;
    } else if (IsBreaker(last) || IsBreaker(next)) {
      join = false;
    } else if (next == kExtend || next == kZwj || next == kSpacingMark || last == kPrepend) {
      join = true;
    } else if (next == kPictograph) {
      join = joined;
    } else if (last == kRegional && next == kRegional) {
      join = regionals % 2 == 1;
    } else {
      join = IsHangulJoin(last, next);
    }
    if (!join) break;
    joined = pictograph && next == kZwj;
    pictograph = next == kPictograph || (pictograph && (next == kExtend || next == kZwj));
    regionals = next == kRegional ? regionals + 1 : 0;
    last = next;
    pos += c.length;
  }
  return pos;
}

uint32_t CategoryMask(std::string_view name) {
  uint32_t mask = 0;
  for (size_t i = 0; i < std::size(kCategoryNames); ++i) {
    const bool same = kCategoryNames[i] == name;
    if (same || (name.size() == 1 && kCategoryNames[i][0] == name[0])) mask |= 1u << i;
  }
  return mask;
}

std::span<const ScriptRange> ScriptRanges(std::string_view name) {
  for (const Script& script : std::span(kScripts, kScriptCount)) {
    if (script.name == name) return {kScriptRanges + script.offset, script.count};
  }
  return {};
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    const auto image = Image(kLowerMap, kLowerCount, kLowerPool, c.code_point);
    if (image.empty()) out.append(text, pos, c.length);
    for (const uint32_t part : image) utf8::Append(part, &out);
    pos += c.length;
  }
  return out;
}

std::span<const uint32_t> CompatibilityDecomposition(char32_t c) {
  return Image(kCompatibilityMap, kCompatibilityCount, kCompatibilityPool, c);
}

}  // namespace vivace::unicode

#include "text/text_pattern.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "text/unicode.h"
#include "text/unicode_class.h"

namespace vivace {
namespace {

using Stretches = std::vector<Stretch>;

// Appends the gap before a match, and the match.
void AddMatch(size_t begin, size_t end, size_t* taken, Stretches* out) {
  if (*taken < begin) out->push_back({*taken, begin, false});
  out->push_back({begin, end, true});
  *taken = end;
}

void FindString(const std::string& wanted, std::string_view text, Stretches* out) {
  size_t taken = 0;
  while (!wanted.empty()) {
    const size_t at = text.find(wanted, taken);
    if (at == std::string_view::npos) break;
    AddMatch(at, at + wanted.size(), &taken, out);
  }
  if (taken < text.size()) out->push_back({taken, text.size(), false});
}

void FindRegex(const Regex& regex, std::string_view text, Stretches* out) {
  Regex::Matcher matcher(regex);
  matcher.Reset(text);
  size_t taken = 0;
  while (const auto match = matcher.Next()) AddMatch(match->begin, match->end, &taken, out);
  if (taken < text.size()) out->push_back({taken, text.size(), false});
}

bool IsOfKind(char32_t c, CharKind kind) {
  switch (kind) {
    case CharKind::kSpace:
      return (unicode::Properties(c) & unicode::kSpace) != 0;
    case CharKind::kPunctuation:
      return (unicode::Classes(c) & unicode::kPunctuation) != 0;
    case CharKind::kNumeric:
      return (unicode::Properties(c) & unicode::kNumeric) != 0;
  }
  return false;
}

void FindCharacters(CharKind kind, std::string_view text, Stretches* out) {
  size_t taken = 0;
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    if (IsOfKind(c.code_point, kind)) AddMatch(pos, pos + c.length, &taken, out);
    pos += c.length;
  }
  if (taken < text.size()) out->push_back({taken, text.size(), false});
}

void FindWordsAndOthers(std::string_view text, Stretches* out) {
  enum { kGap, kWord, kOther };
  int last = kGap;
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    const bool word = (unicode::Classes(c.code_point) & unicode::kWord) != 0;
    const int now = word ? kWord : IsOfKind(c.code_point, CharKind::kSpace) ? kGap : kOther;
    if (pos == 0 || now != last) out->push_back({pos, pos, now != kGap});
    pos += c.length;
    out->back().end = pos;
    last = now;
  }
}

struct Finder {
  std::string_view text;
  Stretches* out;

  void operator()(const std::string& wanted) const { FindString(wanted, text, out); }
  void operator()(const std::shared_ptr<const Regex>& regex) const { FindRegex(*regex, text, out); }
  void operator()(CharKind kind) const { FindCharacters(kind, text, out); }
  void operator()(RunKind) const { FindWordsAndOthers(text, out); }
  void operator()(Pretokenizer kind) const {
    for (size_t pos = 0; pos < text.size(); pos = out->back().end) {
      out->push_back({pos, PieceEnd(kind, text, pos), true});
    }
  }
};

}  // namespace

TextPattern::TextPattern(std::string text) : kind_(std::move(text)) {}
TextPattern::TextPattern(std::shared_ptr<const Regex> regex) : kind_(std::move(regex)) {}
TextPattern::TextPattern(Pretokenizer scanner) : kind_(scanner) {}
TextPattern::TextPattern(CharKind kind) : kind_(kind) {}
TextPattern::TextPattern(RunKind kind) : kind_(kind) {}

void TextPattern::FindAll(std::string_view text, Stretches* out) const {
  std::visit(Finder{text, out}, kind_);
}

void TextPattern::Replace(std::string_view text, std::string_view content, Stretches* scratch,
                          std::string* out) const {
  scratch->clear();
  FindAll(text, scratch);
  for (const Stretch& stretch : *scratch) {
    out->append(stretch.match ? content : text.substr(stretch.begin, stretch.end - stretch.begin));
  }
}

double TextPattern::MostGrowth(std::string_view content) const {
  if (const auto* text = std::get_if<std::string>(&kind_); text != nullptr && !text->empty()) {
    return std::max(static_cast<double>(content.size()) / static_cast<double>(text->size()), 1.0);
  }
  return static_cast<double>(content.size()) + 1;  // an empty match leaves the byte beside it
}

}  // namespace vivace

#include "text/normalizer.h"

#include <optional>
#include <utility>

#include "base/utf8.h"
#include "text/byte_alphabet.h"
#include "text/unicode_class.h"

namespace vivace {
namespace {

using Changed = std::optional<std::string>;  // nothing: the text stays

// Each character by `map(character, bytes, out)`, which appends what stands for it.
template <typename Map>
std::string MapCharacters(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    map(c.code_point, text.substr(pos, c.length), &out);
    pos += c.length;
  }
  return out;
}

std::string Without(std::string_view text, uint16_t classes) {
  return MapCharacters(text, [&](char32_t c, std::string_view bytes, std::string* out) {
    if ((unicode::Classes(c) & classes) == 0) out->append(bytes);
  });
}

std::string CleanAsBert(std::string_view text) {
  return MapCharacters(text, [](char32_t c, std::string_view bytes, std::string* out) {
    const uint16_t classes = unicode::Classes(c);
    if ((classes & unicode::kBertControl) != 0) return;
    out->append((classes & unicode::kBertSpace) != 0 ? " " : bytes);
  });
}

std::string SpaceIdeographs(std::string_view text) {
  return MapCharacters(text, [](char32_t c, std::string_view bytes, std::string* out) {
    const bool apart = (unicode::Classes(c) & unicode::kBertIdeograph) != 0;
    if (apart) out->push_back(' ');
    out->append(bytes);
    if (apart) out->push_back(' ');
  });
}

bool IsNmtDropped(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}
bool IsNmtSpace(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

bool IsSpace(char32_t c) { return (unicode::Properties(c) & unicode::kSpace) != 0; }

std::string_view StripSpaces(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = 0;  // of what is not space
  bool inside = false;
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    if (!IsSpace(c.code_point)) {
      if (!inside) begin = pos;
      inside = true;
      end = pos + c.length;
    }
    pos += c.length;
  }
  if (!inside) return left || right ? std::string_view() : text;
  if (!right) end = text.size();
  if (!left) begin = 0;
  return text.substr(begin, end - begin);
}

struct Applier {
  std::string_view text;

  Changed operator()(unicode::Form form) const {
    if (form == unicode::Form::kNfc && !unicode::MayChangeInNfc(text)) return std::nullopt;
    return unicode::Normalize(text, form);
  }
  Changed operator()(normalize::Lowercase) const { return unicode::ToLower(text); }
  Changed operator()(normalize::StripAccents) const { return Without(text, unicode::kAccent); }
  Changed operator()(normalize::Nmt) const {
    return MapCharacters(text, [](char32_t c, std::string_view bytes, std::string* out) {
      if (!IsNmtDropped(c)) out->append(IsNmtSpace(c) ? " " : bytes);
    });
  }
  Changed operator()(normalize::ByteLevel) const { return AlphabetFromBytes(text); }
  Changed operator()(const normalize::Strip& step) const {
    return std::string(StripSpaces(text, step.left, step.right));
  }
  Changed operator()(const normalize::Prepend& step) const {
    if (text.empty()) return std::nullopt;
    return step.text + std::string(text);
  }
  Changed operator()(const normalize::Replace& step) const {
    std::vector<Stretch> stretches;
    std::string out;
    out.reserve(text.size());
    step.pattern.Replace(text, step.content, &stretches, &out);
    return out;
  }
  Changed operator()(const normalize::Bert& step) const {
    std::string out(text);
    if (step.clean) out = CleanAsBert(out);
    if (step.ideographs) out = SpaceIdeographs(out);
    if (step.strip_accents) {
      out = Without(unicode::Normalize(out, unicode::Form::kNfd), unicode::kBertAccent);
    }
    if (step.lowercase) out = unicode::ToLower(out);
    return out;
  }
  Changed operator()(const std::shared_ptr<const Charsmap>& map) const { return map->Apply(text); }
};

// Bytes that a step makes of one byte at most.
struct Growth {
  double operator()(unicode::Form form) const {  // the Unicode FAQ on normalisation
    const bool compatibility = form == unicode::Form::kNfkc || form == unicode::Form::kNfkd;
    return compatibility ? 11 : 3;
  }
  double operator()(normalize::Lowercase) const { return 2; }
  double operator()(normalize::StripAccents) const { return 1; }
  double operator()(normalize::Nmt) const { return 1; }
  double operator()(normalize::ByteLevel) const { return 2; }
  double operator()(const normalize::Strip&) const { return 1; }
  double operator()(const normalize::Prepend& step) const {
    return static_cast<double>(1 + step.text.size());
  }
  double operator()(const normalize::Replace& step) const {
    return step.pattern.MostGrowth(step.content);
  }
  double operator()(const normalize::Bert& step) const {
    return (step.ideographs ? 2 : 1) * (step.strip_accents ? 3 : 1) * (step.lowercase ? 2 : 1);
  }
  double operator()(const std::shared_ptr<const Charsmap>& map) const { return map->MostGrowth(); }
};

}  // namespace

double Normalizer::MostGrowth() const {
  double growth = 1;
  for (const NormalizerStep& step : steps_) growth *= std::visit(Growth{}, step);
  return growth;
}

std::string_view Normalizer::Apply(std::string_view text, std::string* storage) const {
  for (const NormalizerStep& step : steps_) {
    if (Changed changed = std::visit(Applier{text}, step)) {
      *storage = std::move(*changed);
      text = *storage;
    }
  }
  return text;
}

}  // namespace vivace

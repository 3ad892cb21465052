// Normalizer: the steps that change a text before it is cut into words, in order.
//
// Each step is one of Hugging Face's normalisers and gives the same text. Linear in the text (n log
// n for runs of combining marks); a step's output is bounded by its input times a constant of the
// file. Immutable; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/charsmap.h"
#include "text/text_pattern.h"
#include "text/unicode.h"

namespace vivace {

namespace normalize {

struct Lowercase {};
struct StripAccents {};  // of a text that is decomposed already
struct Nmt {};           // control characters out, odd spaces to ' '
struct ByteLevel {};     // every byte as a character of the byte-level alphabet
struct Strip {
  bool left = true, right = true;
};
struct Prepend {
  std::string text;
};
struct Replace {
  TextPattern pattern;
  std::string content;
};
struct Bert {
  bool clean = true, ideographs = true, strip_accents = false, lowercase = true;
};

}  // namespace normalize

using NormalizerStep =
    std::variant<unicode::Form, normalize::Lowercase, normalize::StripAccents, normalize::Nmt,
                 normalize::ByteLevel, normalize::Strip, normalize::Prepend, normalize::Replace,
                 normalize::Bert, std::shared_ptr<const Charsmap>>;

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  // The normalised text: `text` itself, or in `*storage`.
  std::string_view Apply(std::string_view text, std::string* storage) const;
  // Bytes that the steps together make of one byte at most.
  double MostGrowth() const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace vivace

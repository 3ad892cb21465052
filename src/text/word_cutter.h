// WordCutter: the pre-tokeniser of a tokenizer: cuts a normalised text into the pieces that the
// model encodes one by one.
//
// A chain of steps, each one of Hugging Face's pre-tokenisers; most only cut, two also change the
// text (`Metaspace`, and `ByteLevel` with a space before). Linear in the text. The common chain,
// one known scanner and then bytes, is told apart (`scanner`) and needs no memory. Immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pretokenizer.h"
#include "text/text_pattern.h"

namespace vivace {

namespace cut {

enum class Behavior : uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};
struct Split {
  TextPattern pattern;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;
};
struct ByteLevel {
  bool add_prefix_space = false;
  bool use_regex = true;  // cut by GPT-2's pattern
};
enum class Prepend : uint8_t { kAlways, kFirst, kNever };
struct Metaspace {
  std::string replacement;  // one character
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};
struct FixedLength {
  size_t length = 1;  // characters
};

}  // namespace cut

using CutterStep = std::variant<cut::Split, cut::ByteLevel, cut::Metaspace, cut::FixedLength>;

// BERT's: words apart at spaces, each punctuation mark a word.
std::vector<CutterStep> BertCutter();

class WordCutter {
 public:
  // Memory reused from text to text; one per thread of execution.
  struct Scratch {
    std::string text, changed;
    struct Piece {
      size_t begin, end;
    };
    std::vector<Piece> pieces, cut;
    std::vector<Stretch> stretches;
  };

  WordCutter() = default;
  explicit WordCutter(std::vector<CutterStep> steps);

  // Whether the pieces' bytes are what the model sees, rather than their characters: there is a
  // `ByteLevel` step.
  bool byte_level() const { return byte_level_; }
  // The one scanner that does all the cutting, if that is so.
  std::optional<Pretokenizer> scanner() const { return scanner_; }

  // The pieces of `text`, views into `scratch`; `first` if the whole input begins with it.
  void Cut(std::string_view text, bool first, Scratch* scratch) const;

 private:
  struct Applier;

  std::vector<CutterStep> steps_;
  bool byte_level_ = false;
  bool alphabet_ = false;  // steps follow ByteLevel: they see its alphabet
  std::optional<Pretokenizer> scanner_;
};

}  // namespace vivace

// Decoder: the text that tokens stand for, as a chain of Hugging Face's decoders makes it.
//
// One path for whole answers and for streams: a Stream takes tokens one by one and gives the text
// that no later token can change, so all it gives joins to the whole decoding, whatever the chain.
// What must wait waits: half a character, a run of byte tokens (which is one text, or as many
// U+FFFD as bytes, by its end), spaces that the end may strip. A Decoder is immutable; a Stream
// belongs to one thread; once its buffers have grown it allocates nothing for short tokens, but in
// a `Replace` by a regular expression.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/text_pattern.h"

namespace vivace {

namespace decode {

struct ByteLevel {};     // the byte-level alphabet back to bytes
struct ByteFallback {};  // runs of <0xNN> to their bytes
struct Fuse {};          // all tokens to one
struct Join {};          // spaces between tokens: what no decoder at all means
struct Metaspace {
  std::string replacement;  // one character, which becomes a space
  bool strip_first = true;  // or nothing, in the first token
};
struct Replace {
  TextPattern pattern;
  std::string content;
};
struct Strip {
  std::string content;  // one character
  size_t start = 0, stop = 0;
};
struct WordPiece {
  std::string prefix = "##";
  bool cleanup = true;  // English punctuation close to its word
};
struct Bpe {
  std::string suffix;
};

}  // namespace decode

using DecoderStep =
    std::variant<decode::ByteLevel, decode::ByteFallback, decode::Fuse, decode::Join,
                 decode::Metaspace, decode::Replace, decode::Strip, decode::WordPiece, decode::Bpe>;

class Decoder {
 public:
  class Stream;

  Decoder() : Decoder({decode::ByteLevel{}}) {}
  explicit Decoder(std::vector<DecoderStep> steps);

  // Nothing but ByteLevel: the text is the tokens' bytes, one after the other.
  bool only_byte_level() const { return only_byte_level_; }
  bool has_byte_fallback() const { return has_byte_fallback_; }
  // Bytes that the steps together make of one byte of a token at most; what is put
  // between tokens apart.
  double MostGrowth() const;

 private:
  std::vector<DecoderStep> steps_;
  bool only_byte_level_ = false;
  bool has_byte_fallback_ = false;
  bool waits_for_all_ = false;  // a step after Fuse cannot work on parts: no text before the end
};

class Decoder::Stream {
 public:
  // The decoder must live as long. `inside`: the tokens come after others, of the same answer.
  explicit Stream(const Decoder& decoder, bool inside = false);

  // Appends to `out` the valid UTF-8 that is final now.
  void Push(std::string_view token, std::string* out);
  void Finish(std::string* out);
  bool holds_back() const;

 private:
  // What a step remembers. A token may come in parts: `index` counts tokens that have begun.
  struct State {
    size_t index = 0;
    size_t stripped = 0;  // of a token's begin
    std::string held;     // bytes or a token that wait
    std::string made;     // the step's output
    std::vector<Stretch> stretches;
    bool waits = false;  // Bpe: `held` is a token, which may be empty
    bool open = false;   // Fuse, ByteLevel: inside the one token that they make
  };
  struct Part {
    std::string_view text;
    bool begins, ends;  // of its token
  };
  struct Feeder;

  void Feed(size_t step, Part part, std::string* out);
  void End(size_t step, std::string* out);

  const Decoder& decoder_;
  std::vector<State> states_;  // one per step
};

}  // namespace vivace

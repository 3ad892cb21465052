// Charsmap: SentencePiece's precompiled normalisation map, a double-array trie from UTF-8 strings
// to replacements (Hugging Face's `Precompiled`, GGUF's tokenizer.ggml.precompiled_charsmap).
//
// Hostile input: every step through the trie is checked. Immutable; Apply is linear in the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace {

class Charsmap {
 public:
  // `blob`: the trie's size in bytes, its units (little-endian words), strings that end in NUL.
  static Result<Charsmap> Parse(std::string_view blob);

  // As `Precompiled` does it: a grapheme cluster of less than six bytes is looked up whole, the
  // characters of others one by one; the shortest key that begins what is looked up decides.
  std::string Apply(std::string_view text) const;

  // Bytes that Apply makes of one byte at most; one at least.
  double MostGrowth() const;

 private:
  std::optional<std::string_view> Replacement(std::string_view text) const;
  void ApplyToCluster(std::string_view cluster, std::string* out) const;

  std::vector<uint32_t> units_;
  std::string strings_;
};

}  // namespace vivace

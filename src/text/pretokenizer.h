// Pre-tokenizers: cut text into the pieces that BPE may not merge across.
//
// Each kind is a hand-written scanner for one pattern that Hugging Face runs as a regular
// expression; the pieces tile the text and are the same, byte for byte. A scanner looks at a
// character a bounded number of times and uses no stack, whatever the text. Invalid UTF-8 counts as
// characters that are neither letter, number nor space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vivace {

enum class Pretokenizer : uint8_t {
  kGpt2,    // 's|'t|... ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kSmolLm,  // each number on its own, then kGpt2 on what lies between
  kLlama3,  // case-blind contractions, numbers by up to three, newlines with what is before them
  kQwen2,   // as kLlama3, each number on its own
  kO200k,   // words also end where capitals follow small letters; contractions end them
  kTekken,  // as kO200k, each number on its own, no contractions
};

// Every pattern that has a scanner.
struct KnownPattern {
  std::string_view pattern;
  Pretokenizer kind;
};
std::span<const KnownPattern> KnownPatterns();

// By the pattern of a `Split` in tokenizer.json; nullopt when unknown.
std::optional<Pretokenizer> PretokenizerByPattern(std::string_view pattern);

// The end of the piece that begins at `pos`, which must be the begin of a piece and < text.size().
size_t PieceEnd(Pretokenizer kind, std::string_view text, size_t pos);

}  // namespace vivace

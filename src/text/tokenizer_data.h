// TokenizerData: what a tokenizer file says, before it is checked.
//
// The readers (tokenizer_gguf, tokenizer_json, sentence_piece) fill it and check their own syntax,
// tokenizer_config adds to it; Tokenizer::Create checks its meaning. A plain value that owns its
// strings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/word_cutter.h"

namespace vivace {

enum class TokenType : uint8_t {  // numbered as in GGUF's tokenizer.ggml.token_type
  kNormal = 1,
  kUnknown = 2,      // stands for what has no token; special as kControl is
  kControl = 3,      // never the meaning of ordinary text
  kUserDefined = 4,  // added word: its text is always this token, trusted or not
  kUnused = 5,
  kByte = 6,  // written <0xNN>
};

// Flags of a control or user-defined token; most have none of them.
struct AddedTokenFlags {
  TokenId id = -1;
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // matched in the normalised text, and normalised itself
  bool single_word = false;  // only where no letter or digit touches it
  bool in_model = false;     // a user-defined token that the model has too: text may become it
};

struct TokenizerData {
  enum class Model : uint8_t { kBpe, kUnigram, kWordPiece, kWordLevel };

  Model model = Model::kBpe;
  // As the file writes them. An empty string is an id that has no token.
  std::vector<std::string> tokens;
  std::vector<TokenType> types;  // one per token, or empty: all normal
  std::vector<AddedTokenFlags> flags;

  // BPE. With `merge_by_score` every pair of tokens that makes a token merges, the one of greatest
  // score first, and `merges` is empty (SentencePiece).
  std::vector<std::array<std::string, 2>> merges;  // by rank, best first
  bool merge_by_score = false;
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges make
  bool fuse_unknown = false;   // a run of what has no token is one unknown token
  std::string word_suffix;     // on the token of a word's last character
  // BPE and unigram: characters without a token become <0xNN> tokens.
  bool byte_fallback = false;
  // Unigram, and BPE by score: one per token.
  std::vector<double> scores;
  // BPE and word pieces: on tokens that do not begin a word.
  std::string continuing_prefix;
  size_t max_word_characters = 100;  // word pieces: a longer word is unknown

  std::vector<NormalizerStep> normalizer;
  std::vector<CutterStep> cutter = {cut::ByteLevel{}};
  std::vector<DecoderStep> decoder = {decode::ByteLevel{}};

  std::optional<TokenId> bos, eos, pad;
  std::optional<TokenId> unknown;    // for what has no token; without it that is dropped
  std::vector<TokenId> end_of_turn;  // ends an answer as eos does
  bool add_bos = false;
  bool add_eos = false;
  // What stands before and behind a text, where it is not just BOS and EOS.
  std::vector<TokenId> prefix, suffix;
};

// The two parts of a merge written as "left right"; bad_merge if it is anything else.
Result<std::array<std::string, 2>> ParseMerge(std::string_view line, size_t rank);

// The byte that a token of type kByte, written "<0x0A>", stands for.
std::optional<uint8_t> ParseByteToken(std::string_view token);

}  // namespace vivace

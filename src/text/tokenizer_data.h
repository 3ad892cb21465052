// TokenizerData: what a tokenizer file says, before it is checked.
//
// The readers (tokenizer_gguf, tokenizer_json) fill it and check their own syntax;
// Tokenizer::Create checks its meaning. A plain value that owns its strings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/pretokenizer.h"

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
  bool lstrip = false;      // takes the white space before it
  bool rstrip = false;      // takes the white space after it
  bool normalized = false;  // matched in the normalised text
};

struct TokenizerData {
  enum class Normalizer : uint8_t { kNone, kNfc };

  // Normal tokens are written in the byte-level alphabet, as in the files; special ones plainly.
  // An empty string is an id that has no token.
  std::vector<std::string> tokens;
  std::vector<TokenType> types;                    // one per token, or empty: all normal
  std::vector<std::array<std::string, 2>> merges;  // by rank, best first
  std::vector<AddedTokenFlags> flags;
  Pretokenizer pretokenizer = Pretokenizer::kGpt2;
  Normalizer normalizer = Normalizer::kNone;
  bool add_space_prefix = false;
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges make
  bool fuse_unknown = false;   // a run of bytes without tokens is one unknown token
  std::optional<TokenId> bos, eos, pad;
  std::optional<TokenId> unknown;    // for bytes without a token; without it they are dropped
  std::vector<TokenId> end_of_turn;  // ends an answer as eos does
  bool add_bos = false;
  bool add_eos = false;
};

// The two parts of a merge written as "left right"; bad_merge if it is anything else.
Result<std::array<std::string, 2>> ParseMerge(std::string_view line, size_t rank);

// The byte that a token of type kByte, written "<0x0A>", stands for.
std::optional<uint8_t> ParseByteToken(std::string_view token);

}  // namespace vivace

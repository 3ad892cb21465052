// Tokenizer: text to token ids and back, for byte-level BPE vocabularies.
//
// Ids are those of Hugging Face `tokenizers` for the same file. Immutable and shared: every member
// may be called from any thread. Encoding is O(n log n) at worst and linear on ordinary text, uses
// no recursion, takes any bytes, and allocates per call, not per token.
//
// Control tokens and trust: a control token's text becomes that token only where the caller says it
// may (EncodeOptions::parse_special, or a trusted segment). No merge, no byte and no unknown
// character gives a control token. User-defined tokens are ordinary words and match everywhere.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/segment.h"
#include "text/tokenizer_data.h"

namespace vivace {

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS and EOS, if the file asks for them
  bool parse_special = true;       // false: the text of control tokens stays text
};

class Tokenizer {
 public:
  // Checks the data and builds the indexes: tens of milliseconds for 150k tokens.
  static Result<std::shared_ptr<const Tokenizer>> Create(TokenizerData data);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  std::vector<TokenId> Encode(std::string_view text, EncodeOptions options = {}) const;

  // Encodes a rendered chat template. The segments, in order, say which bytes its author wrote;
  // a control token is found only where all its bytes are his. The text between control tokens is
  // tokenised as a whole, whoever wrote its parts. Adds neither BOS nor EOS: the template has them.
  std::vector<TokenId> EncodeSegments(std::string_view text,
                                      std::span<const Segment> segments) const;

  // The bytes the tokens stand for; ids outside the vocabulary stand for none.
  std::string DecodeBytes(std::span<const TokenId> ids, bool skip_special) const;
  // The same as valid UTF-8, with U+FFFD for what is not.
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const;

  // The bytes of one token; empty for an id outside the vocabulary. Lives as long as the tokenizer.
  std::string_view TokenBytes(TokenId id) const {
    return Contains(id) ? bytes_[static_cast<size_t>(id)] : std::string_view();
  }
  bool Contains(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < bytes_.size(); }
  // Left out of text when special tokens are skipped, and never the meaning of untrusted text.
  bool IsSpecial(TokenId id) const { return Contains(id) && special_[static_cast<size_t>(id)]; }
  // The control token with this text, such as "<|im_end|>".
  std::optional<TokenId> FindSpecial(std::string_view text) const {
    return raw_added_->FindControl(text);
  }

  size_t vocab_size() const { return bytes_.size(); }
  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> pad() const { return pad_; }
  // Every token that ends an answer: eos and the ends of turn.
  const std::vector<TokenId>& eos_ids() const { return eos_ids_; }
  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }

 private:
  friend class TokenizerBuilder;
  Tokenizer() = default;

  void EncodeAll(std::string_view text, TrustedRuns trusted, std::vector<TokenId>* out) const;
  void EncodeUnmatched(std::string_view text, Bpe::Scratch* scratch,
                       std::vector<TokenId>* out) const;
  void EncodeWords(std::string_view text, Bpe::Scratch* scratch, std::vector<TokenId>* out) const;

  std::string storage_;                  // the bytes of all tokens
  std::vector<std::string_view> bytes_;  // by id, into storage_
  std::vector<bool> special_;            // by id
  Pretokenizer pretokenizer_ = Pretokenizer::kGpt2;
  TokenizerData::Normalizer normalizer_ = TokenizerData::Normalizer::kNone;
  bool add_space_prefix_ = false;
  bool add_bos_ = false;
  bool add_eos_ = false;
  std::optional<TokenId> bos_, eos_, pad_;
  std::vector<TokenId> eos_ids_;
  std::optional<AddedTokens> raw_added_;         // matched before the normaliser
  std::optional<AddedTokens> normalized_added_;  // and after it
  std::optional<Bpe> bpe_;
};

}  // namespace vivace

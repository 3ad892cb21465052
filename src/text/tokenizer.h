// Tokenizer: text to token ids and back, for BPE (of bytes or characters), unigram, word-piece and
// word-level vocabularies.
//
// Ids are those of Hugging Face `tokenizers` for the same file. Immutable and shared: every member
// may be called from any thread. Encoding is O(n log n) at worst and linear on ordinary text, uses
// no recursion, takes any bytes, and allocates per call, not per token.
//
// Control tokens and trust: a control token's text becomes that token only where the caller says it
// may (EncodeOptions::parse_special, or a trusted segment). No merge and no byte gives a control
// token, and no unknown character gives one but the unknown token, if that has no other role.
// User-defined tokens are ordinary words and match everywhere.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/segment.h"
#include "text/tokenizer_data.h"
#include "text/unigram.h"
#include "text/word_cutter.h"
#include "text/word_piece.h"

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

  // The text the tokens stand for, its bytes as they are where the vocabulary is of bytes; ids
  // outside the vocabulary stand for nothing.
  std::string DecodeBytes(std::span<const TokenId> ids, bool skip_special) const;
  // The same as valid UTF-8, with U+FFFD for what is not.
  std::string Decode(std::span<const TokenId> ids, bool skip_special) const;

  // The bytes of one token inside a text; empty for an id outside the vocabulary. Lives as long as
  // the tokenizer.
  std::string_view TokenBytes(TokenId id) const {
    return Contains(id) ? bytes_[static_cast<size_t>(id)] : std::string_view();
  }
  bool Contains(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < bytes_.size(); }
  // Left out of text when special tokens are skipped, and never the meaning of untrusted text.
  bool IsSpecial(TokenId id) const { return Contains(id) && special_[static_cast<size_t>(id)]; }
  // The control token with this text, such as "<|im_end|>".
  std::optional<TokenId> FindSpecial(std::string_view text) const {
    return (mixed_raw_added_ ? mixed_raw_added_ : raw_added_)->FindControl(text);
  }

  size_t vocab_size() const { return bytes_.size(); }
  std::optional<TokenId> bos() const { return bos_; }
  std::optional<TokenId> eos() const { return eos_; }
  std::optional<TokenId> pad() const { return pad_; }
  // Every token that ends an answer: eos and the ends of turn.
  const std::vector<TokenId>& eos_ids() const { return eos_ids_; }
  const Decoder& decoder() const { return decoder_; }
  // Whether a text is simply the bytes of its tokens; else they go through the decoder by name.
  bool decodes_bytes() const { return decoder_.only_byte_level() && shown_names_.empty(); }
  // What the decoder takes: the token as the file writes it, or normalised if it is matched so.
  std::string_view TokenName(TokenId id) const {
    if (!Contains(id)) return {};
    if (!shown_names_.empty()) {
      if (const auto shown = shown_names_.find(id); shown != shown_names_.end()) {
        return shown->second;
      }
    }
    return names_[static_cast<size_t>(id)];
  }

  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return add_eos_; }

 private:
  friend class TokenizerBuilder;
  Tokenizer() = default;

  using Model = std::variant<std::monostate, Bpe, Unigram, WordPiece, WordLevel>;
  template <typename M>
  struct Encoder;

  void EncodeAll(std::string_view text, std::span<const Segment> segments,
                 std::vector<TokenId>* out) const;

  std::vector<std::string> owned_names_;
  std::vector<std::string_view> names_;  // by id, as the file writes them
  std::string storage_;                  // the bytes of all tokens
  std::vector<std::string_view> bytes_;  // by id, into storage_
  std::vector<bool> special_;            // by id
  Normalizer normalizer_;
  WordCutter cutter_;
  Decoder decoder_;
  bool add_bos_ = false;
  bool add_eos_ = false;
  std::optional<TokenId> bos_, eos_, pad_;
  std::vector<TokenId> prefix_, suffix_;
  std::vector<TokenId> eos_ids_;
  std::string normalized_names_;                               // of normalized_added_
  std::unordered_map<TokenId, std::string_view> shown_names_;  // where they differ from names_
  std::optional<AddedTokens> raw_added_;                       // matched before the normaliser
  std::optional<AddedTokens> normalized_added_;  // and after it, in text that is trusted throughout
  // Where trust is mixed, control tokens are all matched before it, where every byte's is known.
  std::optional<AddedTokens> mixed_raw_added_, mixed_normalized_added_;
  Model model_;
};

}  // namespace vivace

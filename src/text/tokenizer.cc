#include "text/tokenizer.h"

#include <utility>

#include "base/utf8.h"
#include "text/unicode.h"

namespace vivace {

std::vector<TokenId> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  const Segment all = {0, text.size(), options.parse_special};
  std::vector<TokenId> out;
  if (options.add_special_tokens && add_bos_) out.push_back(*bos_);
  EncodeAll(text, TrustedRuns({&all, 1}), &out);
  if (options.add_special_tokens && add_eos_) out.push_back(*eos_);
  return out;
}

std::vector<TokenId> Tokenizer::EncodeSegments(std::string_view text,
                                               std::span<const Segment> segments) const {
  std::vector<TokenId> out;
  EncodeAll(text, TrustedRuns(segments), &out);
  return out;
}

// Hugging Face's order: tokens that are matched as written cut the text; each part between them is
// normalised; tokens that are matched normalised cut that; the rest are words.
void Tokenizer::EncodeAll(std::string_view text, TrustedRuns trusted,
                          std::vector<TokenId>* out) const {
  Bpe::Scratch scratch;
  size_t pos = 0;
  while (const auto match = raw_added_->Find(text, pos, &trusted)) {
    EncodeUnmatched(text.substr(pos, match->begin - pos), &scratch, out);
    out->push_back(match->id);
    pos = match->end;
  }
  EncodeUnmatched(text.substr(pos), &scratch, out);
}

void Tokenizer::EncodeUnmatched(std::string_view text, Bpe::Scratch* scratch,
                                std::vector<TokenId>* out) const {
  std::string normalized;
  if (normalizer_ == TokenizerData::Normalizer::kNfc && unicode::MayChangeInNfc(text)) {
    normalized = unicode::ToNfc(text);
    text = normalized;
  }
  TrustedRuns none({});  // control tokens were found before
  size_t pos = 0;
  while (const auto match = normalized_added_->Find(text, pos, &none)) {
    EncodeWords(text.substr(pos, match->begin - pos), scratch, out);
    out->push_back(match->id);
    pos = match->end;
  }
  EncodeWords(text.substr(pos), scratch, out);
}

void Tokenizer::EncodeWords(std::string_view text, Bpe::Scratch* scratch,
                            std::vector<TokenId>* out) const {
  if (text.empty()) return;
  std::string prefixed;
  if (add_space_prefix_ && text[0] != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed.push_back(' ');
    text = prefixed.append(text);
  }
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = PieceEnd(pretokenizer_, text, pos);
    bpe_->Encode(text.substr(pos, end - pos), scratch, out);
    pos = end;
  }
}

std::string Tokenizer::DecodeBytes(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  for (const TokenId id : ids) {
    if (!skip_special || !IsSpecial(id)) out.append(TokenBytes(id));
  }
  return out;
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  return utf8::Repair(DecodeBytes(ids, skip_special));
}

}  // namespace vivace

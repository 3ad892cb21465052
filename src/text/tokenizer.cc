#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace vivace {

// One text on its way through the pipeline, for one kind of model. Hugging Face's order: tokens
// that are matched as written cut the text; each part between them is normalised; tokens that are
// matched normalised cut that; the rest is cut into words.
template <typename M>
struct Tokenizer::Encoder {
  const Tokenizer& tokenizer;
  const M& model;
  const AddedTokens& normalized_added;
  bool trusted;  // throughout
  std::vector<TokenId>* out;
  typename M::Scratch scratch{};
  WordCutter::Scratch pieces{};
  std::string normalized{};

  void Part(std::string_view text, bool first) {
    text = tokenizer.normalizer_.Apply(text, &normalized);
    if (normalized_added.empty()) return Words(text, first);
    const Segment all = {0, text.size(), trusted};
    TrustedRuns runs({&all, 1});
    normalized_added.Split(
        text, &runs,
        [&](size_t begin, size_t end) {
          Words(text.substr(begin, end - begin), first && begin == 0);
        },
        [&](TokenId id) { out->push_back(id); });
  }

  void Words(std::string_view text, bool first) {
    if (text.empty()) return;
    if (const auto scanner = tokenizer.cutter_.scanner()) {
      for (size_t pos = 0; pos < text.size();) {
        const size_t end = PieceEnd(*scanner, text, pos);
        model.Encode(text.substr(pos, end - pos), &scratch, out);
        pos = end;
      }
      return;
    }
    tokenizer.cutter_.Cut(text, first, &pieces);
    const std::string_view whole = pieces.text;
    for (const auto& piece : pieces.pieces) {
      model.Encode(whole.substr(piece.begin, piece.end - piece.begin), &scratch, out);
    }
  }
};

std::vector<TokenId> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  const Segment all = {0, text.size(), options.parse_special};
  std::vector<TokenId> out;
  if (options.add_special_tokens) out = prefix_;
  EncodeAll(text, {&all, 1}, &out);
  if (options.add_special_tokens) out.insert(out.end(), suffix_.begin(), suffix_.end());
  return out;
}

std::vector<TokenId> Tokenizer::EncodeSegments(std::string_view text,
                                               std::span<const Segment> segments) const {
  std::vector<TokenId> out;
  EncodeAll(text, segments, &out);
  return out;
}

void Tokenizer::EncodeAll(std::string_view text, std::span<const Segment> segments,
                          std::vector<TokenId>* out) const {
  TrustedRuns runs(segments);
  const bool trusted = !text.empty() && runs.EndAt(0) >= text.size();
  const bool mixed = !trusted && mixed_raw_added_.has_value();
  const AddedTokens& raw = mixed ? *mixed_raw_added_ : *raw_added_;
  const AddedTokens& normalized = mixed ? *mixed_normalized_added_ : *normalized_added_;
  std::visit(
      [&]<typename M>(const M& model) {
        if constexpr (!std::is_same_v<M, std::monostate>) {
          Encoder<M> encoder{*this, model, normalized, trusted, out};
          raw.Split(
              text, &runs,
              [&](size_t begin, size_t end) {
                encoder.Part(text.substr(begin, end - begin), begin == 0);
              },
              [&](TokenId id) { out->push_back(id); });
        }
      },
      model_);
}

std::string Tokenizer::DecodeBytes(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  if (!decodes_bytes()) {
    Decoder::Stream stream(decoder_);
    for (const TokenId id : ids) {
      if (Contains(id) && !(skip_special && IsSpecial(id))) stream.Push(TokenName(id), &out);
    }
    stream.Finish(&out);
    return out;
  }
  for (const TokenId id : ids) {
    if (!skip_special || !IsSpecial(id)) out.append(TokenBytes(id));
  }
  return out;
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  return utf8::Repair(DecodeBytes(ids, skip_special));
}

}  // namespace vivace
